package agent

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// contacts stores the last contact with each server that does not answer. The leader has it from its
// heartbeats, and a follower of its last leader. It is safe for concurrent use.
type contacts struct {
	self raft.ServerID

	mu sync.Mutex
	// leader is the newest leader that this server followed, or itself, or empty; guarded by mu.
	leader raft.ServerID
	// silent is the last contact with each server that does not answer; guarded by mu.
	silent map[raft.ServerID]time.Time
}

func newContacts(self raft.ServerID) *contacts {
	return &contacts{self: self, silent: make(map[raft.ServerID]time.Time)}
}

// contactsPending is how many observations may wait. A lost failure is repeated by the next heartbeat.
const contactsPending = 64

// follow observes raft until the context ends.
func (c *contacts) follow(ctx context.Context, r *raft.Raft) {
	observe(ctx, r, contactsPending, func(data any) bool {
		switch data.(type) {
		case raft.FailedHeartbeatObservation, raft.ResumedHeartbeatObservation, raft.LeaderObservation:
			return true
		}
		return false
	}, func() {}, func(data any) { c.observed(data, r.LastContact()) })
}

// observed records an observation of raft. fromLeader is this server's last contact with a leader.
func (c *contacts) observed(data any, fromLeader time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch o := data.(type) {
	case raft.FailedHeartbeatObservation:
		c.silent[o.PeerID] = o.LastContact
	case raft.ResumedHeartbeatObservation:
		delete(c.silent, o.PeerID)
	case raft.LeaderObservation:
		switch {
		case o.LeaderID == "" && c.leader != c.self && c.leader != "" && !fromLeader.IsZero():
			c.silent[c.leader] = fromLeader
		case o.LeaderID != "" && o.LeaderID != c.self:
			clear(c.silent) // that server has newer contacts
		}
		if o.LeaderID != "" {
			c.leader = o.LeaderID
		}
	}
}

// last returns the last contact with each server that does not answer.
func (c *contacts) last() map[raft.ServerID]time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.silent)
}

// isSilent reports whether a server does not answer.
func (c *contacts) isSilent(id raft.ServerID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, silent := c.silent[id]
	return silent
}

// silenceInterval is the time between two checks whether a server answers.
const silenceInterval = time.Second

// errSilent means that a server does not answer the heartbeats of the leader.
var errSilent = errors.New("the server does not answer heartbeats")

// awaitSilence returns errSilent when a server does not answer, or nil when the context ends.
func (c *contacts) awaitSilence(ctx context.Context, id raft.ServerID) error {
	ticks := time.NewTicker(silenceInterval)
	defer ticks.Stop()
	for !c.isSilent(id) {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return nil
		}
	}
	return errSilent
}
