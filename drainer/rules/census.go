package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// census is one walk over a group's changing allocations.
type census struct {
	// staying are the allocations on draining nodes that are not leaving, in no order.
	staying []resident
	// underway are the allocations whose mark, stop or verdict is outstanding, in no
	// order.
	underway []cluster.AllocID
	// onDraining are the nodes of the group's live allocations on draining nodes, in order,
	// once for each allocation.
	onDraining []cluster.NodeID
	// runsOnMarked means that a marked allocation still runs.
	runsOnMarked bool
	// placed are the allocations on draining nodes that were placed after the drain began, and
	// unowned those whose mark has no drain and that the servers have not stopped. Both are in the
	// order of the walk, and nil if there are none.
	placed, unowned []*cluster.Allocation
	// verdictDue is the earliest time at which a missing verdict becomes overdue, or zero.
	verdictDue time.Time
}

// resident is an allocation with its node, which drains.
type resident struct {
	*cluster.Allocation
	node *cluster.Node
}

func (g *group) census() *census {
	c := &census{}
	for a := range g.planner.view.ChangingAllocs(g.key) {
		if !a.ClientTerminal() {
			c.add(g, a)
		}
	}
	slices.Sort(c.onDraining)
	return c
}

func (c *census) add(g *group, a *cluster.Allocation) {
	node := g.planner.Node(a.NodeID)
	if g.isUnderway(a, node) {
		c.underway = append(c.underway, a.ID)
	}
	if g.awaitsVerdict(a) {
		c.verdictDue = earliest(c.verdictDue, g.overdueAt(a))
	}
	if !node.Draining() {
		return
	}
	c.onDraining = append(c.onDraining, a.NodeID)
	if !a.Leaving() {
		c.staying = append(c.staying, resident{a, node})
	}
	c.runsOnMarked = c.runsOnMarked || runsOnMarked(a, node)
	if placedAfter(a, node.Drain) {
		c.placed = append(c.placed, a)
	}
	if unowned(a) && !a.ServerTerminal() {
		c.unowned = append(c.unowned, a)
	}
}

func compareID(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) }
