package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// snapshot is a state with a time and the options of the drainer. Its methods apply the contract.
type snapshot struct {
	*tables
	at       time.Time
	policy   rules.Policy
	coalesce time.Duration
	// made are the allocations that the entry has marked so far.
	made []cluster.AllocID
	// number distinguishes the cached counts of this snapshot from older ones.
	number uint64
}

// snapshot returns a snapshot of the present tables. It makes the counts of earlier ones stale.
func (b *tables) snapshot(at time.Time, o *Options) *snapshot {
	b.snapshots++
	return &snapshot{tables: b, at: at, policy: o.Policy, coalesce: o.Coalesce, number: b.snapshots}
}

// tally holds the numbers of a group in one snapshot.
type tally struct {
	snapshot uint64
	pace     opinion.Pace
	// exists means that the current version of the job has the group.
	exists bool
	// healthy counts the healthy allocations on all nodes.
	healthy int
	// slots counts the taken slots of free and canary marks.
	slots int
	// outstanding counts the allocations that are leaving or will get a verdict.
	outstanding int
	// requested counts the allocations that hold a request for a replacement, and unanswered the marked ones of them.
	requested, unanswered int
	// stuck means that a marked allocation runs on, or has no requested replacement, on a draining node in touch.
	stuck bool
}

// tally counts a group.
func (m *snapshot) tally(g *group) *tally {
	t := &g.tally
	if t.snapshot == m.number {
		return t
	}
	*t = tally{snapshot: m.number}
	t.pace, t.exists = opinion.PaceOf(g.job.row, g.key.Name)
	for _, a := range g.members {
		t.slots += m.slots(a, t.pace)
		if !a.live() {
			continue
		}
		if a.healthy() {
			t.healthy++
		}
		if m.outstanding(a, t.pace) {
			t.outstanding++
		}
		if opinion.HoldsSurge(a.row) {
			if t.requested++; a.marked() {
				t.unanswered++
			}
		}
		if (a.marked() || unplaced(a)) && !a.stopping() && a.inTouch() && a.node.drain() != nil {
			t.stuck = true
		}
	}
	return t
}

// room is how many more paced marks the budget allows.
func (t *tally) room() int { return t.healthy - t.pace.Limit() }

// slotsLeft is how many more free and canary marks the group allows.
func (t *tally) slotsLeft() int { return max(1, t.pace.MaxParallel) - t.slots }

// slots counts the slots that the allocation takes. A free or canary mark takes one until the
// allocation ends. A healthy canary that left keeps its slot until its replacement has a verdict
// or is overdue: first the ended canary holds the slot, while an open evaluation may still place
// a replacement, and then the replacement.
func (m *snapshot) slots(a *alloc, p opinion.Pace) (slots int) {
	if !a.live() {
		if a.leftHealthy() && a.row.NextAllocation == "" && len(a.group.job.open) > 0 {
			return 1
		}
		return 0
	}
	if c := a.row.DesiredTransition.Class; c == cluster.MarkFree || c == cluster.MarkCanary {
		slots++
	}
	if m.unjudged(a, p) { // checked first, because it is rare
		if before := m.allocs[a.row.PreviousAllocation]; before != nil && before.leftHealthy() {
			slots++
		}
	}
	return slots
}

// unjudged reports whether a live allocation may still get its verdict in time.
func (m *snapshot) unjudged(a *alloc, p opinion.Pace) bool {
	_, judged := opinion.Verdict(a.row)
	return !judged && a.service() && a.row.ClientStatus != "unknown" && m.at.Before(p.Due(a.row, m.policy.HealthGrace))
}

// outstanding reports whether a live allocation may still change the group's numbers by itself.
func (m *snapshot) outstanding(a *alloc, p opinion.Pace) bool {
	return a.leaving() || !opinion.Canary(a.row) && opinion.Reachable(a.node.row) && m.unjudged(a, p)
}

// pending reports whether the job has a pending evaluation.
func (j *job) pending() bool {
	for _, e := range j.open {
		if e.Status == "pending" {
			return true
		}
	}
	return false
}

// blocked is the job's evaluation that waits for capacity for the group, or nil.
func (g *group) blocked() *cluster.Evaluation {
	for _, e := range g.job.open {
		if e.Status == "blocked" && (e.Queued == nil || e.Queued[g.key.Name] > 0) {
			return e
		}
	}
	return nil
}

// mayProceed reports whether a group may go below its limit: the policy allows it, and no
// outstanding allocation or pending evaluation may bring room.
func (m *snapshot) mayProceed(g *group) bool {
	t := m.tally(g)
	return m.policy.BelowBudget == rules.BelowBudgetProceed && t.room() <= 0 && t.outstanding == 0 && !g.job.pending()
}

// countMark counts a new mark or request, for those after it.
func (m *snapshot) countMark(a *alloc, mark rules.Mark) {
	t, c := m.tally(a.group), mark.Class
	if mark.Surge {
		if !opinion.HoldsSurge(a.row) {
			t.requested++
		}
		return
	}
	if healthyNow(m, a) {
		t.healthy--
	}
	t.healthy += activated(m, a)
	m.made = append(m.made, a.id())
	if opinion.HoldsSurge(a.row) {
		t.unanswered++
	}
	t.outstanding++
	if c == cluster.MarkFree || c == cluster.MarkCanary {
		t.slots++
	}
}
