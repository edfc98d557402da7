package witness

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Resume returns a witness that starts in the middle of a log: s is the state before the
// first entry it will observe. It takes the earlier counts from the state: the drains, and
// for each class of marks the larger of the marks present and the drain's own count.
//
// It walks the nodes and the drain records, and keeps only the running drains with their
// marks and groups, and which drains have ended. A long-lived owner calls it again when
// [Witness.Size] has grown. An audit of such a witness reports the marks of ended drains as
// unseen.
func Resume(o Options, s World) *Witness {
	w := New(o)
	for record := range s.Drains() {
		confirmations{w: w}.adoptCount(s, w.adopt(record, true), record)
	}
	for n := range s.Nodes() {
		if n.Drain == nil {
			continue
		}
		d := w.adopt(n.Drain, false)
		var standing [cluster.MarkClassCount]int
		for a := range s.AllocsByNode(n.ID) {
			w.follow(groupOf(a))
			if class := w.adoptMark(a, n.Drain); class != cluster.MarkNone && class < cluster.MarkClassCount {
				standing[class]++
			}
		}
		for class, count := range standing {
			d.Marked[class] = max(d.Marked[class], count)
		}
	}
	return w
}

// adopt records a drain from the state.
func (w *Witness) adopt(d *cluster.Drain, ended bool) *drain {
	adopted := &drain{ended: ended, DrainReport: DrainReport{
		ID: d.ID, Node: d.NodeID, NodeName: d.NodeName, Outcome: d.Outcome,
		StartedAt: d.Strategy.StartedAt, EndedAt: d.EndedAt, StartIndex: d.CreateIndex, EndIndex: d.EndIndex,
		StillStopping: d.StillStopping, Marked: d.Marked,
	}}
	w.drains[d.ID] = adopted
	return adopted
}

// adoptMark records the mark of a running drain on an allocation of its node, and returns
// its class. It ignores marks of ended drains.
func (w *Witness) adoptMark(a *cluster.Allocation, d *cluster.Drain) cluster.MarkClass {
	t := a.DesiredTransition
	if !t.Migrate || t.Drain != d.ID {
		return cluster.MarkNone
	}
	w.marks[a.ID] = &mark{drain: t.Drain, class: t.Class, stopped: !opinion.Live(a), replaced: a.NextAllocation != ""}
	return t.Class
}

// Size returns the number of drains, marks and groups that the witness holds. It grows with
// the log, not with the state.
func (w *Witness) Size() int { return len(w.drains) + len(w.marks) + len(w.groups) }
