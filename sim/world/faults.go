package world

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// faults are those that are armed, and what they have done.
type faults struct {
	armed []*fault
	// onStrike are told of every strike.
	onStrike []func(Strike)
	// ends is what is to be undone when the faults end, undos counts what ever was.
	ends  []undo
	undos int
	// calms counts how often the faults have ended.
	calms int
	// evals are the evaluations that were an opportunity.
	evals map[cluster.EvalID]bool
}

// fault is a fault that is armed.
type fault struct {
	scenario.Fault
	// selector is what On selects, or nil if it names no allocations.
	selector *scenario.Selector
	// until is when it ends; zero is when it has struck as often as it may.
	until   time.Time
	strikes int
}

// Strike is one time that a fault did something.
type Strike struct {
	Name   scenario.FaultName
	Target string // or empty
	At     time.Duration
	// For is how long what it did lasts, or how late it made something.
	For time.Duration
}

// OnStrike calls f whenever a fault strikes.
func (w *World) OnStrike(f func(Strike)) { w.faults.onStrike = append(w.faults.onStrike, f) }

// Arm arms a fault. Those that wait for no opportunity strike at once.
func (w *World) Arm(f scenario.Fault) error {
	armed := &fault{Fault: f}
	if f.On != "" && (f.On[0] == '@' || selects(f.Name)) {
		selector, err := scenario.ParseSelector(f.On)
		if err != nil {
			return fmt.Errorf("arming %s on %q: %w", f.Name, f.On, err)
		}
		armed.selector = &selector
	}
	if f.For > 0 {
		armed.until = w.now.Add(f.For)
	}
	w.faults.armed = append(w.faults.armed, armed)
	switch f.Name {
	case scenario.NodeCrash, scenario.NodeDisconnect:
		return w.loseNode(armed)
	case scenario.SchedUnplaceable:
		return w.cordonAll(armed)
	case scenario.LeaderFlap:
		w.flap()
	}
	return nil
}

// armedAny reports whether any fault of that name is armed.
func (f *faults) armedAny(name scenario.FaultName) bool {
	return slices.ContainsFunc(f.armed, func(a *fault) bool { return a.Name == name })
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

// selects reports whether the fault is on what a selector matches.
func selects(name scenario.FaultName) bool {
	i := slices.IndexFunc(scenario.Faults(), func(k scenario.FaultKind) bool { return k.Name == name })
	if i < 0 {
		return false
	}
	on := scenario.Faults()[i].On
	return on == scenario.OnAllocs || on == scenario.OnJob || on == scenario.OnGroup
}

// target is what an opportunity is about. The zero value is nothing in particular.
type target struct {
	// words are the names that scenarios have for it, the most telling first; or nil.
	words []string
	// alloc is the allocation, or nil; group the group, or nil.
	alloc *cluster.Allocation
	group *cluster.GroupKey
}

func (t target) String() string {
	switch {
	case len(t.words) > 0:
		return t.words[0]
	case t.alloc != nil:
		return t.alloc.Name + "@" + string(t.alloc.NodeID)
	case t.group != nil:
		return t.group.String()
	}
	return ""
}

// strike says whether a fault of that name strikes, this being its opportunity, and
// what it draws for a delay.
func (w *World) strike(name scenario.FaultName, t target) (delay time.Duration, strikes bool) {
	for _, f := range w.faults.armed {
		if f.Name == name && f.hits(t) && !f.ended(w.now) && w.chance(f, t) {
			return w.struck(f, t), true
		}
	}
	return 0, false
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

// chance draws whether an opportunity is taken. Each allocation has a stream of its
// own: one more or less changes nothing for the others.
func (w *World) chance(f *fault, t target) bool {
	if f.Probability == 0 || f.Probability >= 1 {
		return true
	}
	name := "fault/" + string(f.Name)
	if t.alloc != nil {
		return Stream(w.options.Seed, name+"/"+t.String()).Float64() < f.Probability
	}
	return w.streams.of(name).Float64() < f.Probability
}

// struck notes a strike and draws its delay.
func (w *World) struck(f *fault, t target) time.Duration {
	f.strikes++
	delay := w.draw("delay/"+string(f.Name), f.Delay)
	s := Strike{Name: f.Name, Target: t.String(), At: w.now.Sub(Epoch), For: delay}
	w.hash.bytes([]byte(string(s.Name) + s.Target))
	for _, tell := range w.faults.onStrike {
		tell(s)
	}
	if f.ended(w.now) {
		w.faults.armed = slices.DeleteFunc(w.faults.armed, func(o *fault) bool { return o == f })
	}
	return delay
}
