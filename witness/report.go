package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// GroupReport holds the counts of one group.
type GroupReport struct {
	Group cluster.GroupKey
	// Lowest is the lowest level since the group first had an allocation on a
	// draining node, for any reason, including deadlines and crashes. Its Index
	// is zero if the group did not exist in all that time.
	Lowest Level
	// LowestAtMark is the lowest level after a paced mark. Its Index is zero if
	// there was no paced mark. G1 holds for the group exactly if its Healthy is
	// not below its Limit.
	LowestAtMark Level
	PacedMarks   int
}

// DrainReport holds the counts of one drain.
type DrainReport struct {
	ID       cluster.DrainID
	Node     cluster.NodeID
	NodeName string
	// Outcome is empty while the drain runs. EndedAt, EndIndex and StillStopping are
	// set with it, from the drain's record.
	Outcome       cluster.Outcome
	StartedAt     time.Time
	EndedAt       time.Time
	StartIndex    uint64
	EndIndex      uint64
	StillStopping int
	// Unconfirmed is the present count of the record.
	Unconfirmed int

	// Marked counts the drain's marks by class. Their sum is Moved, Stopped and
	// Withdrawn plus the marked allocations that still run.
	Marked [cluster.MarkClassCount]int
	// Moved counts marked allocations that stopped and have a replacement. Stopped
	// counts those that stopped without one: system allocations, batch work at a
	// deadline, and allocations whose replacement has no node yet. Withdrawn counts
	// withdrawn marks.
	Moved, Stopped, Withdrawn int
}

// Report holds all results of the witness.
type Report struct {
	// Findings are the first findings, in order.
	Findings []Finding
	// Found counts all findings, including those not kept.
	Found int
	// Groups are the groups that had an allocation on a draining node, in order.
	Groups []GroupReport
	// Drains are the drains, by the index of their start, then id.
	Drains []DrainReport
}

// Report returns the results so far. It shares no memory with the witness.
func (w *Witness) Report() Report {
	r := Report{Findings: slices.Clone(w.findings), Found: w.found}
	for _, key := range slices.SortedFunc(maps.Keys(w.groups), cluster.GroupKey.Compare) {
		g := w.groups[key]
		r.Groups = append(r.Groups, GroupReport{Group: key, Lowest: g.lowest, LowestAtMark: g.lowestAtMark, PacedMarks: g.pacedMarks})
	}
	drains := make(map[cluster.DrainID]*DrainReport, len(w.drains))
	for id, d := range w.drains {
		report := d.DrainReport
		drains[id] = &report
	}
	for _, m := range w.marks {
		switch d := drains[m.drain]; {
		case m.stopped && m.replaced:
			d.Moved++
		case m.stopped:
			d.Stopped++
		}
	}
	for _, d := range drains {
		r.Drains = append(r.Drains, *d)
	}
	slices.SortFunc(r.Drains, func(a, b DrainReport) int {
		return cmp.Or(cmp.Compare(a.StartIndex, b.StartIndex), cmp.Compare(a.ID, b.ID))
	})
	return r
}
