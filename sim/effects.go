package sim

import (
	"cmp"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// Vain is an event that nothing has come of: whoever wrote it meant something, and is
// told so.
type Vain struct {
	// Event is which of the scenario's events, from 0, and Line where it stands in its
	// file, or zero if it was not read.
	Event, Line int
	// Why is why nothing came of it.
	Why string
}

// effects are what has come of the events of a scenario.
type effects struct {
	events []scenario.Event
	each   []effect // of the event of that number
	now    int      // the one that happens
}

// effect is what has come of an event.
type effect struct {
	// due says that its time has come, begun that it has happened: what comes before an
	// entry waits for one.
	due, begun bool
	// did says that something came of it, or that nobody can know.
	did bool
	// armed is the fault that it armed, or nil.
	armed *setting.Armed
	// why is why nothing came of it, as far as it was seen to, or empty.
	why string
}

func newEffects(s *scenario.Scenario) effects {
	return effects{events: s.Events, each: make([]effect, len(s.Events))}
}

// due notes that the time of some events has come, which are numbered from first on.
func (e *effects) due(first, count int) {
	for i := range count {
		e.each[first+i].due = true
	}
}

// begin notes that an event happens.
func (e *effects) begin(event int) {
	e.now = event
	e.of().begun = true
}

// of is what comes of the event that happens.
func (e *effects) of() *effect { return &e.each[e.now] }

// answered returns what is to be told of the answer to a write that the event that
// happens asks for.
func (e *effects) answered() func(shims.Answer) {
	of := e.of()
	return func(a shims.Answer) {
		if why := nothingCameOf(a); why != "" {
			of.nothing(why)
		} else {
			of.did = true
		}
	}
}

// nothing notes why nothing came of it, or of a part.
func (f *effect) nothing(why string) { f.why = cmp.Or(f.why, why) }

// nothingCameOf says why a write that was asked for has changed nothing, or is empty. What
// a fault has made of it is no matter of who asked.
func nothingCameOf(a shims.Answer) string {
	if a.Outcome != raftwrite.Applied {
		return ""
	}
	switch r := a.Response.(type) {
	case shims.Refused:
		return r.Err.Error()
	case shims.DrainRequestApplied:
		switch {
		case r.Drain == "":
			return "the node does not drain"
		case r.Repeated:
			return "a request with its key was there before"
		}
	}
	return ""
}

// vain are the events that nothing came of and that are not meant so.
func (e *effects) vain() []Vain {
	var all []Vain
	for i := range e.each {
		if why := e.each[i].vain(&e.events[i]); why != "" && !e.events[i].Maybe {
			all = append(all, Vain{Event: i, Line: e.events[i].Line, Why: why})
		}
	}
	return all
}

// vain says why nothing came of an event, or is empty.
func (f *effect) vain(of *scenario.Event) string {
	switch {
	case !f.due: // the run was over before
		return ""
	case !f.begun:
		return fmt.Sprintf("no entry of %s comes from then on", of.Before)
	case f.armed != nil && f.armed.Missed():
		return fmt.Sprintf("%s never strikes", f.armed.Name)
	case f.armed != nil || f.did:
		return ""
	}
	return f.why
}
