package sim

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
	// wakers are the causes that may have woken a component, by step. The map keeps the first of
	// each step, or its election.
	wakers map[int]timeline.Cause
	// proposers are the steps that proposed the drainers' unanswered writes.
	proposers map[drainerWrite]int
	// unwritten are the steps without a line, by number. lastWritten is the step of the newest
	// line. began is the start time of the present step.
	unwritten   map[int]silentStep
	lastWritten int
	began       time.Duration
	// appliers are the steps that applied entries, by index.
	appliers map[uint64]int
}

// silentStep is a step without an event.
type silentStep struct {
	kind  world.Kind
	cause int // the step that requested it
	at    time.Duration
}

// drainerWrite identifies a drainer's write.
type drainerWrite struct{ term, n int }

func newTracer(t *timeline.Trace, w *world.World) *tracer {
	return &tracer{trace: t, world: w, wakers: map[int]timeline.Cause{}, proposers: map[drainerWrite]int{},
		unwritten: map[int]silentStep{}, appliers: map[uint64]int{}}
}

// watch starts the trace.
func (t *tracer) watch() {
	w := t.world
	t.recordWaker(timeline.ByElection, 0)
	t.event(nil, "elected", w.Leader(), "")
	w.OnStep(t.beforeStep)
	w.Observe(world.Observer{
		Applied: t.applied,
		Elected: func(server int) {
			t.event(t.stepCause(), "elected", server, fmt.Sprintf("term %d", w.Term()))
			t.recordWaker(timeline.ByElection, 0)
		},
		TermEnded: func(term int) { t.event(t.stepCause(), "deposed", -1, fmt.Sprintf("term %d", term)) },
		Struck: func(s world.Strike) {
			t.event(t.stepCause(), "fault", -1, describeStrike(s))
			t.recordWaker(timeline.ByFault, 0)
		},
		ClockSet: t.clock(),
		Restored: func(*statestore.Snapshot, *statestore.Snapshot) { t.event(t.stepCause(), "restored", -1, "") },
		Stepped:  t.drainer,
		Proposed: t.proposed,
		Answered: t.answered,
	})
}

// beforeStep records the last step before the next one begins.
func (t *tracer) beforeStep(last int) error {
	if kind, cause := t.world.Step(); last > t.lastWritten {
		t.unwritten[last] = silentStep{kind, cause, t.began}
	}
	t.began = t.now()
	return nil
}

// clock returns a function that writes a line when the clock of a term's server is set.
func (t *tracer) clock() func(term int, ahead time.Duration) {
	last := map[int]time.Duration{} // by term
	return func(term int, ahead time.Duration) {
		if was, has := last[term]; has && was != ahead {
			t.event(t.stepCause(), "clock", -1, fmt.Sprintf("term %d: %s ahead", term, ahead))
		}
		last[term] = ahead
	}
}

func (t *tracer) applied(a world.Applied) {
	t.appliers[a.Index] = t.world.Steps()
	if a.Message == nil {
		t.trace.Event(t.position(t.stepCause(), -1), timeline.Event{Kind: "placed", Text: "past the log", Index: a.Index})
	} else {
		cause := t.proposer(a.Index)
		t.writeReportStep(cause, a)
		t.trace.Applied(t.position(cause, t.world.Leader()), a)
	}
	t.recordWaker(timeline.ByEntry, a.Index)
}

// proposer returns the cause that proposed the entry at an index.
func (t *tracer) proposer(index uint64) *timeline.Cause {
	e := t.world.Log.Entry(index)
	if !e.Proposed { // an initial entry, applied before the trace began
		return &timeline.Cause{By: timeline.ByRace, Step: uint64(t.world.Steps())}
	}
	return &timeline.Cause{By: timeline.By(e.Source.String()), Step: uint64(e.Step)}
}

// writeReportStep writes a line for a step in which clients reported, if the step has none. Its cause is
// the last server write to the first reported allocation, not the clients' timer: the write
// explains the report.
func (t *tracer) writeReportStep(cause *timeline.Cause, a world.Applied) {
	m, is := a.Message.(*shims.AllocClientUpdate)
	step := int(cause.Step)
	u, has := t.unwritten[step]
	if !is || !has || len(m.Reports) == 0 {
		return
	}
	alloc := a.Before.Alloc(m.Reports[0].Alloc)
	if alloc == nil {
		return
	}
	changedBy, applied := t.appliers[alloc.AllocModifyIndex]
	if !applied || changedBy >= step {
		return
	}
	delete(t.unwritten, step)
	t.trace.Event(timeline.Position{
		Step: cause.Step, At: u.at, Server: -1,
		Cause: &timeline.Cause{By: timeline.ByEntry, Step: uint64(changedBy), Index: alloc.AllocModifyIndex},
	}, timeline.Event{Kind: u.kind.String(), Text: "reports of the servers' changes", Allocs: []cluster.AllocID{alloc.ID}})
}

func (t *tracer) drainer(s world.DrainerStep) {
	cause, text := t.stepCause(), "was woken"
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
		t.proposers[drainerWrite{m.Term, m.N}] = t.world.Steps()
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
	t.event(&timeline.Cause{By: timeline.ByDrainer, Step: uint64(t.proposers[write])}, "answered", -1, text)
	delete(t.proposers, write)
	t.recordWaker(timeline.ByAnswer, 0)
}

// recordWaker records a cause in the present step. The first cause of a step wakes all
// components that wake in it. An election replaces it: nothing before the election wakes the new leader.
func (t *tracer) recordWaker(by timeline.By, index uint64) {
	step := t.world.Steps()
	if _, has := t.wakers[step]; !has || by == timeline.ByElection {
		t.wakers[step] = timeline.Cause{By: by, Step: uint64(step), Index: index}
	}
}

// stepCause returns the cause of the present step.
func (t *tracer) stepCause() *timeline.Cause {
	kind, step := t.world.Step()
	return t.cause(kind, step)
}

// cause returns the cause of a step of a kind that another step requested.
func (t *tracer) cause(kind world.Kind, step int) *timeline.Cause {
	cause, has := t.wakers[step]
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
	t.writeCauses(cause)
	t.lastWritten = t.world.Steps()
	return timeline.Position{Step: uint64(t.lastWritten), At: t.now(), Server: server, Cause: cause}
}

// writeCauses writes the missing lines of the step that a cause names and of the causes before it, in
// order. A cause may be nil.
func (t *tracer) writeCauses(cause *timeline.Cause) {
	var lines []timeline.Position
	var kinds []world.Kind
	for cause != nil {
		step := int(cause.Step)
		u, is := t.unwritten[step]
		if !is {
			break
		}
		delete(t.unwritten, step)
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

// describeStrike describes a strike.
func describeStrike(s world.Strike) string {
	text := string(s.Name)
	if s.Target != "" {
		text += " on " + s.Target
	}
	if s.For > 0 {
		text += " for " + s.For.String()
	}
	return text
}
