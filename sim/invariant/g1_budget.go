package invariant

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// G1 budget: a paced mark leaves at least count − max_parallel healthy allocations in its
// group, in the state where it is applied and over all draining nodes together. A mark of
// another class is applied only if the contract allows the class there. The healthy allocations are
// those whose clients reported so last.

// checkClass compares the class of a mark with the ruling for its allocation.
func (m *snapshot) checkClass(a *alloc, c cluster.MarkClass, r ruling) verdict {
	t := m.tally(a.group)
	switch {
	case r.class == cluster.MarkNone:
		return fails(WrongClass, "it may not leave: "+r.hold.String())
	case c == cluster.MarkProceed && r.class == cluster.MarkPaced:
		if !m.mayProceed(a.group) {
			return fails(WrongClass, t.String()+" and may not go below its limit")
		}
	case c != r.class:
		return fails(WrongClass, fmt.Sprintf("its class must be %s", r.class))
	case c == cluster.MarkPaced && t.room() <= 0:
		return fails(BelowLimit, t.String())
	case (c == cluster.MarkFree || c == cluster.MarkCanary) && t.slotsLeft() <= 0:
		return fails(SlotsTaken, fmt.Sprintf("its group has %d free and canary marks under way, max_parallel %d", t.slots, t.pace.MaxParallel))
	}
	return allowed()
}

// judgeVerdicts compares the verdicts of an entry's reports with the rows after it. An entry holds
// one report of an allocation.
func (j *facts) judgeVerdicts(e *entry, m *shims.AllocClientUpdate) {
	for _, r := range m.Reports {
		before, after := j.tables.allocs[r.Alloc], e.After.Alloc(r.Alloc)
		if r.Healthy == nil || before == nil || !before.live() || before.node.id != r.Node || after == nil {
			continue
		}
		if d := after.DeploymentStatus; d == nil || d.Healthy == nil || *d.Healthy != *r.Healthy {
			j.find(VerdictLost, of(before), "its client reported healthy=%t", *r.Healthy)
		}
	}
}

// String returns the numbers of the budget.
func (t *tally) String() string {
	return fmt.Sprintf("its group has %d healthy of %d, max_parallel %d", t.healthy, t.pace.Count, t.pace.MaxParallel)
}

// checkPolicy compares the policy of an entry with the configured one. Another policy would
// allow other classes.
func (j *facts) checkPolicy(p rules.Policy) {
	o := Options{Policy: p}.withDefaults()
	if o.Policy != j.options.Policy {
		j.find(WrongClass, Violation{}, "the entry carries the policy %+v, and the configured one is %+v", o.Policy, j.options.Policy)
	}
}
