package invariant

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// turns are the turns of a draining node at one snapshot.
type turns struct {
	snapshot uint64
	// awaited is one allocation of each turn that the next turn waits for, by the
	// lowest id, or nil. stays is the same of those without a mark or a stop,
	// and touches of those that are in touch, whether waited for or not.
	awaited, stays, touches [opinion.TurnCount]*alloc
	// left counts those that have to leave and are live, by turn.
	left [opinion.TurnCount]int
}

// turns looks at the turns of a node that drains.
func (m *snapshot) turns(n *node) *turns {
	t := &n.turns
	if t.snapshot == m.number {
		return t
	}
	*t = turns{snapshot: m.number}
	d := n.drain()
	for _, a := range n.live {
		if !opinion.HasToLeave(a.turn, d) {
			continue
		}
		t.left[a.turn]++
		if !opinion.WaitOver(a.row, n.row, d, m.at, m.policy.StopMargin) {
			first(&t.awaited[a.turn], a)
		}
		if !a.leaving() {
			first(&t.stays[a.turn], a)
		}
		if a.inTouch() {
			first(&t.touches[a.turn], a)
		}
	}
	return t
}

// first keeps the one with the lower id.
func first(kept **alloc, a *alloc) {
	if *kept == nil || a.id() < (*kept).id() {
		*kept = a
	}
}

// total is how many have to leave and are live.
func (t *turns) total() (total int) {
	for _, left := range t.left {
		total += left
	}
	return total
}

// waitsFor is what the turn still waits for, nil if it has come. Storage plugins
// may be told to wait, after the deadline too, for all that is in touch.
func (m *snapshot) waitsFor(n *node, turn opinion.Turn) *alloc {
	t := m.turns(n)
	toTheEnd := turn == opinion.Plugin && m.policy.PluginsAfterDeadline == rules.PluginsAfterStop
	for before := range turn {
		if t.awaited[before] != nil {
			return t.awaited[before]
		}
		if toTheEnd && t.touches[before] != nil {
			return t.touches[before]
		}
	}
	return nil
}

// unfinished says what keeps the node's drain from its end, and is empty if the
// drain may end: what its completion contract promises is so.
func (m *snapshot) unfinished(n *node) (who *alloc, why string) {
	d, contract := n.drain(), m.policy.Completion
	if contract != rules.CompletionMarked && opinion.Passed(d, m.at) {
		contract = rules.CompletionStopped
	}
	t := m.turns(n)
	for turn := range opinion.TurnCount {
		switch {
		case contract == rules.CompletionMarked && t.stays[turn] != nil:
			return t.stays[turn], "it has not been asked to leave"
		case contract != rules.CompletionMarked && t.awaited[turn] != nil:
			return t.awaited[turn], "it has to be waited for"
		}
	}
	if contract != rules.CompletionReplaced && contract != rules.CompletionMigrated {
		return nil, ""
	}
	for _, a := range m.marked[d.ID] {
		switch {
		case m.allocs[a.id()] != a || !a.markedBy(d.ID):
		case !m.replaced(a):
			return a, "it has no replacement, and nothing says that none comes"
		case contract == rules.CompletionMigrated && !m.migrated(a):
			return a, "its data has not moved"
		}
	}
	return nil, ""
}

func (a *alloc) markedBy(d cluster.DrainID) bool {
	return a.marked() && a.row.DesiredTransition.Drain == d
}

// replaced reports whether an allocation that left has its replacement placed, or
// an evaluation says that it is blocked, or none is to come. While an evaluation
// is pending the scheduler has not decided yet.
func (m *snapshot) replaced(a *alloc) bool {
	if a.row.NextAllocation != "" || !a.service() || a.row.DesiredTransition.MigrateDisablePlacement {
		return true
	}
	if j := a.group.job.row; j == nil || j.Stop || !m.exists(a.group) {
		return true
	}
	if a.group.job.pending() {
		return false
	}
	return !a.live() || a.stopping() || len(a.group.job.open) > 0
}

// migrated reports whether the data of an allocation that left has moved or
// cannot: a replacement starts only once it has it.
func (m *snapshot) migrated(a *alloc) bool {
	if !movesData(a.row) || a.row.ClientStatus == "lost" {
		return true
	}
	if a.row.NextAllocation == "" {
		return m.replaced(a) && len(a.group.job.open) == 0
	}
	next := m.allocs[a.row.NextAllocation]
	return next == nil || next.row.ClientStatus != "pending"
}

func movesData(a *cluster.Allocation) bool {
	if a.Job == nil {
		return false
	}
	for _, g := range a.Job.TaskGroups {
		if g != nil && g.Name == a.TaskGroup {
			return g.EphemeralDisk.Migrate
		}
	}
	return false
}
