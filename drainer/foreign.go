package drainer

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// foreign is what no drain does on a draining node: a placement after the drain began, or a mark
// without a drain. Both are mistakes of a scheduler or a store, except the mark of an operator who
// stops one allocation. Without a message, only a drain that does not end would show them.
type foreign struct {
	alloc *cluster.Allocation
	drain cluster.DrainID // of the node
	mark  bool
}

// foreignKey identifies what was found.
type foreignKey struct {
	alloc cluster.AllocID
	drain cluster.DrainID
	mark  bool
}

// foreignReporter is a job watcher that finds what no drain does, as the built-in watcher does.
type foreignReporter interface {
	// takeForeign returns what was found since the last call, each once, in the order of the plans.
	takeForeign() []foreign
}

// noteForeign keeps what a plan has found, and returns what the plan before had not. It costs
// nothing if the plan has found nothing.
func (g *watchedGroup) noteForeign(plan rules.GroupPlan, node func(cluster.NodeID) *cluster.Node) (found []foreign) {
	before := g.foreign
	g.foreign = nil
	if len(plan.Placed)+len(plan.Unowned) == 0 {
		return nil
	}
	g.foreign = make(map[foreignKey]bool, len(plan.Placed)+len(plan.Unowned))
	for i, a := range slices.Concat(plan.Placed, plan.Unowned) {
		f := foreign{alloc: a, drain: node(a.NodeID).Drain.ID, mark: i >= len(plan.Placed)}
		key := foreignKey{a.ID, f.drain, f.mark}
		g.foreign[key] = true
		if !before[key] {
			found = append(found, f)
		}
	}
	return found
}

// observed counts what no drain has done on a node, of one kind, and spaces the messages about it.
type observed struct {
	count int
	// newest is the newest allocation, or nil.
	newest   *cluster.Allocation
	messages attempts
}

func (o *observed) add(a *cluster.Allocation) {
	o.count++
	if o.newest == nil || cmp.Or(cmp.Compare(a.CreateIndex, o.newest.CreateIndex), cmp.Compare(a.ID, o.newest.ID)) > 0 {
		o.newest = a
	}
}

// log logs the first of a drain, and later ones after growing waits.
func (o *observed) log(write func(string, ...any), message string, n *drainingNode, now time.Time) {
	if !o.messages.wait(now).IsZero() {
		return
	}
	o.messages.failed(Backoff{Base: time.Minute, Max: time.Hour}, now)
	write(message, "node", n.id, "drain", n.drain, "count", o.count, "newest", o.newest.ID, "job", o.newest.JobKey(), "group", o.newest.TaskGroup)
}

// noteForeign counts what the job watcher has found, and logs it.
func (d *drainingNodes) noteForeign(now time.Time) {
	reporter, is := d.jobs.(foreignReporter)
	if !is {
		return
	}
	var placed, unowned []cluster.NodeID
	for _, f := range reporter.takeForeign() {
		switch n := d.byID[f.alloc.NodeID]; {
		case n == nil || n.drain != f.drain:
		case f.mark:
			n.unowned.add(f.alloc)
			unowned = append(unowned, n.id)
		default:
			n.placed.add(f.alloc)
			placed = append(placed, n.id)
		}
	}
	for _, id := range unique(placed) {
		n := d.byID[id]
		n.placed.log(d.logger.Warn, "allocations were placed on a draining node: the scheduler must place nothing there, and the drain waits for them too", n, now)
	}
	for _, id := range unique(unowned) {
		n := d.byID[id]
		n.unowned.log(d.logger.Info, "allocations on a draining node are marked, but not by the drain: it does not count them, and a cancel does not withdraw the marks", n, now)
	}
}

// unique returns the ids in order, each once.
func unique(ids []cluster.NodeID) []cluster.NodeID {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// placements returns a function for reports, or nil if nothing was placed.
func (d *drainingNodes) placements() func(cluster.DrainID) (int, *cluster.Allocation) {
	var placed map[cluster.DrainID]observed
	for _, n := range d.byID { //lint:order each drain by itself
		if n.placed.count > 0 {
			if placed == nil {
				placed = map[cluster.DrainID]observed{}
			}
			placed[n.drain] = n.placed
		}
	}
	if placed == nil {
		return nil
	}
	return func(id cluster.DrainID) (int, *cluster.Allocation) { return placed[id].count, placed[id].newest }
}
