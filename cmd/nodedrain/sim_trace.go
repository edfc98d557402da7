package main

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// tracer writes a trace of a world while it runs.
type tracer struct {
	trace *timeline.Trace
	world *world.World
	// told are what may have woken somebody, by step: the most telling thing of each.
	told map[int]timeline.Cause
	// asked are the steps in which the drainers' writes were proposed that have no answer
	// yet.
	asked map[drainerWrite]int
}

// drainerWrite tells a drainer's write from others.
type drainerWrite struct{ term, n int }

func newTracer(t *timeline.Trace, w *world.World) *tracer {
	return &tracer{trace: t, world: w, told: map[int]timeline.Cause{}, asked: map[drainerWrite]int{}}
}

// watch writes from now on.
func (t *tracer) watch() {
	w := t.world
	t.tells(timeline.ByElection, 0)
	t.event(nil, "elected", w.Leader(), "")
	w.OnApply(t.applied)
	w.OnElect(func(server int) {
		t.event(t.stepped(), "elected", server, fmt.Sprintf("term %d", w.Term()))
		t.tells(timeline.ByElection, 0)
	})
	w.OnEnd(func(term int) { t.event(t.stepped(), "deposed", -1, fmt.Sprintf("term %d", term)) })
	w.OnStrike(func(s world.Strike) {
		t.event(t.stepped(), "fault", -1, struck(s))
		t.tells(timeline.ByFault, 0)
	})
	w.OnDrainer(t.drainer)
	w.OnPropose(t.proposed)
	w.OnAnswer(t.answered)
}

func (t *tracer) applied(a world.Applied) {
	if a.Message == nil {
		t.trace.Event(t.moment(t.stepped(), -1), timeline.Event{Kind: "placed", Text: "past the log", Index: a.Index})
	} else {
		t.trace.Applied(t.moment(t.proposer(a.Index), t.world.Leader()), a)
	}
	t.tells(timeline.ByEntry, a.Index)
}

// proposer is who proposed the entry of an index.
func (t *tracer) proposer(index uint64) *timeline.Cause {
	e := t.world.Entry(index)
	if !e.Proposed { // what the world began with was before it was watched
		return &timeline.Cause{By: timeline.ByRace, Step: uint64(t.world.Steps())}
	}
	return &timeline.Cause{By: timeline.By(e.Source.String()), Step: uint64(e.Step)}
}

func (t *tracer) drainer(s world.DrainerStep) {
	cause, text := t.stepped(), "was woken"
	switch kind, _ := t.world.Step(); {
	case s.Woken:
	case kind == world.Drainer:
		cause.By, cause.Index, text = timeline.ByTimer, 0, "was due"
	default:
		text = "was not asked" // the last step on a store that is replaced
	}
	t.event(cause, "drainer", s.Server, text)
}

func (t *tracer) proposed(m world.Proposal) {
	text := fmt.Sprintf("term %d write %d: %s", m.Term, m.N, messageName(m.Message))
	if m.Taken {
		t.asked[drainerWrite{m.Term, m.N}] = t.world.Steps()
	} else {
		text += ", not taken"
	}
	t.event(&timeline.Cause{By: timeline.ByDrainer, Step: uint64(t.world.Steps())}, "proposed", t.world.Leader(), text)
}

func (t *tracer) answered(term, n int, a shims.Answer) {
	text := fmt.Sprintf("term %d write %d: %s", term, n, a.Outcome)
	if a.Err != nil {
		text += ", " + a.Err.Error()
	}
	write := drainerWrite{term, n}
	t.event(&timeline.Cause{By: timeline.ByDrainer, Step: uint64(t.asked[write])}, "answered", -1, text)
	delete(t.asked, write)
	t.tells(timeline.ByAnswer, 0)
}

// tells notes what happens in the step that is being taken. What comes first in it has
// woken who was woken in it, but for an election: nothing before it wakes the new leader.
func (t *tracer) tells(by timeline.By, index uint64) {
	step := t.world.Steps()
	if _, has := t.told[step]; !has || by == timeline.ByElection {
		t.told[step] = timeline.Cause{By: by, Step: uint64(step), Index: index}
	}
}

// stepped is what had happen the step that is being taken.
func (t *tracer) stepped() *timeline.Cause {
	kind, step := t.world.Step()
	cause, has := t.told[step]
	switch {
	case kind == world.Scripted && step == 0: // the scenario's are asked for before all else
		cause = timeline.Cause{By: timeline.ByOperation}
	case kind == world.Log || !has:
		cause = timeline.Cause{By: timeline.ByStep, Step: uint64(step)}
	}
	return &cause
}

func (t *tracer) moment(cause *timeline.Cause, server int) timeline.Moment {
	return timeline.Moment{
		Step: uint64(t.world.Steps()), At: t.world.Now().Sub(world.Epoch), Server: server, Cause: cause,
	}
}

func (t *tracer) event(cause *timeline.Cause, kind string, server int, text string) {
	t.trace.Event(t.moment(cause, server), timeline.Event{Kind: kind, Text: text})
}

func messageName(m shims.Message) string {
	if m == nil {
		return "barrier"
	}
	return m.Type().String()
}

// struck is a strike in words.
func struck(s world.Strike) string {
	text := string(s.Name)
	if s.Target != "" {
		text += " on " + s.Target
	}
	if s.For > 0 {
		text += " for " + s.For.String()
	}
	return text
}
