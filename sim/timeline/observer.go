package timeline

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// observer records the changes of one entry.
type observer struct {
	run   *Recorder
	entry shims.Applied
	at    time.Duration
	// touched are the groups whose levels may have changed, in order.
	touched []*group
}

// observe records what the entry has changed.
func (o *observer) observe() {
	names := applied.Entry(o.entry).Touched
	for _, id := range unique(names.Nodes) {
		o.node(id)
	}
	for _, id := range unique(names.Allocs) {
		o.alloc(id)
	}
	for _, key := range names.Jobs {
		o.touched = append(o.touched, o.run.jobs[key]...)
	}
	for _, g := range o.touched { // a group may occur twice; recordLevel ignores an unchanged level
		g.recordLevel(o.at, o.entry.After.Job(g.key.Job))
	}
}

// unique returns the sorted ids without duplicates.
func unique[T ~string](ids []T) []T {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// node records the changes of a node: its drain and its status. If the node became reachable or
// unreachable, it also records the health of the node's allocations.
func (o *observer) node(id cluster.NodeID) {
	before, after := o.entry.Before.Node(id), o.entry.After.Node(id)
	o.drain(id, after)
	if n := o.run.nodes[id]; n != nil {
		n.enter(o.at, statusOf(after))
	}
	if opinion.Reachable(before) == opinion.Reachable(after) {
		return
	}
	for a := range o.entry.After.WorkView().LiveAllocsByNode(id) {
		o.count(a)
	}
}

func statusOf(n *cluster.Node) cluster.NodeStatus {
	if n == nil {
		return ""
	}
	return n.Status
}

// drain records the changes of a node's drain. A nil node is deleted.
func (o *observer) drain(id cluster.NodeID, after *cluster.Node) {
	var now *cluster.Drain
	if after != nil {
		now = after.Drain
	}
	n := o.run.nodes[id]
	if n != nil {
		if d := n.running(); d != nil && (now == nil || d.id != now.ID) {
			d.finish(o.at, o.entry.After.DrainRecord(d.id))
			n.recount(o.at)
		}
	}
	switch {
	case now == nil:
	case n == nil:
		n = &node{id: id}
		o.run.nodes[id] = n
		o.run.nodeOrder = append(o.run.nodeOrder, n)
		o.start(n, now)
	case n.running() == nil:
		o.start(n, now)
	case n.running().revision != now.Revision:
		o.update(n.last(), now)
		o.liveRows(n)
	}
}

// update records the new strategy of a drain.
func (o *observer) update(d *drain, now *cluster.Drain) {
	d.update(now)
	if cutoff, ends := opinion.Cutoff(now); ends {
		d.cutoff, d.deadline = cutoff, o.run.timeOf(cutoff)
	}
}

// start records the start of a drain.
func (o *observer) start(n *node, now *cluster.Drain) {
	n.drains = append(n.drains, &drain{id: now.ID, start: o.at})
	o.update(n.last(), now)
	o.liveRows(n)
	n.recount(o.at)
	n.last().initially = n.nowLeft()
}

// liveRows records the live allocations of a node.
func (o *observer) liveRows(n *node) {
	for a := range o.entry.After.WorkView().LiveAllocsByNode(n.id) {
		o.row(n, a)
	}
}

// row records the phase of an allocation on a drained node, and gives its group a lane.
func (o *observer) row(n *node, a *cluster.Allocation) {
	w := o.run.rows[a.ID]
	if w == nil {
		if !opinion.Live(a) {
			return
		}
		w = &row{id: a.ID, name: rowName(a), group: groupOf(a)}
		o.run.rows[a.ID] = w
		n.rows = append(n.rows, w)
	}
	w.stage = opinion.StageOf(a)
	w.enter(o.at, phaseOf(a))
	n.recountRow(o.at, w)
	if n.running() != nil && opinion.TypeOf(a) == cluster.JobService && opinion.Live(a) {
		o.follow(w.group)
	}
}

// rowName is "group[index]", or the id of an allocation without an index.
func rowName(a *cluster.Allocation) string {
	if i := strings.LastIndexByte(a.Name, '['); i >= 0 {
		return scenario.GroupText(groupOf(a)) + a.Name[i:]
	}
	return string(a.ID)
}

// alloc records the changes of an allocation.
func (o *observer) alloc(id cluster.AllocID) {
	before, after := o.entry.Before.Alloc(id), o.entry.After.Alloc(id)
	if after == nil {
		o.purged(id, before)
		return
	}
	if n := o.run.nodes[after.NodeID]; n != nil {
		o.row(n, after)
	}
	o.count(after)
	if g := o.run.groups[groupOf(after)]; g != nil && (before == nil || !opinion.Leaving(before)) && after.DesiredTransition.Migrate {
		g.marks++
	}
	o.replaces(before, after)
}

// purged records that an allocation was purged.
func (o *observer) purged(id cluster.AllocID, before *cluster.Allocation) {
	if before == nil {
		return
	}
	if w := o.run.rows[id]; w != nil {
		w.enter(o.at, phaseOf(nil))
		o.run.nodes[before.NodeID].recountRow(o.at, w)
	}
	if g := o.run.groups[groupOf(before)]; g != nil {
		g.count(id, false)
		o.touched = append(o.touched, g)
	}
}

// replaces records the replacement of an allocation on a drained node, and the time at which the
// replacement became healthy.
func (o *observer) replaces(before, after *cluster.Allocation) {
	w := o.run.placed[after.ID]
	if w == nil && before == nil && after.PreviousAllocation != "" {
		if w = o.run.rows[after.PreviousAllocation]; w == nil {
			w = o.run.placed[after.PreviousAllocation] // the previous allocation was a replacement, too
		}
		if w != nil {
			o.run.placed[after.ID] = w
			w.next = &replacement{id: after.ID, node: after.NodeID, placed: o.at, healthy: -1}
		}
	}
	if w != nil && w.next.id == after.ID && w.next.healthy < 0 && opinion.HealthyButForMark(after, o.entry.After.Node(after.NodeID)) {
		w.next.healthy = o.at
	}
}

// count records the health of an allocation in its group, if the group has a lane.
func (o *observer) count(a *cluster.Allocation) {
	if g := o.run.groups[groupOf(a)]; g != nil {
		g.count(a.ID, opinion.Healthy(a, o.entry.After.Node(a.NodeID)))
		o.touched = append(o.touched, g)
	}
}

// follow gives a group a lane.
func (o *observer) follow(key cluster.GroupKey) {
	if o.run.groups[key] != nil {
		return
	}
	g := &group{key: key, healthy: make(map[cluster.AllocID]bool)}
	o.run.groups[key] = g
	o.run.groupOrder = append(o.run.groupOrder, g)
	o.run.jobs[key.Job] = append(o.run.jobs[key.Job], g)
	for a := range o.entry.After.DrainView().GroupAllocs(key) {
		g.count(a.ID, opinion.Healthy(a, o.entry.After.Node(a.NodeID)))
	}
	o.touched = append(o.touched, g)
}

func groupOf(a *cluster.Allocation) cluster.GroupKey {
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: a.Namespace, ID: a.JobID}, Name: a.TaskGroup}
}
