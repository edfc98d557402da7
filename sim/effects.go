package sim

import (
	"cmp"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/setting"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// NoEffect is an event of a scenario that had no effect. It is likely a mistake of its
// author.
type NoEffect struct {
	// Event is the index of the event in the scenario. Line is its line in the file, or
	// zero if the scenario was not read from a file.
	Event, Line int
	// Why is the reason.
	Why string
}

// effects are the effects of a scenario's events.
type effects struct {
	events []scenario.Event
	each   []effect // by index of the event
	now    int      // the index of the event that runs
}

// effect is the effect of one event.
type effect struct {
	// due: the event's time has come. started: the event has run: events
	// before an entry wait for one.
	due, started bool
	// found: the event had an effect, or its effect is unknown.
	found bool
	// armed is the fault that the event armed, or nil.
	armed *setting.Armed
	// pointless is why the event has no effect, although the servers accepted it, or empty.
	pointless string
	// why is the first reason for no effect, or empty.
	why string
}

func newEffects(s *scenario.Scenario) effects {
	return effects{events: s.Events, each: make([]effect, len(s.Events))}
}

// due notes that the time of count events has come, from the index first on.
func (e *effects) due(first, count int) {
	for i := range count {
		e.each[first+i].due = true
	}
}

// start notes that an event runs.
func (e *effects) start(event int) {
	e.now = event
	e.current().started = true
}

// current is the effect of the event that runs.
func (e *effects) current() *effect { return &e.each[e.now] }

// Answered implements [world.Effect].
func (f *effect) Answered(a shims.Answer) {
	if why := unchanged(a); why != "" {
		f.Nothing(why)
	} else {
		f.found = true
	}
}

// Found implements [world.Effect].
func (f *effect) Found() { f.found = true }

// Nothing implements [world.Effect]. It notes why an event, or a part of it, had no effect.
func (f *effect) Nothing(why string) { f.why = cmp.Or(f.why, why) }

// unchanged returns why a write has changed nothing, or is empty. A write that failed because
// of a fault counts as an effect.
func unchanged(a shims.Answer) string {
	if a.Outcome != raftwrite.Applied {
		return ""
	}
	switch r := a.Response.(type) {
	case shims.Refused:
		return r.Err.Error()
	case shims.PlanApplied:
		if len(r.Refused) > 0 && len(r.Accepted.Stops) == 0 && len(r.Accepted.Places) == 0 {
			return "the servers refused the plan: " + r.Refused[0].Why
		}
	case shims.DrainConfirmed:
		if r.Allocs == 0 {
			return "the record of the drain counts no unconfirmed allocation"
		}
	case shims.DrainRequestApplied:
		switch {
		case r.Drain == "":
			return "the node does not drain"
		case r.Repeated:
			return "an earlier request had the same key"
		}
	}
	return ""
}

// none are the events without an effect, except those that the scenario marks with maybe.
func (e *effects) none() []NoEffect {
	var all []NoEffect
	for i := range e.each {
		if why := e.each[i].missing(&e.events[i]); why != "" && !e.events[i].Maybe {
			all = append(all, NoEffect{Event: i, Line: e.events[i].Line, Why: why})
		}
	}
	return all
}

// missing returns why an event had no effect, or is empty.
func (f *effect) missing(of *scenario.Event) string {
	switch {
	case !f.due: // the run ended before
		return ""
	case !f.started:
		return fmt.Sprintf("no entry of %s comes after that time", of.Before)
	case f.pointless != "":
		return f.pointless
	case f.armed != nil && f.armed.Missed():
		return fmt.Sprintf("%s never strikes", f.armed.Name)
	case f.armed != nil || f.found:
		return ""
	}
	return f.why
}
