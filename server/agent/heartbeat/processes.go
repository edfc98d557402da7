package heartbeat

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const (
	// SessionTime is how long a process that became the client of a node, or begins again, has to open its
	// session. Before that, no other process takes its place.
	SessionTime = 2 * time.Second
	// maxRefused bounds the refused processes of a node that are recorded while one process is its client.
	maxRefused = 4
)

// Processes holds which process is the client of each node, as this server last noticed it. It may be
// out of date on a server that did not lead meanwhile: then the next request of the process is a contested
// one, and the sessions decide. It is not safe for concurrent use.
type Processes struct {
	nodes map[cluster.NodeID]*holder
}

// holder is the client of one node.
type holder struct {
	process string
	// since is when it became the client, or last registered or requested a session.
	since time.Time
	// refused are the other processes that were recorded.
	refused []string
}

// NewProcesses returns the processes of no node.
func NewProcesses() *Processes { return &Processes{nodes: make(map[cluster.NodeID]*holder)} }

// Claim takes a request of a process. It reports whether the request is contested: then the caller
// searches for a session of another process that answers, and calls Keep or Take. A process that begins
// contests also an unknown client. A heartbeat does not: after a change of the leader the client of each node
// sends one.
func (p *Processes) Claim(id cluster.NodeID, process string, begins bool, now time.Time) (contested bool) {
	h := p.nodes[id]
	switch {
	case h != nil && h.process == process:
		if begins {
			h.since = now // it opens a session now
		}
		return false
	case h != nil, begins:
		return true
	}
	p.Take(id, process, now)
	return false
}

// Other reports whether another process is the client of the node.
func (p *Processes) Other(id cluster.NodeID, process string) bool {
	h := p.nodes[id]
	return h != nil && h.process != process
}

// Take makes a process the client of a node.
func (p *Processes) Take(id cluster.NodeID, process string, now time.Time) {
	p.nodes[id] = &holder{process: process, since: now}
}

// Keep refuses a process, because the session of the holder answers. It reports whether to record the
// refusal: once for each process, and not more than a few times for one holder.
func (p *Processes) Keep(id cluster.NodeID, by, refused string, now time.Time) (record bool) {
	h := p.nodes[id]
	if h == nil || h.process != by {
		p.Take(id, by, now)
		h = p.nodes[id]
	}
	if len(h.refused) == maxRefused || slices.Contains(h.refused, refused) {
		return false
	}
	h.refused = append(h.refused, refused)
	return true
}

// SessionDue returns the time until which the client of a node may open its session, or zero.
func (p *Processes) SessionDue(id cluster.NodeID) time.Time {
	if h := p.nodes[id]; h != nil {
		return h.since.Add(SessionTime)
	}
	return time.Time{}
}

// Forget deletes a deleted node.
func (p *Processes) Forget(id cluster.NodeID) { delete(p.nodes, id) }
