package live

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// faults are those that are armed. Their opportunities come from all goroutines.
type faults struct {
	chance *chance // never nil
	mu     sync.Mutex
	armed  []*fault // guarded by mu, as what they hold is
	// struck counts by name how often they did something; guarded by mu.
	struck map[scenario.FaultName]int
}

func newFaults(c *chance) *faults { return &faults{chance: c, struck: map[scenario.FaultName]int{}} }

// fault is a fault that is armed.
type fault struct {
	scenario.Fault
	// selector is what On selects, or nil if it names no allocations.
	selector *scenario.Selector
	// until is when it ends; zero is when it has struck as often as it may.
	until   time.Time
	strikes int
}

// arm arms a fault. Those that wait for no opportunity are for the caller to strike.
func (f *faults) arm(s scenario.Fault) error {
	armed := &fault{Fault: s}
	on := scenario.NoTarget
	for _, k := range scenario.Faults() {
		if k.Name == s.Name {
			on = k.On
		}
	}
	if s.On != "" && (on == scenario.OnAllocs || on == scenario.OnJob || on == scenario.OnGroup) {
		selector, err := scenario.ParseSelector(s.On)
		if err != nil {
			return fmt.Errorf("arming %s on %q: %w", s.Name, s.On, err)
		}
		armed.selector = &selector
	}
	if s.For > 0 {
		armed.until = time.Now().Add(s.For)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = append(f.armed, armed)
	return nil
}

// disarm ends all faults.
func (f *faults) disarm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed = nil
}

// target is what an opportunity is about. The zero value is nothing in particular.
type target struct {
	words []string // names that scenarios have for it, or nil
	// alloc is the allocation, or nil; group the group, or nil.
	alloc *cluster.Allocation
	group *cluster.GroupKey
}

// strike says whether a fault of that name strikes, this being its opportunity, and
// what it draws for a delay.
func (f *faults) strike(name scenario.FaultName, t target) (delay time.Duration, strikes bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	f.armed = slices.DeleteFunc(f.armed, func(a *fault) bool { return a.ended(now) })
	for _, a := range f.armed {
		if a.Name == name && a.hits(t) && f.takes(a, t) {
			a.strikes++
			f.struck[name]++
			return f.chance.draw("delay/"+string(name), a.Delay), true
		}
	}
	return 0, false
}

// ended reports whether the fault can strike no more.
func (f *fault) ended(now time.Time) bool {
	if !f.until.IsZero() && !now.Before(f.until) {
		return true
	}
	limit := f.Count
	if limit == 0 && f.until.IsZero() {
		limit = 1
	}
	return limit > 0 && f.strikes >= limit
}

// hits reports whether the fault is one of that target.
func (f *fault) hits(t target) bool {
	switch {
	case f.On == "":
		return true
	case f.selector == nil:
		return slices.Contains(t.words, f.On)
	case t.alloc != nil:
		return f.selector.Matches(t.alloc)
	case t.group != nil:
		return (f.selector.Job.ID == "" || f.selector.Job == t.group.Job) && (f.selector.Group == "" || f.selector.Group == t.group.Name)
	}
	return false
}

// takes draws whether the fault takes its opportunity. For an allocation the draw is
// the deterministic run's.
func (f *faults) takes(a *fault, t target) bool {
	switch {
	case a.Probability == 0 || a.Probability >= 1:
		return true
	case t.alloc != nil:
		name := fmt.Sprintf("fault/%s/%s@%s", a.Name, t.alloc.Name, t.alloc.NodeID)
		return world.Stream(f.chance.seed, name).Float64() < a.Probability
	}
	return f.chance.likely("fault/"+string(a.Name), a.Probability)
}
