package journaled

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 20

// firstVersion is the cluster version from which on drains have journals.
const firstVersion = 9

// The largest numbers of events and groups of a journal.
const (
	maxEvents = 64
	maxGroups = 32
)

// Judge collects the violations of one run. Create it with [New]. A Judge is not safe for concurrent use.
// It never changes the rows that it reads.
type Judge struct {
	invariant.Findings
	drains  map[cluster.DrainID]*drain
	witness *witness.Witness
}

// drain is a running drain that began under the eyes of the judge.
type drain struct {
	node   cluster.NodeID
	groups map[cluster.GroupKey]*group
	stages map[opinion.Stage]bool
}

// group is what the judge counts of a group, from the first mark by the drain on.
type group struct {
	marked, lowest int
	// witnessed is the first of the lowest levels of the witness.
	witnessed witness.Level
}

// New returns a judge of a run that has not started.
func New() *Judge {
	j := &Judge{drains: make(map[cluster.DrainID]*drain)}
	j.Restored()
	return j
}

// Restored forgets all drains: the state of which they are parts is gone. The new witness finds drains that it has not
// seen to start. The judge reads its levels only.
func (j *Judge) Restored() {
	clear(j.drains)
	j.witness = witness.New(witness.Options{MaxFindings: 1})
}

// Applied checks an entry. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	if a.Before == nil || a.After == nil || a.After.ClusterVersion() < firstVersion {
		return
	}
	j.witness.Observe(applied.Entry(a))
	for n := range a.After.DrainView().DrainingNodes() {
		if before := a.Before.Node(n.ID); before == nil || before.Drain == nil || before.Drain.ID != n.Drain.ID {
			j.drains[n.Drain.ID] = &drain{node: n.ID, groups: make(map[cluster.GroupKey]*group), stages: make(map[opinion.Stage]bool)}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.drains)) {
		d := j.drains[id]
		d.read(a, id, j.witness)
		if record := a.After.DrainRecord(id); record != nil {
			j.judgeEnd(now, a, d, record)
			delete(j.drains, id)
		}
	}
}

// read counts the marks of an entry, and the healthy allocations after it.
func (d *drain) read(a shims.Applied, id cluster.DrainID, w *witness.Witness) {
	for row := range a.After.AllocsByNode(d.node) {
		if row.ModifyIndex != a.Index || row.DesiredTransition.Drain != id || !row.DesiredTransition.Migrate {
			continue
		}
		if was := a.Before.Alloc(row.ID); was != nil && was.DesiredTransition.Migrate && was.DesiredTransition.Drain == id {
			continue
		}
		k := row.GroupKey()
		if d.groups[k] == nil {
			d.groups[k] = &group{lowest: healthy(a.After, k), witnessed: w.Level(k)}
		}
		d.groups[k].marked++
		d.stages[opinion.StageOf(row)] = true
	}
	for k, g := range d.groups {
		g.lowest = min(g.lowest, healthy(a.After, k))
		if now := w.Level(k); now.Healthy < g.witnessed.Healthy {
			g.witnessed = now
		}
	}
}

func healthy(s *statestore.Snapshot, k cluster.GroupKey) (n int) {
	for a := range s.AllocsByJob(k.Job) {
		if a.TaskGroup == k.Name && opinion.Healthy(a, s.Node(a.NodeID)) {
			n++
		}
	}
	return n
}

// judgeEnd checks the journal of a drain that has ended.
func (j *Judge) judgeEnd(now time.Time, a shims.Applied, d *drain, record *cluster.Drain) {
	report := func(c invariant.Check, format string, args ...any) {
		j.Add(maxViolations, c, invariant.Violation{At: now, Index: a.Index, Node: d.node}, format, args...)
	}
	_, story := a.After.Story(record.ID)
	if story == nil || len(story.Events) < 2 {
		report(NoJournal, "drain %s has ended, and has no journal", record.ID)
		return
	}
	first, last := story.Events[0], story.Events[len(story.Events)-1]
	if first.Kind.String() != "requested" || last.Kind.String() != "ended" || last.Why != string(record.Outcome) || last.Index != a.Index {
		report(WrongEnd, "the first event is %q, the last one %q with %q", first.Kind, last.Kind, last.Why)
	}
	began := 0
	for i, e := range story.Events {
		if i > 0 && e.Index < story.Events[i-1].Index {
			report(WrongOrder, "event %d of index %d follows one of index %d", i, e.Index, story.Events[i-1].Index)
		}
		if e.Kind.String() == "stage began" {
			began++
		}
	}
	if len(story.Events) > maxEvents || len(story.Groups) > maxGroups {
		report(WrongOrder, "%d events and %d groups", len(story.Events), len(story.Groups))
	}
	if began != len(d.stages) && story.EventsOmitted == 0 {
		report(NoStage, "%d stages began, and %d are in the journal", len(d.stages), began)
	}
	if len(story.Groups)+story.GroupsOmitted != len(d.groups) {
		report(WrongGroup, "%d groups have marks, and %d are in the journal", len(d.groups), len(story.Groups)+story.GroupsOmitted)
	}
	for _, found := range story.Groups {
		if want := d.groups[found.Key]; want == nil || want.marked != found.Marked || want.lowest != found.Lowest {
			report(WrongGroup, "group %s: %d marked, lowest %d, and the rows showed %+v", found.Key, found.Marked, found.Lowest, want)
		} else if seen := want.witnessed; seen.Healthy != found.Lowest || seen.Limit != found.Needed {
			report(NotWitnessed, "group %s: lowest %d with %d needed, and the witness counted %d with %d", found.Key, found.Lowest, found.Needed, seen.Healthy, seen.Limit)
		}
	}
}
