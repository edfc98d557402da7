package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// facts are shared by the judges of one run: the events so far, and the violations. One
// judge for each guarantee reads them. [Judge] keeps them up to date.
type facts struct {
	options Options
	// now is the world's time of the last event, index the index of the newest entry.
	now   time.Time
	index uint64
	// tables is the state after the last entry.
	tables *tables
	// events counts the events besides steps.
	events uint64
	// latest is the latest time that any entry has carried or clock has shown.
	latest time.Time

	// drains are those that were ever seen.
	drains map[cluster.DrainID]*drain
	terms  map[int]*term
	leader *term // the term that began last, or nil
	// idle are the entries of drainers with an item that had no effect, by index, until
	// they are answered.
	idle map[uint64]idleItem

	counters   Counters
	violations []Violation
	found      int // violations, those not kept included
}

// Violations returns the violations, in the order in which they were found.
func (j *facts) Violations() []Violation { return slices.Clone(j.violations) }

// Found counts the violations, those not kept included.
func (j *facts) Found() int { return j.found }

// Failed reports whether anything was found.
func (j *facts) Failed() bool { return j.found > 0 }

// Counters returns the counts so far.
func (j *facts) Counters() Counters { return j.counters }

// settled reports whether nothing holds a drainer up at its clock's time, but that it
// may have to wait for a look: it has had its say on everything that the state shows.
func (j *facts) settled(t *term, clock time.Time, held bool) bool {
	l := &t.last
	switch {
	case held || !l.any || t.ended || t.needsBarrier || t.inFlight > 0 || len(t.writes) > 0 || t.news.any:
		return false
	case j.awaitsState(t, clock):
		return false
	case t.unseen(j.now):
		return false
	case t.failures.waits(&j.options, clock):
		return false
	case j.options.MinInterval > 0 && clock.Before(t.lastWrite.Add(j.options.MinInterval)):
		return false
	}
	return true
}

// awaitsLook reports whether a term may be waiting for a look at the state at a time.
func (j *facts) awaitsLook(t *term, clock time.Time) bool {
	return !t.last.wakeAt.IsZero() && !t.last.wakeAt.After(clock.Add(j.lookWait(t)))
}

// awaitsState reports whether a term waits for a state that shows all reported changes. That
// state may bring no news, so the term must have named a time of its next look.
func (j *facts) awaitsState(t *term, clock time.Time) bool {
	wakeAt := t.last.wakeAt
	return t.sawOld() && !wakeAt.IsZero() && !wakeAt.After(clock.Add(j.options.RetryBase))
}

// waits reports whether a term may wait with an item, because it was refused.
func (j *facts) waits(t *term, clock time.Time, item refusedItem) bool {
	return t.refused[item].waits(&j.options, clock)
}

// reevaluates reports whether a term may wait before it has a group evaluated
// again, because it has done so not long ago.
func (j *facts) reevaluates(t *term, clock time.Time, key cluster.GroupKey) bool {
	return t.groups[key] > 0 || t.reevaluated[key].waits(&j.options, clock)
}
