package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// snapshot is a state at a time, judged by a policy. It holds what the contract says of it,
// formed without a look at how the drainer does.
type snapshot struct {
	*tables
	at     time.Time
	policy rules.Policy
	// number distinguishes the counts of this snapshot from older ones.
	number uint64
}

// snapshot begins a snapshot of the tables as they are. Counts of an earlier snapshot
// is not used again.
func (b *tables) snapshot(at time.Time, p rules.Policy) *snapshot {
	b.snapshots++
	return &snapshot{tables: b, at: at, policy: p, number: b.snapshots}
}

// tally is a group in numbers, at one snapshot.
type tally struct {
	snapshot uint64
	pace     opinion.Pace
	// exists says that the job and the group are in the job's current version.
	exists bool
	// healthy are the healthy ones, wherever they are.
	healthy int
	// slots are the slots for free and canary marks that are taken.
	slots int
	// outstanding are those whose mark, stop or verdict is still to have its effect.
	outstanding int
	// stuck says that one that was marked runs on, on a draining node in touch.
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
		if a.marked() && !a.stopping() && a.inTouch() && a.node.drain() != nil {
			t.stuck = true
		}
	}
	return t
}

// room is how many paced marks the budget leaves.
func (t *tally) room() int { return t.healthy - t.pace.Limit() }

// slotsLeft is how many free and canary marks may still be made.
func (t *tally) slotsLeft() int { return max(1, t.pace.MaxParallel) - t.slots }

// slots counts the slots the allocation takes: one while it is to leave under a
// free or canary mark; and one in the place of a healthy canary that has left,
// from its end until its replacement has a verdict or is overdue. As long as an
// evaluation may still bring that replacement, the canary holds it itself.
func (m *snapshot) slots(a *alloc, p opinion.Pace) (slots int) {
	if !a.live() {
		if a.leftWell() && a.row.NextAllocation == "" && len(a.group.job.open) > 0 {
			return 1
		}
		return 0
	}
	if c := a.row.DesiredTransition.Class; c == cluster.MarkFree || c == cluster.MarkCanary {
		slots++
	}
	if m.unjudged(a, p) { // few are
		if before := m.allocs[a.row.PreviousAllocation]; before != nil && before.leftWell() {
			slots++
		}
	}
	return slots
}

// unjudged reports whether a verdict on a live allocation is still to come in time.
func (m *snapshot) unjudged(a *alloc, p opinion.Pace) bool {
	_, given := opinion.Verdict(a.row)
	return !given && a.service() && a.row.ClientStatus != "unknown" && m.at.Before(p.Due(a.row, m.policy.HealthGrace))
}

// outstanding reports whether something about a live allocation may still change
// the group's numbers by itself.
func (m *snapshot) outstanding(a *alloc, p opinion.Pace) bool {
	return a.leaving() || !opinion.Canary(a.row) && opinion.Reachable(a.node.row) && m.unjudged(a, p)
}

// pending reports whether an evaluation of the job waits for the scheduler.
func (j *job) pending() bool {
	for _, e := range j.open {
		if e.Status == "pending" {
			return true
		}
	}
	return false
}

// blocked is the evaluation of the job that waits for capacity for the group, or
// nil.
func (g *group) blocked() *cluster.Evaluation {
	for _, e := range g.job.open {
		if e.Status == "blocked" && (e.Queued == nil || e.Queued[g.key.Name] > 0) {
			return e
		}
	}
	return nil
}

// mayProceed reports whether a group below its budget may give one up: the policy
// says so and nothing is on its way that could mend it.
func (m *snapshot) mayProceed(g *group) bool {
	t := m.tally(g)
	return m.policy.BelowBudget == rules.BelowBudgetProceed && t.room() <= 0 && t.outstanding == 0 && !g.job.pending()
}

// take counts a mark that is made, for those that are judged after it.
func (m *snapshot) take(a *alloc, c cluster.MarkClass) {
	t := m.tally(a.group)
	if a.healthy() {
		t.healthy--
	}
	t.outstanding++
	if c == cluster.MarkFree || c == cluster.MarkCanary {
		t.slots++
	}
}
