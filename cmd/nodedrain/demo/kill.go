package demo

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/server"
)

// halfWay reports whether half of the allocations have left, or half of the deadline has
// passed.
func (r *run) halfWay() bool {
	total, left := 0, 0
	for _, d := range r.drains {
		total += d.total
		left += d.last.Left
	}
	return 2*left <= total || time.Since(r.drained) >= r.scale.real(r.config.Deadline)/2
}

// killLeader kills the leader for good, and notes the progress in its state.
func (r *run) killLeader() error {
	leader := r.group.Leader()
	if leader == nil {
		return nil // the next look tries again
	}
	if err := r.group.Kill(leader); err != nil {
		return fmt.Errorf("killing %s: %w", leader.ID(), err)
	}
	r.killed = time.Now()
	kill := &LeaderKill{Server: string(leader.ID()), AtSeconds: round(r.killed.Sub(r.drained))}
	kill.DrainsRunning, kill.AllocationsLeft = stillToDo(leader)
	r.summary.LeaderKill = kill
	r.event("killed the leader %s: %d drains running, %d allocations left",
		kill.Server, kill.DrainsRunning, kill.AllocationsLeft)
	return nil
}

// stillToDo counts the running drains in a server's state, and the live allocations on their
// nodes.
func stillToDo(s *server.Server) (drains, allocations int) {
	snap := s.Store().Snapshot()
	for n := range snap.DrainView().DrainingNodes() {
		drains++
		allocations += snap.Usage(n.ID).Live
	}
	return drains, allocations
}

// noteLeader notes the first look with a new leader.
func (r *run) noteLeader(look Look) {
	kill := r.summary.LeaderKill
	if kill == nil || kill.NewLeader != "" || look.Leader == "" {
		return
	}
	kill.NewLeader = look.Leader
	kill.ElectionSeconds = round(time.Since(r.killed))
	r.event("%s is the new leader and continues from the replicated state", kill.NewLeader)
}
