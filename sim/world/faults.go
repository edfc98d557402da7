package world

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// faults are those that are armed, and what they have done.
type faults struct {
	armed []*fault
	// onStrike are told of every strike.
	onStrike []func(Strike)
	// ends is what is to be undone when the faults end, undos counts what ever was.
	ends  []undo
	undos int
	// calms counts how often the faults have ended, pending what they have yet to do.
	calms, pending int
	// keys counts the keys that requests were given which come again.
	keys int
	// evals are the evaluations that were an opportunity.
	evals map[cluster.EvalID]bool
}

// fault is a fault that is armed, target what an opportunity is about.
type (
	fault  = setting.Armed
	target = setting.Target
)

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
	armed, err := setting.Arm(f, w.now)
	if err != nil {
		return err
	}
	return w.Expose(armed)
}

// Expose exposes the world to a fault that whoever calls has armed, and may ask later
// whether it has struck.
func (w *World) Expose(armed *setting.Armed) error {
	switch armed.Name { // they strike now or never
	case scenario.NodeCrash, scenario.NodeDisconnect:
		return w.loseNode(armed)
	case scenario.SchedUnplaceable:
		return w.cordonAll(armed)
	}
	w.faults.armed = append(w.faults.armed, armed)
	if armed.Name == scenario.LeaderFlap {
		w.flap()
	}
	return nil
}

// armedAny reports whether any fault of that name is armed.
func (f *faults) armedAny(name scenario.FaultName) bool {
	return slices.ContainsFunc(f.armed, func(a *fault) bool { return a.Name == name })
}

// strike says whether a fault of that name strikes, this being its opportunity, and
// what it draws for a delay.
func (w *World) strike(name scenario.FaultName, t target) (delay time.Duration, strikes bool) {
	for _, f := range w.faults.armed {
		if f.Name == name && f.Hits(t) && !f.Ended(w.now) && w.chance(f, t) {
			return w.struck(f, t), true
		}
	}
	return 0, false
}

// chance draws whether an opportunity is taken. Each allocation has a stream of its
// own: one more or less changes nothing for the others.
func (w *World) chance(f *fault, t target) bool {
	if f.Certain() {
		return true
	}
	name := "fault/" + string(f.Name)
	if t.Alloc != nil {
		return Stream(w.options.Seed, name+"/"+t.String()).Float64() < f.Probability
	}
	return w.streams.of(name).Float64() < f.Probability
}

// struck notes a strike and draws its delay.
func (w *World) struck(f *fault, t target) time.Duration {
	f.Strike()
	w.spent.outside()
	delay := w.draw("delay/"+string(f.Name), f.Delay)
	s := Strike{Name: f.Name, Target: t.String(), At: w.now.Sub(Epoch), For: delay}
	w.hash.bytes([]byte(string(s.Name) + s.Target))
	for _, tell := range w.faults.onStrike {
		tell(s)
	}
	if f.Ended(w.now) {
		w.faults.armed = slices.DeleteFunc(w.faults.armed, func(o *fault) bool { return o == f })
	}
	return delay
}
