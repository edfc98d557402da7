package demo

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/server"
)

// halfWay reports whether half of what had to leave has left, or half of the
// deadline has passed, while something is still to be done.
func (r *run) halfWay() bool {
	total, left := 0, 0
	for _, d := range r.drains {
		total += d.total
		left += d.last.Left
	}
	return 2*left <= total || time.Since(r.drained) >= r.scale.real(r.config.Deadline)/2
}

// killLeader ends the leader, for good, and notes how far its own state had come.
func (r *run) killLeader() error {
	leader := r.group.Leader()
	if leader == nil {
		return nil // look again
	}
	if err := r.group.Kill(leader); err != nil {
		return fmt.Errorf("killing %s: %w", leader.ID(), err)
	}
	r.killed = time.Now()
	kill := &LeaderKill{Server: string(leader.ID()), AtSeconds: round(r.killed.Sub(r.drained))}
	kill.DrainsRunning, kill.AllocationsLeft = stillToDo(leader)
	r.summary.LeaderKill = kill
	r.event("killed the leader, %s; drains running: %d, allocations left to go: %d",
		kill.Server, kill.DrainsRunning, kill.AllocationsLeft)
	return nil
}

// stillToDo counts the drains that run in a server's state, and what may still
// run on their nodes.
func stillToDo(s *server.Server) (drains, allocations int) {
	snap := s.Store().Snapshot()
	for n := range snap.DrainingNodes() {
		drains++
		allocations += snap.LiveCount(n.ID)
	}
	return drains, allocations
}

// noteLeader notes the first look that has a leader again.
func (r *run) noteLeader(look Look) {
	kill := r.summary.LeaderKill
	if kill == nil || kill.NewLeader != "" || look.Leader == "" {
		return
	}
	kill.NewLeader = look.Leader
	kill.ElectionSeconds = round(time.Since(r.killed))
	r.event("%s leads now and goes on from the state alone", kill.NewLeader)
}
