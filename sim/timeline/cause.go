package timeline

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// Cause is the cause of a line of a trace. It names the step of an earlier line.
type Cause struct {
	// By is the kind of the cause; never empty.
	By By `json:"by"`
	// Step is the step of the cause. Zero is before the first step: for an operation it is
	// the scenario itself, otherwise the start of the first term.
	Step uint64 `json:"step"`
	// Index is the raft index of the causing entry, or zero.
	Index uint64 `json:"index,omitempty"`
}

// By is a kind of cause.
type By string

// The causes of steps.
const (
	// ByOperation: an event of the scenario.
	ByOperation By = "operation"
	// ByTimer: the actor's timer. The cause is the step that set the timer or the clock.
	ByTimer By = "timer"
	// ByEntry: an applied entry that woke the actor.
	ByEntry By = "entry"
	// ByAnswer: an answer to a write of the drainer.
	ByAnswer By = "answer"
	// ByElection: the start of a term.
	ByElection By = "election"
	// ByFault: a strike of a fault.
	ByFault By = "fault"
	// ByRace: an event between plan and apply of the entry of that step.
	ByRace By = "race"
	// ByStep: any other event of that step.
	ByStep By = "step"
)

// The causes of writes, and of their entries and answers: the proposers.
const (
	ByDrainer   By = "drainer"
	ByScheduler By = "scheduler"
	ByClients   By = "clients"
	ByOperator  By = "operator"
	ByCollector By = "collector"
	ByVolumes   By = "volumes"
)

// causes finds the causes of the lines of a trace.
type causes struct {
	// wakers are the causes that may have woken a component, by step. The map keeps the first of
	// each step, or its election.
	wakers map[int]Cause
	// proposers are the steps that proposed the drainers' unanswered writes.
	proposers map[drainerWrite]int
	// unwritten are the steps without a line, by number.
	unwritten map[int]silentStep
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

// proposer returns the cause that proposed the entry at an index.
func (t *Trace) proposer(index uint64) *Cause {
	e := t.world.Log.Entry(index)
	if !e.Proposed { // an initial entry, applied before the trace began
		return &Cause{By: ByRace, Step: uint64(t.world.Steps())}
	}
	return &Cause{By: By(e.Source.String()), Step: uint64(e.Step)}
}

// writeReportStep writes a line for a step in which clients reported, if the step has none. Its cause is
// the last server write to the first reported allocation, not the clients' timer: the write
// explains the report.
func (t *Trace) writeReportStep(cause *Cause, a world.Applied) {
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
	t.write(line{
		Step: cause.Step, Event: u.kind.String(), Text: "reports of the servers' changes", Allocs: []cluster.AllocID{alloc.ID},
		Cause: &Cause{By: ByEntry, Step: uint64(changedBy), Index: alloc.AllocModifyIndex},
	}, u.at, -1)
}

// recordWaker records a cause in the present step. The first cause of a step wakes all
// components that wake in it. An election replaces it: nothing before the election wakes the new leader.
func (t *Trace) recordWaker(by By, index uint64) {
	step := t.world.Steps()
	if _, has := t.wakers[step]; !has || by == ByElection {
		t.wakers[step] = Cause{By: by, Step: uint64(step), Index: index}
	}
}

// stepCause returns the cause of the present step.
func (t *Trace) stepCause() *Cause {
	kind, step := t.world.Step()
	return t.cause(kind, step)
}

// cause returns the cause of a step of a kind that another step requested.
func (t *Trace) cause(kind world.Kind, step int) *Cause {
	cause, has := t.wakers[step]
	switch {
	case kind == world.Scripted && step == 0: // the scenario requests its operations before the first step
		cause = Cause{By: ByOperation}
	case kind == world.Log || !has:
		cause = Cause{By: ByStep, Step: uint64(step)}
	}
	return &cause
}

// writeCauses writes the missing lines of the step that a cause names and of the causes before it, in
// order. A cause may be nil.
func (t *Trace) writeCauses(cause *Cause) {
	var missing []line
	var times []time.Duration
	for cause != nil {
		step := int(cause.Step)
		u, is := t.unwritten[step]
		if !is {
			break
		}
		delete(t.unwritten, step)
		cause = t.cause(u.kind, u.cause)
		missing, times = append(missing, line{Step: uint64(step), Event: u.kind.String(), Cause: cause}), append(times, u.at)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		t.write(missing[i], times[i], -1)
	}
}
