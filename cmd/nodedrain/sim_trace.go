package main

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// tracer writes a trace of a world while it runs. A step without an event has a line only if
// another line names it as its cause. Its line then precedes that line.
type tracer struct {
	trace *timeline.Trace
	world *world.World
	// told are the causes that may have woken a component, by step. The map keeps the first of
	// each step, or its election.
	told map[int]timeline.Cause
	// asked are the steps that proposed the drainers' unanswered writes.
	asked map[drainerWrite]int
	// untold are the steps without a line, by number. lined is the step of the newest line;
	// began is the start time of the present step.
	untold map[int]untold
	lined  int
	began  time.Duration
	// entries are the steps that applied entries, by index.
	entries map[uint64]int
}

// untold is a step without an event.
type untold struct {
	kind  world.Kind
	cause int // the step that requested it
	at    time.Duration
}

// drainerWrite identifies a drainer's write.
type drainerWrite struct{ term, n int }

func newTracer(t *timeline.Trace, w *world.World) *tracer {
	return &tracer{trace: t, world: w, told: map[int]timeline.Cause{}, asked: map[drainerWrite]int{},
		untold: map[int]untold{}, entries: map[uint64]int{}}
}

// watch starts the trace.
func (t *tracer) watch() {
	w := t.world
	t.tells(timeline.ByElection, 0)
	t.event(nil, "elected", w.Leader(), "")
	w.OnStep(t.begins)
	w.Observe(world.Observer{
		Applied: t.applied,
		Elected: func(server int) {
			t.event(t.stepped(), "elected", server, fmt.Sprintf("term %d", w.Term()))
			t.tells(timeline.ByElection, 0)
		},
		TermEnded: func(term int) { t.event(t.stepped(), "deposed", -1, fmt.Sprintf("term %d", term)) },
		Struck: func(s world.Strike) {
			t.event(t.stepped(), "fault", -1, struck(s))
			t.tells(timeline.ByFault, 0)
		},
		ClockSet: t.clock(),
		Restored: func(*statestore.Snapshot, *statestore.Snapshot) { t.event(t.stepped(), "restored", -1, "") },
		Stepped:  t.drainer,
		Proposed: t.proposed,
		Answered: t.answered,
	})
}

// begins records the last step before the next one begins.
func (t *tracer) begins(last int) error {
	if kind, cause := t.world.Step(); last > t.lined {
		t.untold[last] = untold{kind, cause, t.began}
	}
	t.began = t.now()
	return nil
}

// clock returns a function that writes a line when the clock of a term's server is set.
func (t *tracer) clock() func(term int, ahead time.Duration) {
	last := map[int]time.Duration{} // by term
	return func(term int, ahead time.Duration) {
		if was, has := last[term]; has && was != ahead {
			t.event(t.stepped(), "clock", -1, fmt.Sprintf("term %d: %s ahead", term, ahead))
		}
		last[term] = ahead
	}
}

func (t *tracer) applied(a world.Applied) {
	t.entries[a.Index] = t.world.Steps()
	if a.Message == nil {
		t.trace.Event(t.position(t.stepped(), -1), timeline.Event{Kind: "placed", Text: "past the log", Index: a.Index})
	} else {
		cause := t.proposer(a.Index)
		t.worked(cause, a)
		t.trace.Applied(t.position(cause, t.world.Leader()), a)
	}
	t.tells(timeline.ByEntry, a.Index)
}

// proposer returns the cause that proposed the entry at an index.
func (t *tracer) proposer(index uint64) *timeline.Cause {
	e := t.world.Log.Entry(index)
	if !e.Proposed { // an initial entry, applied before the trace began
		return &timeline.Cause{By: timeline.ByRace, Step: uint64(t.world.Steps())}
	}
	return &timeline.Cause{By: timeline.By(e.Source.String()), Step: uint64(e.Step)}
}

