package ended

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// The checks of this package.
const (
	RunsAfterEnd     invariant.Check = "G5 complete while it runs"    // a task runs on the node of a complete drain
	RunsAfterConfirm invariant.Check = "G5 confirmed while it runs"   // time confirmed the end of an allocation whose task runs
	RunsUncounted    invariant.Check = "G5 not counted while it runs" // the record of a drain counts fewer allocations than run
)

// Checks returns all checks.
func Checks() []invariant.Check {
	return []invariant.Check{RunsAfterEnd, RunsAfterConfirm, RunsUncounted}
}

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 20

// Options are the facts that a judge cannot observe.
type Options struct {
	// Marked: drains end when all allocations are marked.
	Marked bool
	// Real: the nodes run the real client, which reports the allocations that the servers do not list.
	Real bool
	// Lives yields the allocations with tasks on a node now.
	Lives func(cluster.NodeID) iter.Seq[cluster.AllocID]
}

// Judge collects the violations of one run. Create it with [New]. A Judge is not safe for
// concurrent use, and changes nothing that it reads.
type Judge struct {
	invariant.Findings
	options Options
	// had are the allocations that the node of a running drain had at its beginning.
	had map[cluster.DrainID][]*cluster.Allocation
	// left are the allocations that ran at the end of a drain and had to leave, until its record counts
	// none.
	left map[cluster.DrainID][]cluster.AllocID
	// untrue are the allocations that a scenario ended in the state only, or whose end an operator has
	// confirmed.
	untrue map[cluster.AllocID]bool
	// skewed: the clock of a server was wrong.
	skewed bool
}

// New returns a judge of a run that has not started.
func New(o Options) *Judge {
	return &Judge{
		options: o, had: map[cluster.DrainID][]*cluster.Allocation{}, left: map[cluster.DrainID][]cluster.AllocID{}, untrue: map[cluster.AllocID]bool{},
	}
}

// ClockSet records how far the clock of a server is ahead.
func (j *Judge) ClockSet(ahead time.Duration) { j.skewed = j.skewed || ahead != 0 }

// Untrue records reports that a scenario made instead of a client.
func (j *Judge) Untrue(reports []cluster.AllocReport) {
	for _, r := range reports {
		j.untrue[r.Alloc] = true
	}
}

// Applied judges an entry. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	switch m := a.Message.(type) {
	case *shims.NodeUpdateDrain:
		j.begun(a, m.Node)
	case *shims.ConfirmDrain:
		j.byOperator(a, m.Drain)
	case *shims.NodesDrainComplete:
		for _, c := range m.Completions.Completions {
			j.ended(now, a, c.Drain)
		}
	}
	for _, id := range confirmedNodes(a) {
		j.confirmed(now, a, id)
	}
	for _, id := range slices.Sorted(maps.Keys(j.left)) {
		j.counted(now, a, id)
	}
}

// begun records the allocations of a node whose drain has begun.
func (j *Judge) begun(a shims.Applied, id cluster.NodeID) {
	before, after := drainOf(a.Before, id), drainOf(a.After, id)
	if after == nil || before != nil && before.ID == after.ID {
		return
	}
	for row := range a.After.AllocsByNode(id) {
		j.had[after.ID] = append(j.had[after.ID], row)
	}
}

func drainOf(s *statestore.Snapshot, id cluster.NodeID) *cluster.Drain {
	if n := s.Node(id); n != nil {
		return n.Drain
	}
	return nil
}

