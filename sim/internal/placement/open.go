package placement

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// judgeOpen judges what the plan leaves. Nothing plans the job again unless an evaluation of it is
// pending, so without one its groups have all that they want, except what a blocked one counts.
func (p *plan) judgeOpen() {
	pending, blocked := p.open(p.after)
	if len(blocked) > 1 {
		if _, before := p.open(p.before); len(before) <= 1 {
			p.report(BlockedTwice, nil, "job %s has %d blocked evaluations", p.key, len(blocked))
		}
	}
	if pending || !p.took {
		return
	}
	for _, a := range p.unwanted {
		p.report(NotStopped, a, "no group wants it, and it is not stopped")
	}
	if p.job == nil || p.job.Stop {
		return
	}
	for _, g := range p.job.TaskGroups {
		s, queued, retried := p.groups[g.Name], 0, false
		for _, e := range blocked {
			queued += e.Queued[g.Name]
			retried = retried || e.SnapshotIndex < p.after.CapacityIndex()
		}
		empty := p.empty(s)
		switch {
		case empty > 0 && queued == 0:
			p.report(LeftShort, nil, "group %s of job %s lacks %d, and no evaluation is open for them", g.Name, p.key, empty)
		// The count may be too high until the next retry: an allocation ended, or a node came back,
		// between plan and apply. A job on every node also needs less when a node goes.
		case empty > queued, queued > empty+p.away(s)+p.canariesToReplace(g) && !onEveryNode(p.job) && !retried:
			p.report(Miscounted, nil, "group %s of job %s lacks %d, and its blocked evaluation counts %d", g.Name, p.key, empty, queued)
		}
		p.judgeSurplus(s)
	}
}

// open returns the open evaluations of the job: whether one is pending, and those that are blocked.
func (p *plan) open(s *statestore.Snapshot) (pending bool, blocked []*cluster.Evaluation) {
	for e := range s.OpenEvals(p.key) {
		if e.Status == "blocked" {
			blocked = append(blocked, e)
		} else {
			pending = true
		}
	}
	return pending, blocked
}

// empty counts the slots that no allocation holds.
func (p *plan) empty(s *slots) int {
	if !onEveryNode(p.job) {
		return max(0, s.group.Count-len(s.held))
	}
	held := make(map[cluster.NodeID]bool, len(s.held))
	for _, a := range s.held {
		held[a.NodeID] = true
	}
	empty := 0
	for n := range p.after.Nodes() {
		if takes(n) && suits(n, p.job, s.group) && !held[n.ID] {
			empty++
		}
	}
	return empty
}

// away counts the allocations in slots that are away.
func (p *plan) away(s *slots) (n int) {
	for _, a := range s.held {
		if p.isAway(a) {
			n++
		}
	}
	return n
}

// isAway reports whether an allocation runs on a node that is not reachable. A client may report so
// between a plan and its apply. When the node returns or is lost, an evaluation follows.
func (p *plan) isAway(a *cluster.Allocation) bool {
	return runs(a) && !opinion.Reachable(p.after.Node(a.NodeID))
}

// canariesToReplace counts the canaries that do not run and have no replacement. Their slots are
// beside the count of the group.
func (p *plan) canariesToReplace(g *cluster.TaskGroup) (n int) {
	for a := range p.after.AllocsByJob(p.key) {
		if a.TaskGroup == g.Name && opinion.Canary(a) && a.NextAllocation == "" && !runs(a) {
			n++
		}
	}
	return n
}

// judgeSurplus judges whether the group runs more than it wants.
func (p *plan) judgeSurplus(s *slots) {
	if onEveryNode(p.job) {
		p.judgeDoubles(s)
		return
	}
	running, done := 0, 0
	var last *cluster.Allocation
	for _, a := range s.held {
		switch {
		case p.isAway(a):
		case runs(a):
			running, last = running+1, a
		case a.ModifyIndex > p.snapshot: // the plan did not know its end, of which no evaluation comes
		case a.ClientStatus == "complete" || opinion.Stopping(a):
			done++ // the slots of what failed too often are given up first
		}
	}
	if running > 0 && running+done > s.group.Count {
		p.report(NotStopped, last, "%d run and %d are done, and there are %d slots", running, done, s.group.Count)
	}
}

// judgeDoubles judges whether a group with one slot on each node runs twice on one, or on a node
// that is not for it.
func (p *plan) judgeDoubles(s *slots) {
	running := make(map[cluster.NodeID]bool, len(s.held))
	for _, a := range s.held {
		if !runs(a) {
			continue
		}
		n := p.after.Node(a.NodeID)
		if running[a.NodeID] || n != nil && !suits(n, p.job, s.group) {
			p.report(NotStopped, a, "the node has another of the group, or is not for it")
		}
		running[a.NodeID] = true
	}
}
