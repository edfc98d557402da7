package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Judge holds one run of a cluster to the guarantees G1 to G11. Make it with
// [New]. It is told what happens in the order in which it does, and is not safe
// for concurrent use. It writes to nothing that it is shown.
type Judge struct {
	options Options
	// now is the world's time of what the judge was last told, index that of the
	// newest entry.
	now   time.Time
	index uint64
	// book is the state after the last entry. began says that there is one.
	book  *book
	began bool
	// placed is the state after what was placed past the log since the book, or nil.
	placed *statestore.Snapshot
	// entry is the one that is judged; it is used again.
	entry entry
	// unread counts the entries since everything was counted.
	unread int
	// events counts what has happened besides steps.
	events uint64
	// latest is the latest time that any entry has carried or clock has shown.
	latest time.Time

	// drains are those that were ever seen.
	drains map[cluster.DrainID]*drain
	terms  map[int]*term
	leader *term // the term that began last, or nil
	calm   calm
	// idle are the entries of drainers of which something was refused, with the
	// index of the state that refused it, until they are answered.
	idle map[uint64]uint64
	// digests are those of the entries, by index; at zero is none.
	digests map[uint64]uint64

	counters   Counters
	violations []Violation
	found      int // violations, those not kept included
}

// drain is what the judge knows of one drain.
type drain struct {
	id   cluster.DrainID
	node cluster.NodeID
	// marked counts the marks that entries have made, by class.
	marked [cluster.MarkClassCount]int
	ended  bool
}

// New returns a judge of a run that is about to begin.
func New(o Options) *Judge {
	return &Judge{
		options: o.withDefaults(),
		book:    newBook(0),
		drains:  make(map[cluster.DrainID]*drain),
		terms:   make(map[int]*term),
		idle:    make(map[uint64]uint64),
		digests: make(map[uint64]uint64),
	}
}

// Applied judges an entry. It is told of every entry once, in the order of the
// log, by whichever server applies it first. What the state has before the first
// one, or was written by no message between two, is taken as it is.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	j.now, j.index = now, a.Index
	j.events++
	if a.Message == nil && !a.Type.Ignorable() {
		if j.began, j.placed = false, a.After; j.calm.began {
			j.take(a.After) // before the calm it may be one of many that a world begins with
		}
		return
	}
	if !j.began || a.Before.Index() != j.book.index {
		j.take(a.Before)
	}
	e := &j.entry
	e.read(j.book, a)
	j.latest = later(j.latest, e.at)
	j.counters.add(e)
	j.judgeRows(e)
	j.judgeEvals(e)
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		j.judgeMarks(e, m)
	case *shims.NodesDrainComplete:
		j.judgeEnds(e, m)
	case *shims.NodeUpdateDrain:
		j.judgeRequest(e, m)
	case *shims.ApplyPlan:
		j.judgePlan(e, m)
	}
	e.put(j.book)
	if j.options.Digests {
		j.compareDigest(a.Index, uint64(e.digest(a)), 0)
	}
	j.watchEnds(e)
	if j.unread++; j.auditIsDue() {
		j.audit(a.After)
	}
}

// rowsPerEntry is how many rows are counted for each entry, at most, on account of
// everything being counted: of a large state that is done less often.
const rowsPerEntry = 16

// auditIsDue reports whether it is time to count everything.
func (j *Judge) auditIsDue() bool {
	every := j.options.Every
	switch {
	case every <= 0:
		return false
	case every == 1:
		return true
	}
	return j.unread >= every && j.unread*rowsPerEntry >= j.book.rows()
}

// take takes a state as it is.
func (j *Judge) take(s *statestore.Snapshot) {
	j.began, j.placed = true, nil
	j.book = bookOf(s)
	for _, n := range j.book.draining {
		d := n.drain()
		j.drains[d.ID] = &drain{id: d.ID, node: n.id, marked: d.Marked}
	}
	for id, d := range j.book.records {
		j.drains[id] = &drain{id: id, node: d.NodeID, marked: d.Marked, ended: true}
	}
	j.recount()
}

// End judges the state in which the run ended: everything is counted. The states
// are those of the servers, that of the one which is furthest first; the others
// have applied the same log.
func (j *Judge) End(now time.Time, states ...*statestore.Snapshot) {
	j.now = now
	if len(states) == 0 {
		return
	}
	if !j.began || states[0].Index() != j.book.index {
		j.take(states[0])
	}
	j.audit(states[0])
	j.watchTime(now)
	j.compareDumps(ReplicasDiffer, states)
}

// Violations returns what was found, in the order in which it was.
func (j *Judge) Violations() []Violation { return slices.Clone(j.violations) }

// Found counts the violations, those not kept included.
func (j *Judge) Found() int { return j.found }

// Failed reports whether anything was found.
func (j *Judge) Failed() bool { return j.found > 0 }

// Counters returns what was counted so far.
func (j *Judge) Counters() Counters { return j.counters }