// ended judges the end of a drain.
func (j *Judge) ended(now time.Time, a shims.Applied, id cluster.DrainID) {
	record := a.After.DrainRecord(id)
	if record == nil || a.Before.DrainRecord(id) != nil {
		return
	}
	rows := map[cluster.AllocID]*cluster.Allocation{}
	for _, row := range j.had[id] {
		rows[row.ID] = row
	}
	for row := range a.Before.AllocsByNode(record.NodeID) {
		rows[row.ID] = row
	}
	delete(j.had, id)
	counts := a.Before.ClusterVersion() >= opinion.CountsUnconfirmed
	complete := record.Outcome == cluster.OutcomeComplete && !j.options.Marked
	for alloc := range j.options.Lives(record.NodeID) {
		why, row := "a task of the allocation runs", rows[alloc]
		switch {
		case j.untrue[alloc]:
			continue
		case row == nil && j.options.Real && counts:
			why += ", of which the servers have no row"
		case row == nil || opinion.Excluded(row, record, a.Before.AllocsByNode(record.NodeID), a.Before):
			continue
		}
		plugin := row != nil && record.Strategy.IgnoreSystemJobs && opinion.StageOf(row) == opinion.Plugin
		if complete {
			j.Add(maxViolations, RunsAfterEnd, invariant.Violation{At: now, Drain: id, Node: record.NodeID, Alloc: alloc}, "the drain is complete, and %s", why)
		} else if counts && !plugin {
			j.left[id] = append(j.left[id], alloc)
		}
	}
	if left := len(j.left[id]); left > record.CountUnconfirmed() {
		j.Add(maxViolations, RunsUncounted, invariant.Violation{At: now, Drain: id, Node: record.NodeID},
			"the drain ended as %q, and tasks of %d allocations run, but its record counts %d", record.Outcome, left, record.CountUnconfirmed())
		delete(j.left, id)
	}
}

// counted judges the record of an ended drain that left allocations, when it counts none of them.
func (j *Judge) counted(now time.Time, a shims.Applied, id cluster.DrainID) {
	record := a.After.DrainRecord(id)
	if record != nil && record.CountUnconfirmed() > 0 {
		return
	}
	if record != nil && record.Unconfirmed.ConfirmedBy == "" && !j.skewed {
		for alloc := range j.options.Lives(record.NodeID) {
			if slices.Contains(j.left[id], alloc) && !j.untrue[alloc] {
				j.Add(maxViolations, RunsUncounted, invariant.Violation{At: now, Drain: id, Node: record.NodeID, Alloc: alloc},
					"the record of the drain counts no allocation, and a task of the allocation runs")
			}
		}
	}
	delete(j.left, id)
}

// byOperator records the allocations that an operator confirms with a drain.
func (j *Judge) byOperator(a shims.Applied, id cluster.DrainID) {
	record := a.Before.DrainRecord(id)
	if record == nil {
		return
	}
	if u := record.Unconfirmed; u != nil && u.Unlisted != nil {
		for _, alloc := range u.Unlisted.Allocs {
			j.untrue[alloc] = true
		}
	}
	for row := range a.Before.AllocsByNode(record.NodeID) {
		if !isConfirmed(a.Before, row.ID) && isConfirmed(a.After, row.ID) {
			j.untrue[row.ID] = true
		}
	}
}

// isConfirmed reports whether time or an operator has confirmed the end of an allocation.
func isConfirmed(s *statestore.Snapshot, id cluster.AllocID) bool {
	row := s.Alloc(id)
	return row != nil && !row.ConfirmedAt.IsZero()
}

// confirmedNodes returns the nodes on which time may confirm ends in an entry.
func confirmedNodes(a shims.Applied) (nodes []cluster.NodeID) {
	switch m := a.Message.(type) {
	case *shims.ConfirmStops:
		return m.Nodes
	case *shims.NodesDrainComplete:
		for _, c := range m.Completions.Completions {
			nodes = append(nodes, c.Node)
		}
	case *shims.NodeUpdateDrain:
		return []cluster.NodeID{m.Node}
	case *shims.NodeDeregister:
		return m.Nodes
	}
	return nodes
}

// confirmed judges the allocations of a node that time confirms in an entry. A wrong clock may confirm the end
// of one that runs: the judge does not expect it in a record.
func (j *Judge) confirmed(now time.Time, a shims.Applied, id cluster.NodeID) {
	for alloc := range j.options.Lives(id) {
		before, after := a.Before.Alloc(alloc), a.After.Alloc(alloc)
		if before == nil || after == nil || !before.ConfirmedAt.IsZero() || after.ConfirmedAt.IsZero() || j.untrue[alloc] {
			continue
		}
		if j.skewed {
			j.untrue[alloc] = true
			continue
		}
		j.Add(maxViolations, RunsAfterConfirm, invariant.Violation{At: now, Node: id, Alloc: alloc},
			"the servers have not reached its node since %s, its end was confirmed at %s, and a task runs", before.AwaySince, after.ConfirmedAt)
	}
}
