package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// G1 budget: a paced mark leaves, in the state in which it is applied and over all
// draining nodes at once, at least count − max_parallel healthy allocations in its
// group. A mark of another class is applied only if that class holds there.

// checkClass judges the class of a mark on an allocation that could leave as the
// ruling says.
func (m *snapshot) checkClass(a *alloc, c cluster.MarkClass, r ruling) verdict {
	t := m.tally(a.group)
	switch {
	case r.class == cluster.MarkNone:
		return fails(ClassUntrue, "it is held: "+r.hold.String())
	case c == cluster.MarkProceed && r.class == cluster.MarkPaced:
		if !m.mayProceed(a.group) {
			return fails(ClassUntrue, t.String()+" and may not go further below its budget")
		}
	case c != r.class:
		return fails(ClassUntrue, fmt.Sprintf("its class here is %s", r.class))
	case c == cluster.MarkPaced && t.room() <= 0:
		return fails(BelowLimit, t.String())
	case (c == cluster.MarkFree || c == cluster.MarkCanary) && t.slotsLeft() <= 0:
		return fails(SlotsTaken, fmt.Sprintf("%d moves of its group that take no room are under way, max_parallel %d", t.slots, t.pace.MaxParallel))
	}
	return held()
}

// String is the tally in numbers.
func (t *tally) String() string {
	return fmt.Sprintf("its group has %d healthy of %d, max_parallel %d", t.healthy, t.pace.Count, t.pace.MaxParallel)
}

// checkPolicy holds the policy that an entry carries to the configured one: by
// another, a class would hold that does not.
func (j *facts) checkPolicy(p rules.Policy) {
	o := Options{Policy: p}.withDefaults()
	if o.Policy != j.options.Policy {
		j.find(ClassUntrue, Violation{}, "an entry judges by the policy %+v and not by %+v", o.Policy, j.options.Policy)
	}
}
