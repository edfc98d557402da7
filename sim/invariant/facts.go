package invariant

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// facts are the events and the violations of one run. [Judge] updates them, and the judges of
// the single guarantees share them.
type facts struct {
	options Options
	// now is the world's time of the last event. index is the index of the newest entry.
	now   time.Time
	index uint64
	// tables is the state after the last entry.
	tables *tables
	// events counts the events besides steps.
	events uint64
	// latest is the latest time of all entries and all clocks.
	latest time.Time

	// drains are all drains of the run, also the ended ones.
	drains map[cluster.DrainID]*drain
	terms  map[int]*term
	leader *term // the newest term, or nil
	// idle are the entries with an item that had no effect, by index. An entry leaves when
	// the drainer gets its answer.
	idle map[uint64]idleItem

	counters Counters
	Findings
}

// Counters returns the counts so far.
func (j *facts) Counters() Counters { return j.counters }

// upToDate reports whether the drainer has acted on everything in the state, at a time on its
// clock. It may still have to wait for its next read of the state. held means that the world
// delays the drainer.
func (j *facts) upToDate(t *term, clock time.Time, held bool) bool {
	l := &t.last
	switch {
	case held || !l.any || t.ended || t.needsBarrier || t.inFlight > 0 || len(t.writes) > 0 || t.answers.any:
		return false
	case j.awaitsState(t, clock):
		return false
	case t.missedClockSet(j.now):
		return false
	case t.failures.waits(&j.options, clock):
		return false
	case j.options.MinInterval > 0 && clock.Before(t.lastWrite.Add(j.options.MinInterval)):
		return false
	}
	return true
}

// awaitsRead reports whether a term may wait, at a time, until the rate allows another read.
func (j *facts) awaitsRead(t *term, clock time.Time) bool {
	return !t.last.wakeAt.IsZero() && !t.last.wakeAt.After(clock.Add(j.readWait(t)))
}

// awaitsState reports whether a term waits for a state that includes all its answers. No event
// may announce that state, so the term must have set a time for its next read.
func (j *facts) awaitsState(t *term, clock time.Time) bool {
	wakeAt := t.last.wakeAt
	return t.viewIsOld() && !wakeAt.IsZero() && !wakeAt.After(clock.Add(j.options.RetryBase))
}

// waits reports whether a term may wait with an item after a refusal.
func (j *facts) waits(t *term, clock time.Time, item refusedItem) bool {
	return t.refused[item].waits(&j.options, clock)
}

// reevaluates reports whether a term need not request an evaluation of a group: its last
// request is in flight, or recent.
func (j *facts) reevaluates(t *term, clock time.Time, key cluster.GroupKey) bool {
	return t.sent[groupItem(key)] > 0 || t.reevaluated[key].waits(&j.options, clock)
}
