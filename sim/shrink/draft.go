package shrink

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// edit changes one part of a draft. Edits of one pass are independent: indexes stay valid until the
// sweep.
type edit func(*draft)

// draft is a scenario with edits, and the parts to remove from it.
type draft struct {
	*scenario.Scenario
	nodes  map[cluster.NodeID]bool
	jobs   map[cluster.JobKey]bool
	groups map[cluster.GroupKey]bool
	// events, allocs and clients hold indexes.
	events, allocs, clients map[int]bool
}

// edited returns the scenario after edits.
func edited(s *scenario.Scenario, edits []edit) *scenario.Scenario {
	d := &draft{
		Scenario: s.Copy(),
		nodes:    map[cluster.NodeID]bool{},
		jobs:     map[cluster.JobKey]bool{},
		groups:   map[cluster.GroupKey]bool{},
		events:   map[int]bool{},
		allocs:   map[int]bool{},
		clients:  map[int]bool{},
	}
	for _, e := range edits {
		e(d)
	}
	d.sweep()
	return d.Scenario
}

// sweep removes these parts and all references to them.
func (d *draft) sweep() {
	d.sweepJobs()
	d.sweepNodes()
	for i := range d.Allocs {
		a := &d.Allocs[i]
		d.removeUnder(&a.On, &a.Indexes)
		d.allocs[i] = d.allocs[i] || d.removed(a.Group) || len(a.On) == 0
	}
	for i := range d.Clients {
		d.clients[i] = d.clients[i] || d.refersToRemoved(d.Clients[i].Match)
	}
	for i := range d.Events {
		d.events[i] = d.events[i] || d.sweepOp(d.Events[i].Op)
	}
	d.Allocs = without(d.Allocs, d.allocs)
	d.Clients = without(d.Clients, d.clients)
	d.Events = without(d.Events, d.events)
}

func (d *draft) sweepJobs() {
	for i := range d.Jobs {
		j := &d.Jobs[i]
		j.Groups = slices.DeleteFunc(j.Groups, func(g scenario.Group) bool {
			return d.groups[cluster.GroupKey{Job: j.Key, Name: g.Name}]
		})
		if len(j.Groups) == 0 {
			d.jobs[j.Key] = true
		}
	}
	d.Jobs = slices.DeleteFunc(d.Jobs, func(j scenario.Job) bool { return d.jobs[j.Key] })
}

func (d *draft) sweepNodes() {
	d.removeNodes(&d.Run.CutNodes)
	for i := range d.Nodes {
		d.removeNodes(&d.Nodes[i].IDs)
	}
	d.Nodes = slices.DeleteFunc(d.Nodes, func(n scenario.Node) bool { return len(n.IDs) == 0 })
}

// removeNodes removes the nodes to remove from a list.
func (d *draft) removeNodes(ids *[]cluster.NodeID) {
	*ids = slices.DeleteFunc(*ids, func(id cluster.NodeID) bool { return d.nodes[id] })
}

// removeUnder removes nodes from the list of an operation or of allocations. If each allocation has
// its own node, it lowers the number of allocations too.
func (d *draft) removeUnder(on *[]cluster.NodeID, at *scenario.Indexes) {
	before := len(*on)
	if d.removeNodes(on); at != nil && at.Count == before {
		at.Count = len(*on)
	}
}

// removed reports whether a group is removed.
func (d *draft) removed(key cluster.GroupKey) bool { return d.jobs[key.Job] || d.groups[key] }

// refersToRemoved reports whether a selector refers to a removed part.
func (d *draft) refersToRemoved(s scenario.Selector) bool {
	return d.nodes[s.Node] || d.removed(cluster.GroupKey{Job: s.Job, Name: s.Group})
}

// sweepOp removes parts from an operation and reports whether the operation has no subject left.
func (d *draft) sweepOp(op scenario.Op) bool {
	if nodes, at := nodesOf(op); nodes != nil {
		if d.removeUnder(nodes, at); len(*nodes) == 0 {
			return true
		}
	}
	switch op := op.(type) {
	case *scenario.Place:
		return d.removed(op.Alloc.Group)
	case *scenario.Register:
		return d.jobs[op.Job]
	case *scenario.Edit:
		return d.removed(cluster.GroupKey{Job: op.Job, Name: op.Group})
	case *scenario.Stop:
		return d.jobs[op.Job]
	case *scenario.StopAlloc:
		return d.removed(op.Alloc.Group) || d.nodes[op.Alloc.Node]
	case *scenario.Exit:
		return d.removed(op.Alloc.Group) || d.nodes[op.Alloc.Node]
	case *scenario.TargetChange:
		return d.refersToRemoved(op.Match)
	case *scenario.Fault:
		return d.strikesRemoved(op)
	}
	return false
}

// strikesRemoved reports whether the target of a fault is removed.
func (d *draft) strikesRemoved(f *scenario.Fault) bool {
	if f.On == "" {
		return false
	}
	switch f.Name.Kind().On {
	case scenario.OnNode:
		return d.nodes[cluster.NodeID(f.On)]
	case scenario.OnAllocs, scenario.OnGroup, scenario.OnJob:
		s, err := scenario.ParseSelector(f.On)
		return err == nil && d.refersToRemoved(s)
	}
	return false
}

// without returns the list without the removed indexes.
func without[T any](list []T, removed map[int]bool) []T {
	left := make([]T, 0, len(list))
	for i := range list {
		if !removed[i] {
			left = append(left, list[i])
		}
	}
	return left
}
