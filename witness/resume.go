package witness

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// Resume returns a witness of a log that is under way, of which it has not seen the
// beginning: s is the state before the first entry it will be shown. What it cannot
// have counted itself it takes from the state: the drains, and their marks, which are
// those that stand or those that the drain says it made, whichever are more.
//
// It costs a walk over the nodes and the records of drains, and remembers no more than
// running drains, their marks and groups, and which drains have ended. An owner that
// lives long begins anew by it when [Witness.Size] has grown. An audit of such a
// witness would find unseen what drains marked that have ended.
func Resume(o Options, s World) *Witness {
	w := New(o)
	for record := range s.Drains() {
		w.adopt(record, true)
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

// adopt takes over what the state says of a drain.
func (w *Witness) adopt(d *cluster.Drain, ended bool) *drain {
	known := &drain{ended: ended, DrainReport: DrainReport{
		ID: d.ID, Node: d.NodeID, NodeName: d.NodeName, Outcome: d.Outcome,
		StartedAt: d.Strategy.StartedAt, EndedAt: d.EndedAt, StartIndex: d.CreateIndex, EndIndex: d.EndIndex,
		StillStopping: d.StillStopping, Marked: d.Marked,
	}}
	w.drains[d.ID] = known
	return known
}

// adoptMark takes over a mark that a running drain has made on an allocation of its
// node, and returns its class. Marks of drains that have ended are nothing to come
// back to.
func (w *Witness) adoptMark(a *cluster.Allocation, d *cluster.Drain) cluster.MarkClass {
	t := a.DesiredTransition
	if !t.Migrate || t.Drain != d.ID {
		return cluster.MarkNone
	}
	w.marks[a.ID] = &mark{drain: t.Drain, class: t.Class, stopped: !opinion.Live(a), replaced: a.NextAllocation != ""}
	return t.Class
}

// Size is how many drains, marks and groups the witness remembers. It grows with the
// log, not with the state.
func (w *Witness) Size() int { return len(w.drains) + len(w.marks) + len(w.groups) }
