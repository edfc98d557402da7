package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Judge checks one run of a cluster against the guarantees G1 to G12. Make it with [New]. The
// caller reports all events in their order. A Judge is not safe for concurrent use, and does
// not change the rows that it receives.
type Judge struct {
	*facts
	// loaded means that the tables hold the state after the last entry.
	loaded bool
	// bypassed is the state after a write that bypassed the log, or nil.
	bypassed *statestore.Snapshot
	// entry is the present entry. The next entry reuses its memory.
	entry entry

	items    itemJudge
	requests requestJudge
	ends     endJudge
	truth    truthJudge
	writes   writeJudge
	progress progressJudge
	wakes    wakeJudge
	replicas replicaJudge
	audits   auditJudge
	twin     witnessJudge
}

// New returns a judge for a run that has not started.
func New(o Options) *Judge {
	f := &facts{
		options: o.withDefaults(), dump: dump{row: statestore.RowDump()}, tables: newTables(0),
		drains: make(map[cluster.DrainID]*drain), terms: make(map[int]*term), idle: make(map[uint64]idleItem),
	}
	return &Judge{
		facts: f,
		items: itemJudge{f}, requests: requestJudge{f}, truth: truthJudge{f}, writes: writeJudge{f},
		progress: progressJudge{f}, wakes: wakeJudge{f}, audits: auditJudge{facts: f}, twin: witnessJudge{facts: f},
		ends:     endJudge{facts: f, bounds: make(map[cluster.NodeID]*bound)},
		replicas: replicaJudge{facts: f, digests: make(map[uint64]uint64)},
	}
}

// Applied judges an entry. The caller passes every entry once, in the order of the log, from
// the first server that applies it. The judge accepts the state before the first entry, and
// every write that bypasses the log, without judging it.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	j.now, j.index = now, a.Index
	j.events++
	if a.Message == nil && !a.Type.Ignorable() {
		if j.loaded, j.bypassed = false, a.After; j.ends.calm {
			j.load(a.After) // earlier, the world may write many of these to set itself up
		}
		return
	}
	if !j.loaded || a.Before.Index() != j.tables.index {
		j.load(a.Before)
	}
	e := &j.entry
	e.read(j.tables, a)
	j.latest = later(j.latest, e.at)
	for _, c := range e.records {
		j.truth.judgeRecordRow(c)
	}
	j.judgeEvals(e)
	switch m := a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition:
		j.items.judgeMarks(e, m)
	case *shims.NodesDrainComplete:
		j.truth.judgeEnds(e, m)
	case *shims.NodeUpdateDrain:
		j.requests.judge(e, m)
	case *shims.PauseDrains:
		j.requests.judgePause(e, m)
	case *shims.ApplyPlan:
		j.items.judgePlan(e, m)
	case *shims.AllocClientUpdate:
		j.items.judgeVerdicts(e, m)
	}
	e.update(j.tables)
	j.twin.observe(e)
	if j.options.Digests {
		j.replicas.compareDigest(a.Index, j.dump.digest(a, &e.ids), 0)
	}
	j.ends.updateBounds(e)
	if j.audits.count(); j.audits.due() {
		j.audit(a.After)
	}
}

// load fills the tables from a state without judging it.
func (j *Judge) load(s *statestore.Snapshot) {
	j.loaded, j.bypassed = true, nil
	j.tables = tablesOf(s)
	for _, n := range j.tables.draining {
		d := n.drain()
		j.drains[d.ID] = &drain{node: n.id, keys: slices.Clone(d.Keys), eligible: d.EligibleBefore}
	}
	//lint:order each key has a value of its own
	for id, d := range j.tables.records {
		j.drains[id] = &drain{node: d.NodeID, keys: slices.Clone(d.Keys)}
	}
	j.twin.load()
	j.ends.setBounds()
}

// audit compares the whole state with the tables. If they differ, the judge continues with the
// state.
func (j *Judge) audit(s *statestore.Snapshot) {
	if !j.audits.compare(s) {
		j.load(s)
	}
	j.audits.checkRecords()
}

// Calm reports the end of all faults.
func (j *Judge) Calm(now time.Time) {
	j.now = now
	j.ends.calm, j.ends.settled = true, now.Add(j.options.Bounds.Settle)
	clear(j.ends.bounds)
	if j.bypassed != nil {
		j.load(j.bypassed)
	}
	j.ends.setBounds()
}

// Stills counts the silences that were judged, with a drainer that was up to date.
func (j *Judge) Stills() int { return j.stills }

// End audits the final states of all servers. The first state is that of the server that has
// applied the most entries. All servers have applied the same log.
func (j *Judge) End(now time.Time, states ...*statestore.Snapshot) {
	j.now = now
	if len(states) == 0 {
		return
	}
	if !j.loaded || states[0].Index() != j.tables.index {
		j.load(states[0])
	}
	j.audit(states[0])
	j.ends.findLate(now)
	j.replicas.compareDumps(ReplicasDiffer, states)
}
