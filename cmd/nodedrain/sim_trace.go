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

// tracer writes a trace of a world while it runs. A step in which nothing is to be told has
// no line, unless another line names it as its cause: then it has one before that.
type tracer struct {
	trace *timeline.Trace
	world *world.World
	// told are what may have woken somebody, by step: the most telling thing of each.
	told map[int]timeline.Cause
	// asked are the steps in which the drainers' writes were proposed that have no answer
	// yet.
	asked map[drainerWrite]int
	// untold are the steps that have no line, by their number. The newest line is of the
	// step lined; began is when the step began that is being taken.
	untold map[int]untold
	lined  int
	began  time.Duration
	// entries are the steps in which entries were applied, by their index.
	entries map[uint64]int
}

// untold is a step of which there was nothing to tell.
type untold struct {
	kind  world.Kind
	cause int // the step in which it was asked for
	at    time.Duration
}

// drainerWrite tells a drainer's write from others.
type drainerWrite struct{ term, n int }

func newTracer(t *timeline.Trace, w *world.World) *tracer {
	return &tracer{trace: t, world: w, told: map[int]timeline.Cause{}, asked: map[drainerWrite]int{},
		untold: map[int]untold{}, entries: map[uint64]int{}}
}

// watch writes from now on.
func (t *tracer) watch() {
	w := t.world
	t.tells(timeline.ByElection, 0)
	t.event(nil, "elected", w.Leader(), "")
	w.OnStep(t.begins)
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
	t.clock()
	w.OnRestore(func(*statestore.Snapshot, *statestore.Snapshot) { t.event(t.stepped(), "restored", -1, "") })
	w.OnDrainer(t.drainer)
	w.OnPropose(t.proposed)
	w.OnAnswer(t.answered)
}

// begins notes the step that was taken before another begins.
func (t *tracer) begins(last int) error {
	if kind, cause := t.world.Step(); last > t.lined {
		t.untold[last] = untold{kind, cause, t.began}
	}
	t.began = t.now()
	return nil
}

// clock tells when a clock is set by which somebody leads, or led.
func (t *tracer) clock() {
	ahead := map[int]time.Duration{} // by term
	t.world.OnClock(func(term int, by time.Duration) {
		if was, has := ahead[term]; has && was != by {
			t.event(t.stepped(), "clock", -1, fmt.Sprintf("term %d: %s ahead", term, by))
		}
		ahead[term] = by
	})
}

func (t *tracer) applied(a world.Applied) {
	t.entries[a.Index] = t.world.Steps()
	if a.Message == nil {
		t.trace.Event(t.moment(t.stepped(), -1), timeline.Event{Kind: "placed", Text: "past the log", Index: a.Index})
	} else {
		cause := t.proposer(a.Index)
		t.worked(cause, a)
		t.trace.Applied(t.moment(cause, t.world.Leader()), a)
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

// worked tells of the step in which clients reported, if nothing was told of it, what had
// them do what they report of: the last that a server wrote of the first allocation. When
// they were stepped is a matter of their clock, and says little.
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
	t.trace.Event(timeline.Moment{
		Step: cause.Step, At: u.at, Server: -1,
		Cause: &timeline.Cause{By: timeline.ByEntry, Step: uint64(asked), Index: alloc.AllocModifyIndex},
	}, timeline.Event{Kind: u.kind.String(), Text: "report of what they were told", Allocs: []cluster.AllocID{alloc.ID}})
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
	return t.cause(kind, step)
}

// cause is what had happen a step of a kind that was asked for in another.
func (t *tracer) cause(kind world.Kind, step int) *timeline.Cause {
	cause, has := t.told[step]
	switch {
	case kind == world.Scripted && step == 0: // the scenario's are asked for before all else
		cause = timeline.Cause{By: timeline.ByOperation}
	case kind == world.Log || !has:
		cause = timeline.Cause{By: timeline.ByStep, Step: uint64(step)}
	}
	return &cause
}

// moment is now, for a line that is about to be written.
func (t *tracer) moment(cause *timeline.Cause, server int) timeline.Moment {
	t.tell(cause)
	t.lined = t.world.Steps()
	return timeline.Moment{Step: uint64(t.lined), At: t.now(), Server: server, Cause: cause}
}

// tell writes lines of the step that a cause names and of those before it that have none
// yet, the first first. A cause may be nil.
func (t *tracer) tell(cause *timeline.Cause) {
	var lines []timeline.Moment
	var kinds []world.Kind
	for cause != nil {
		step := int(cause.Step)
		u, is := t.untold[step]
		if !is {
			break
		}
		delete(t.untold, step)
		cause = t.cause(u.kind, u.cause)
		lines = append(lines, timeline.Moment{Step: uint64(step), At: u.at, Server: -1, Cause: cause})
		kinds = append(kinds, u.kind)
	}
	for i := len(lines) - 1; i >= 0; i-- {
		t.trace.Event(lines[i], timeline.Event{Kind: kinds[i].String()})
	}
}

// now is the time since the run began.
func (t *tracer) now() time.Duration { return t.world.Now().Sub(world.Epoch) }

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
