package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Judge holds one run of a cluster to the guarantees G1 to G12. Make it with
// [New]. It is told what happens in the order in which it does, and is not safe
// for concurrent use. It writes to nothing that it is shown.
type Judge struct {
	*facts
	// began says that the tables hold the state after the last entry.
	began bool
	// placed is the state after changes that bypassed the log, or nil.
	placed *statestore.Snapshot
	// entry is the one that is judged; it is used again.
	entry entry
	// unread counts the entries since everything was counted.
	unread int

	causes   causeJudge
	requests requestJudge
	ends     endJudge
	truth    truthJudge
	writes   writeJudge
	progress progressJudge
	wakes    wakeJudge
	replicas replicaJudge
	audits   auditJudge
}

// New returns a judge of a run that is about to begin.
func New(o Options) *Judge {
	f := &facts{
		options: o.withDefaults(), tables: newTables(0),
		drains: make(map[cluster.DrainID]*drain), terms: make(map[int]*term), idle: make(map[uint64]idleItem),
	}
	return &Judge{
		facts:  f,
		causes: causeJudge{f}, requests: requestJudge{f}, truth: truthJudge{f}, writes: writeJudge{f},
		progress: progressJudge{f}, wakes: wakeJudge{f}, audits: auditJudge{f},
		ends:     endJudge{facts: f, bounds: make(map[cluster.NodeID]*bound)},
		replicas: replicaJudge{facts: f, digests: make(map[uint64]uint64)},
	}
}

// Applied judges an entry. It gets every entry once, in the order of the
// log, from the server that applies it first. What the state has before the first
// one, or was written by no message between two, is taken as it is.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	j.now, j.index = now, a.Index
	j.events++
	if a.Message == nil && !a.Type.Ignorable() {
		if j.began, j.placed = false, a.After; j.ends.calm {
			j.take(a.After) // before the calm it may be one of many that a world begins with
		}
		return
	}
	if !j.began || a.Before.Index() != j.tables.index {
		j.take(a.Before)
	}
	e := &j.entry
	e.read(j.tables, a)
	j.latest = later(j.latest, e.at)
	j.counters.add(e)
	j.judgeRows(e)
	j.judgeEvals(e)
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		j.judgeMarks(e, m)
	case *shims.NodesDrainComplete:
		j.truth.judgeEnds(e, m)
	case *shims.NodeUpdateDrain:
		j.requests.judge(e, m)
	case *shims.ApplyPlan:
		j.causes.judgePlan(e, m)
	}
	e.put(j.tables)
	if j.options.Digests {
		j.replicas.compareDigest(a.Index, uint64(e.digest(a)), 0)
	}
	j.ends.watchEnds(e)
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
	return j.unread >= every && j.unread*rowsPerEntry >= j.tables.rows()
}

// take takes a state as it is.
func (j *Judge) take(s *statestore.Snapshot) {
	j.began, j.placed = true, nil
	j.tables = tablesOf(s)
	for _, n := range j.tables.draining {
		d := n.drain()
		j.drains[d.ID] = &drain{id: d.ID, node: n.id, marked: d.Marked, keys: slices.Clone(d.Keys)}
	}
	for id, d := range j.tables.records {
		j.drains[id] = &drain{id: id, node: d.NodeID, marked: d.Marked, ended: true, keys: slices.Clone(d.Keys)}
	}
	j.ends.recount()
}

// audit counts everything. A state that is not what the entries have made it is taken
// as it is from then on.
func (j *Judge) audit(s *statestore.Snapshot) {
	j.unread = 0
	if !j.audits.compare(s) {
		j.take(s)
	}
	j.audits.checkRecords()
	j.audits.checkDrains()
}

// Calm says that faults have stopped.
func (j *Judge) Calm(now time.Time) {
	j.now = now
	j.ends.calm, j.ends.over = true, now.Add(j.options.Bounds.Settle)
	clear(j.ends.bounds)
	if j.placed != nil {
		j.take(j.placed)
	}
	j.ends.recount()
}

// End judges the state in which the run ended: everything is counted. The states
// are those of the servers, that of the one which is furthest first; the others
// have applied the same log.
func (j *Judge) End(now time.Time, states ...*statestore.Snapshot) {
	j.now = now
	if len(states) == 0 {
		return
	}
	if !j.began || states[0].Index() != j.tables.index {
		j.take(states[0])
	}
	j.audit(states[0])
	j.ends.watchTime(now)
	j.replicas.compareDumps(ReplicasDiffer, states)
}
