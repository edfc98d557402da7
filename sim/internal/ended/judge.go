package ended

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// The checks of this package.
const (
	RunsAfterEnd     invariant.Check = "G5 complete while it runs"  // a task runs on the node of a complete drain
	RunsAfterConfirm invariant.Check = "G5 confirmed while it runs" // time confirmed the end of an allocation whose task runs
)

// Checks returns all checks.
func Checks() []invariant.Check { return []invariant.Check{RunsAfterEnd, RunsAfterConfirm} }

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
	// untrue are the allocations that a scenario ended in the state only, or whose end an operator has
	// confirmed.
	untrue map[cluster.AllocID]bool
	// skewed: the clock of a server was wrong.
	skewed bool
}

// New returns a judge of a run that has not started.
func New(o Options) *Judge {
	return &Judge{options: o, had: map[cluster.DrainID][]*cluster.Allocation{}, untrue: map[cluster.AllocID]bool{}}
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
	if record.Outcome != cluster.OutcomeComplete || j.options.Marked {
		return
	}
	for alloc := range j.options.Lives(record.NodeID) {
		row := rows[alloc]
		if row == nil && !j.untrue[alloc] && j.options.Real && a.Before.ClusterVersion() >= opinion.CountsUnconfirmed {
			j.Add(maxViolations, RunsAfterEnd, invariant.Violation{At: now, Drain: id, Node: record.NodeID, Alloc: alloc},
				"the drain is complete, and a task of the allocation runs, of which the servers have no row")
			continue
		}
		if row == nil || j.untrue[alloc] || j.skewed && isConfirmed(a.After, alloc) || opinion.Excluded(row, record, a.Before.AllocsByNode(record.NodeID), a.Before) {
			continue
		}
		j.Add(maxViolations, RunsAfterEnd, invariant.Violation{At: now, Drain: id, Node: record.NodeID, Alloc: alloc},
			"the drain is complete, and a task of the allocation runs")
	}
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

// confirmed judges the allocations of a node that time confirms in an entry.
func (j *Judge) confirmed(now time.Time, a shims.Applied, id cluster.NodeID) {
	if j.skewed {
		return
	}
	for alloc := range j.options.Lives(id) {
		before, after := a.Before.Alloc(alloc), a.After.Alloc(alloc)
		if before == nil || after == nil || !before.ConfirmedAt.IsZero() || after.ConfirmedAt.IsZero() || j.untrue[alloc] {
			continue
		}
		j.Add(maxViolations, RunsAfterConfirm, invariant.Violation{At: now, Node: id, Alloc: alloc},
			"the servers have not reached its node since %s, its end was confirmed at %s, and a task runs", before.AwaySince, after.ConfirmedAt)
	}
}
