package drainer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// watchedGroup is a group with allocations on draining nodes. There is one for each
// job of a large cluster when all of it drains, so it takes little memory while it has
// nothing to remember.
type watchedGroup struct {
	key cluster.GroupKey
	// dirty says that the group is to be judged anew.
	dirty bool
	// reevaluate says that an evaluation is wanted and not answered.
	reevaluate bool
	// wanting says that the group is among those that want marks.
	wanting bool
	// reevaluated spaces the evaluations that were written, refused the plans of a
	// group whose marks are refused. Nil is none.
	reevaluated, refused *attempts
	// asked are the marks that are wanted and not answered, by allocation.
	asked []ask
	// told is the entry in which it has changed since it was judged, if that was one
	// alone, wrote the one in which its own marks were applied; zero is none. Of a dirty
	// group they are zero.
	told, wrote uint64
	// onDraining are the group's live allocations on draining nodes, by id, as they
	// were when it was last judged.
	onDraining []*cluster.Allocation
	// held is since when something of the group is held, once for each reason for
	// which something is.
	held []hold
}

// Compare orders groups by key.
func (g *watchedGroup) Compare(o *watchedGroup) int { return g.key.Compare(o.key) }

// ask is a mark of a group in as little memory as may be: groups that move fast want
// many more than are written at a time.
type ask struct {
	alloc    cluster.AllocID
	node     cluster.NodeID
	drain    cluster.DrainID
	revision cluster.Revision
	class    cluster.MarkClass
}

// asks are the marks of one group, which are in order.
func asks(marks []Mark) []ask {
	if len(marks) == 0 {
		return nil
	}
	asked := make([]ask, len(marks))
	for i, m := range marks {
		asked[i] = ask{m.Alloc, m.Node, m.Drain, m.Revision, m.Class}
	}
	return asked
}

func (a ask) mark(group cluster.GroupKey) Mark {
	return Mark{Alloc: a.alloc, Group: group, Node: a.node, Drain: a.drain, Revision: a.revision, Class: a.class}
}

// find returns where the mark of the allocation is among those asked, or would be, and
// whether it is.
func (g *watchedGroup) find(id cluster.AllocID) (int, bool) {
	return slices.BinarySearchFunc(g.asked, id, func(a ask, id cluster.AllocID) int { return cmp.Compare(a.alloc, id) })
}

// asksFor reports whether a mark of the allocation is wanted and not answered.
func (g *watchedGroup) asksFor(id cluster.AllocID) bool {
	_, is := g.find(id)
	return is
}

// answered drops the mark of the allocation from those that are asked.
func (g *watchedGroup) answered(id cluster.AllocID) {
	if i, asked := g.find(id); asked {
		g.asked = slices.Delete(g.asked, i, i+1)
	}
}

// asksBeside reports whether the group wants marks besides those in flight.
func (g *watchedGroup) asksBeside(inFlight func(cluster.AllocID) bool) bool {
	return slices.ContainsFunc(g.asked, func(a ask) bool { return !inFlight(a.alloc) })
}

// hold is since when something of a group is held for a reason.
type hold struct {
	reason Reason
	since  time.Time
}

// keepHolds notes since when each reason has held.
func (g *watchedGroup) keepHolds(plan groupPlan, now time.Time) {
	g.held = slices.DeleteFunc(g.held, func(h hold) bool { return !plan.holds[h.reason] })
	since := g.heldSince()
	for reason, holds := range plan.holds {
		if holds && since[reason].IsZero() {
			g.held = append(g.held, hold{Reason(reason), now})
		}
	}
}

// heldSince is since when something of the group is held, by reason; zero if nothing
// is.
func (g *watchedGroup) heldSince() [ReasonCount]time.Time {
	var since [ReasonCount]time.Time
	for _, h := range g.held {
		since[h.reason] = h.since
	}
	return since
}

// groupList are groups in order, each once. To put one in moves those behind it by a
// word each, and compares it to few.
type groupList []*watchedGroup

// put has the group in the list, or not.
func (l *groupList) put(g *watchedGroup, in bool) {
	i, is := slices.BinarySearchFunc(*l, g, (*watchedGroup).Compare)
	switch {
	case in && !is:
		*l = slices.Insert(*l, i, g)
	case is && !in:
		*l = slices.Delete(*l, i, i+1)
	}
}

// watchedGroups are groups by job, those of a job in order of their names.
type watchedGroups map[cluster.JobKey][]*watchedGroup

// find returns where the group is among those of its job, or would be, and whether it
// is.
func (w watchedGroups) find(key cluster.GroupKey) (int, bool) {
	return slices.BinarySearchFunc(w[key.Job], key, func(g *watchedGroup, key cluster.GroupKey) int {
		return cmp.Compare(g.key.Name, key.Name)
	})
}

// get returns the group, or nil if it is not there.
func (w watchedGroups) get(key cluster.GroupKey) *watchedGroup {
	if i, is := w.find(key); is {
		return w[key.Job][i]
	}
	return nil
}

// add adds a group that is not there.
func (w watchedGroups) add(g *watchedGroup) {
	i, _ := w.find(g.key)
	w[g.key.Job] = slices.Insert(w[g.key.Job], i, g)
}

// remove removes the group, and its job with the last of its groups.
func (w watchedGroups) remove(g *watchedGroup) {
	i, is := w.find(g.key)
	if !is {
		return
	}
	w[g.key.Job] = slices.Delete(w[g.key.Job], i, i+1)
	if len(w[g.key.Job]) == 0 {
		delete(w, g.key.Job)
	}
}
