package shrink

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// edit changes one thing in a draft. Edits of one pass do not get in each other's
// way: places in lists stay what they are until the draft is swept.
type edit func(*draft)

// draft is a scenario that is changed, and the parts to remove from it.
type draft struct {
	*scenario.Scenario
	nodes  map[cluster.NodeID]bool
	jobs   map[cluster.JobKey]bool
	groups map[cluster.GroupKey]bool
	// events, allocs and clients go by their places.
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

// sweep removes those parts and all that refers to them.
func (d *draft) sweep() {
	d.sweepJobs()
	d.sweepNodes()
	for i := range d.Allocs {
		a := &d.Allocs[i]
		d.leave(&a.On, &a.Indexes)
		d.allocs[i] = d.allocs[i] || d.gone(a.Group) || len(a.On) == 0
	}
	for i := range d.Clients {
		d.clients[i] = d.clients[i] || d.misses(d.Clients[i].Match)
	}
	for i := range d.Events {
		d.events[i] = d.events[i] || d.pointless(d.Events[i].Op)
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
	d.stay(&d.Run.CutNodes)
	for i := range d.Nodes {
		d.stay(&d.Nodes[i].IDs)
	}
	d.Nodes = slices.DeleteFunc(d.Nodes, func(n scenario.Node) bool { return len(n.IDs) == 0 })
}

// stay leaves the nodes of a list that are not to go.
func (d *draft) stay(ids *[]cluster.NodeID) {
	*ids = slices.DeleteFunc(*ids, func(id cluster.NodeID) bool { return d.nodes[id] })
}

// leave takes nodes from under allocations, and their places with them.
func (d *draft) leave(on *[]cluster.NodeID, at *scenario.Indexes) {
	before := len(*on)
	if d.stay(on); at.Count == before {
		at.Count = len(*on)
	}
}

// gone reports whether a group is to go.
func (d *draft) gone(key cluster.GroupKey) bool { return d.jobs[key.Job] || d.groups[key] }

// misses reports whether a selector refers to a removed part.
func (d *draft) misses(s scenario.Selector) bool {
	return d.nodes[s.Node] || d.gone(cluster.GroupKey{Job: s.Job, Name: s.Group})
}

// pointless reports whether an operation is about nothing any more. It takes from
// the operation what is to go.
func (d *draft) pointless(op scenario.Op) bool {
	switch op := op.(type) {
	case *scenario.Drain:
		d.stay(&op.Nodes)
		return len(op.Nodes) == 0
	case *scenario.Cancel:
		d.stay(&op.Nodes)
		return len(op.Nodes) == 0
	case *scenario.NodeChange:
		d.stay(&op.Nodes)
		return len(op.Nodes) == 0
	case *scenario.Place:
		d.leave(&op.Alloc.On, &op.Alloc.Indexes)
		return len(op.Alloc.On) == 0 || d.gone(op.Alloc.Group)
	case *scenario.Register:
		return d.jobs[op.Job]
	case *scenario.Edit:
		return d.gone(cluster.GroupKey{Job: op.Job, Name: op.Group})
	case *scenario.Stop:
		return d.jobs[op.Job]
	case *scenario.StopAlloc:
		return d.gone(op.Alloc.Group) || d.nodes[op.Alloc.Node]
	case *scenario.Exit:
		return d.gone(op.Alloc.Group) || d.nodes[op.Alloc.Node]
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
		return err == nil && d.misses(s)
	}
	return false
}

// without returns the list without the places that are to go.
func without[T any](list []T, gone map[int]bool) []T {
	left := make([]T, 0, len(list))
	for i := range list {
		if !gone[i] {
			left = append(left, list[i])
		}
	}
	return left
}