// worked writes a line for a step in which clients reported, if the step has none. Its cause is
// the last server write to the first reported allocation, not the clients' timer: the write
// explains the report.
func (t *tracer) worked(cause *timeline.Cause, a world.Applied) {
	m, is := a.Message.(*shims.AllocClientUpdate)
	step := int(cause.Step)
	u, has := t.untold[step]
	if !is || !has || len(m.Reports) == 0 {
		return
	}
	alloc := a.Before.Alloc(m.Reports[0].Alloc)
	if alloc == nil {
		return
	}
	asked, applied := t.entries[alloc.AllocModifyIndex]
	if !applied || asked >= step {
		return
	}
	delete(t.untold, step)
	t.trace.Event(timeline.Position{
		Step: cause.Step, At: u.at, Server: -1,
		Cause: &timeline.Cause{By: timeline.ByEntry, Step: uint64(asked), Index: alloc.AllocModifyIndex},
	}, timeline.Event{Kind: u.kind.String(), Text: "reports of the servers' changes", Allocs: []cluster.AllocID{alloc.ID}})
}

func (t *tracer) drainer(s world.DrainerStep) {
	cause, text := t.stepped(), "was woken"
	switch kind, _ := t.world.Step(); {
	case s.Woken:
	case kind == world.Drainer:
		cause.By, cause.Index, text = timeline.ByTimer, 0, "was due"
	default:
		text = "was not due" // the last step on a replaced store
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

// tells records a cause in the present step. The first cause of a step woke all components
// woken in it. An election replaces it: nothing before the election wakes the new leader.
func (t *tracer) tells(by timeline.By, index uint64) {
	step := t.world.Steps()
	if _, has := t.told[step]; !has || by == timeline.ByElection {
		t.told[step] = timeline.Cause{By: by, Step: uint64(step), Index: index}
	}
}

// stepped returns the cause of the present step.
func (t *tracer) stepped() *timeline.Cause {
	kind, step := t.world.Step()
	return t.cause(kind, step)
}

// cause returns the cause of a step of a kind that another step requested.
func (t *tracer) cause(kind world.Kind, step int) *timeline.Cause {
	cause, has := t.told[step]
	switch {
	case kind == world.Scripted && step == 0: // the scenario requests its operations before the first step
		cause = timeline.Cause{By: timeline.ByOperation}
	case kind == world.Log || !has:
		cause = timeline.Cause{By: timeline.ByStep, Step: uint64(step)}
	}
	return &cause
}

// position returns the current position for the next line, after the lines of its causes.
func (t *tracer) position(cause *timeline.Cause, server int) timeline.Position {
	t.tell(cause)
	t.lined = t.world.Steps()
	return timeline.Position{Step: uint64(t.lined), At: t.now(), Server: server, Cause: cause}
}

// tell writes the missing lines of the step that a cause names and of the causes before it, in
// order. A cause may be nil.
func (t *tracer) tell(cause *timeline.Cause) {
	var lines []timeline.Position
	var kinds []world.Kind
	for cause != nil {
		step := int(cause.Step)
		u, is := t.untold[step]
		if !is {
			break
		}
		delete(t.untold, step)
		cause = t.cause(u.kind, u.cause)
		lines = append(lines, timeline.Position{Step: uint64(step), At: u.at, Server: -1, Cause: cause})
		kinds = append(kinds, u.kind)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		t.trace.Event(lines[i], timeline.Event{Kind: kinds[i].String()})
	}
}

// now is the time since the run began.
func (t *tracer) now() time.Duration { return t.world.Now().Sub(world.Epoch) }

func (t *tracer) event(cause *timeline.Cause, kind string, server int, text string) {
	t.trace.Event(t.position(cause, server), timeline.Event{Kind: kind, Text: text})
}

func messageName(m shims.Message) string {
	if m == nil {
		return "barrier"
	}
	return m.Type().String()
}

// struck describes a strike.
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
