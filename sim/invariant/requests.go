package invariant

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// judgeRequest judges what an operator's request did: one whose key was seen
// before changes nothing, a strategy is what was asked for and its deadline counts
// from then, and a cancel takes back the marks of its drain and no others.
func (j *Judge) judgeRequest(e *entry, m *shims.NodeUpdateDrain) {
	updated, ok := e.Response.(shims.DrainRequestApplied)
	if !ok {
		return // refused: nothing was asked of anything
	}
	n := j.book.node(m.Node)
	about := on(n)
	if seen := j.seenKey(n, m.Key); seen != "" || updated.Repeated {
		if seen == "" || !updated.Repeated || j.changed(e) {
			j.find(RepeatedActed, about, "a request with key %q, seen in drain %q, was taken as repeated %t and changed %d rows",
				m.Key, seen, updated.Repeated, len(e.nodes)+len(e.allocs)+len(e.evals)+len(e.records))
		}
		return
	}
	if m.Spec != nil {
		j.judgeStrategy(e, m, about)
		return
	}
	if n.drain() != nil {
		j.judgeCancel(e, n.drain(), updated.DrainResult)
	}
}

// seenKey returns the drain of the node, running or kept as a record, that a
// request with the key has made what it is.
func (j *Judge) seenKey(n *node, key string) cluster.DrainID {
	if key == "" {
		return ""
	}
	if d := n.drain(); d != nil && slices.Contains(d.Keys, key) {
		return d.ID
	}
	seen := cluster.DrainID("")
	for id, d := range j.book.records { //lint:order the lowest of them, whatever the order
		if d.NodeID == n.id && slices.Contains(d.Keys, key) && (seen == "" || id < seen) {
			seen = id
		}
	}
	return seen
}

// changed reports whether the entry has changed anything at all. Rows of another
// store may be other objects with the same content.
func (j *Judge) changed(e *entry) bool {
	return slices.ContainsFunc(e.nodes, func(c change[cluster.Node]) bool { return digestNode(c.before) != digestNode(c.after) }) ||
		slices.ContainsFunc(e.allocs, func(c change[cluster.Allocation]) bool { return digestAlloc(c.before) != digestAlloc(c.after) }) ||
		slices.ContainsFunc(e.evals, func(c change[cluster.Evaluation]) bool { return digestEval(c.before) != digestEval(c.after) }) ||
		slices.ContainsFunc(e.records, func(c change[cluster.Drain]) bool { return digestDrain(c.before) != digestDrain(c.after) })
}

// judgeStrategy judges the strategy that a request has made.
func (j *Judge) judgeStrategy(e *entry, m *shims.NodeUpdateDrain, about Violation) {
	n := e.After.Node(m.Node)
	if n == nil || n.Drain == nil {
		j.find(DeadlineMoved, about, "a drain was asked for and the node does not drain")
		return
	}
	about.Drain = n.Drain.ID
	want := time.Time{}
	if m.Spec.Deadline > 0 {
		want = m.At.Add(m.Spec.Deadline)
	}
	s := n.Drain.Strategy
	if s.DrainSpec != *m.Spec || !s.ForceDeadline.Equal(want) || !n.Drain.UpdatedAt.Equal(m.At) {
		j.find(DeadlineMoved, about, "asked for %+v at %s, and the strategy is %+v, its deadline %s", *m.Spec, m.At, s.DrainSpec, s.ForceDeadline)
	}
}

// judgeCancel judges what became of a drain's marks when it was cancelled.
func (j *Judge) judgeCancel(e *entry, d *cluster.Drain, said statestore.DrainResult) {
	about := Violation{Drain: d.ID, Node: d.NodeID}
	withdrawn, stopping := 0, []cluster.AllocID{}
	for _, a := range j.book.marked[d.ID] {
		switch {
		case j.book.allocs[a.id()] != a || !a.markedBy(d.ID) || !a.live():
			continue
		case a.stopping():
			stopping = append(stopping, a.id())
			continue
		}
		withdrawn++
		c := e.change(a.id())
		if c == nil || c.after == nil || c.after.DesiredTransition.Migrate {
			j.find(NotWithdrawn, of(a), "its mark outlives the drain, and it was to run on")
			continue
		}
		// A class that is left behind would hold a slot of the group for good.
		left := c.after.DesiredTransition
		if left.Class != cluster.MarkNone || left.Drain != "" || !left.MarkedAt.IsZero() || left.MigrateDisablePlacement {
			j.find(NotWithdrawn, of(a), "its mark is taken back, and of it are left drain %q, class %s, %s, MigrateDisablePlacement %t",
				left.Drain, left.Class, left.MarkedAt, left.MigrateDisablePlacement)
		}
	}
	slices.Sort(stopping)
	if said.Drain != d.ID || said.Withdrawn != withdrawn || !slices.Equal(said.Stopping, slices.Compact(stopping)) {
		j.find(NotWithdrawn, about, "the answer says %d marks were withdrawn and %v stop already; it were %d and %v",
			said.Withdrawn, said.Stopping, withdrawn, stopping)
	}
}
