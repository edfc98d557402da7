package setting

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Armed is a fault that waits for its opportunities. Make it with [Arm].
type Armed struct {
	scenario.Fault
	// selector is the parsed On, or nil if On is not a selector.
	selector *scenario.Selector
	// until is the time of its end. With zero it ends after its last strike.
	until   time.Time
	strikes int
}

// Arm arms a fault. It returns an error if the target is not a valid selector.
func Arm(f scenario.Fault, now time.Time) (*Armed, error) {
	armed := &Armed{Fault: f}
	if f.On != "" && (f.On[0] == '@' || selects(f.Name)) {
		selector, err := scenario.ParseSelector(f.On)
		if err != nil {
			return nil, fmt.Errorf("arming %s on %q: %w", f.Name, f.On, err)
		}
		armed.selector = &selector
	}
	if f.For > 0 {
		armed.until = now.Add(f.For)
	}
	return armed, nil
}

// selects reports whether the target of a fault is a selector.
func selects(name scenario.FaultName) bool {
	on := name.Kind().On
	return on == scenario.OnAllocs || on == scenario.OnJob || on == scenario.OnGroup
}

// Target is the target of an opportunity. The zero value is no target.
type Target struct {
	// Words are its names in scenarios, the most specific first, or nil.
	Words []string
	// Alloc is the allocation, or nil; Group the group, or nil.
	Alloc *cluster.Allocation
	Group *cluster.GroupKey
}

// String names the target, or is empty.
func (t Target) String() string {
	switch {
	case len(t.Words) > 0:
		return t.Words[0]
	case t.Alloc != nil:
		return t.Alloc.Name + "@" + string(t.Alloc.NodeID)
	case t.Group != nil:
		return t.Group.String()
	}
	return ""
}

// Hits reports whether the fault strikes at this target.
func (a *Armed) Hits(t Target) bool {
	switch {
	case a.On == "":
		return true
	case a.selector == nil:
		return slices.Contains(t.Words, a.On)
	case t.Alloc != nil:
		return a.selector.Matches(t.Alloc)
	case t.Group != nil:
		return (a.selector.Job.ID == "" || a.selector.Job == t.Group.Job) && (a.selector.Group == "" || a.selector.Group == t.Group.Name)
	}
	return false
}

// Certain reports whether it strikes at every opportunity.
func (a *Armed) Certain() bool { return a.Probability == 0 || a.Probability >= 1 }

// Strike counts a strike.
func (a *Armed) Strike() { a.strikes++ }

// Missed reports whether the fault had no opportunity: it would have struck at the first one, and
// has not struck.
func (a *Armed) Missed() bool { return a.Certain() && a.strikes == 0 }

// Ended reports whether the fault can no longer strike.
func (a *Armed) Ended(now time.Time) bool {
	if !a.until.IsZero() && !now.Before(a.until) {
		return true
	}
	limit := a.Count
	if limit == 0 && a.until.IsZero() {
		limit = 1
	}
	return limit > 0 && a.strikes >= limit
}
