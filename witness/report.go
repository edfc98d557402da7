package witness

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// GroupReport is what was counted of one group.
type GroupReport struct {
	Group cluster.GroupKey
	// Lowest is the lowest level since the group first had an allocation on a
	// draining node, whatever lowered it: deadlines and crashes too. Its Index
	// is zero if the group did not exist all that time.
	Lowest Level
	// LowestAtMark is the lowest level that a paced mark left; its Index is zero
	// if there was no paced mark. G1 holds for the group exactly if its Healthy
	// is not below its Limit.
	LowestAtMark Level
	PacedMarks   int
}

// DrainReport is what was counted of one drain.
type DrainReport struct {
	ID       cluster.DrainID
	Node     cluster.NodeID
	NodeName string
	// Outcome is empty while the drain runs; EndedAt, EndIndex and StillStopping
	// come with it, from the drain's record.
	Outcome       cluster.Outcome
	StartedAt     time.Time
	EndedAt       time.Time
	StartIndex    uint64
	EndIndex      uint64
	StillStopping int

	// Marked counts the drain's marks by class. The three below and those on
	// their way add up to them.
	Marked [cluster.MarkClassCount]int
	// Moved were marked, have stopped and have a replacement. Stopped have
	// stopped and have none: system allocations, batch work at a deadline, and
	// what could not be placed yet. Withdrawn lost their mark again.
	Moved, Stopped, Withdrawn int
}

// Report is everything the witness knows.
type Report struct {
	// Findings are the first of them, in the order in which they were made.
	Findings []Finding
	// Found counts all findings, those not kept included.
	Found int
	// Groups are the groups that had an allocation on a draining node, in order.
	Groups []GroupReport
	// Drains are the drains, by the index of their start, then id.
	Drains []DrainReport
}

// Report returns what has been seen so far. It shares nothing with the witness.
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
