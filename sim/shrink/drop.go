package shrink

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The passes that remove parts, with all references to them.

// each returns an edit of each of n parts.
func each(n int, e func(d *draft, i int)) (edits []edit) {
	for i := range n {
		edits = append(edits, func(d *draft) { e(d, i) })
	}
	return edits
}

func dropEvents(s *scenario.Scenario) []edit {
	return each(len(s.Events), func(d *draft, i int) { d.events[i] = true })
}

func dropJobs(s *scenario.Scenario) []edit {
	return each(len(s.Jobs), func(d *draft, i int) { d.jobs[s.Jobs[i].Key] = true })
}

func dropGroups(s *scenario.Scenario) (edits []edit) {
	for _, j := range s.Jobs {
		edits = append(edits, each(len(j.Groups), func(d *draft, i int) {
			d.groups[cluster.GroupKey{Job: j.Key, Name: j.Groups[i].Name}] = true
		})...)
	}
	return edits
}

func dropNodes(s *scenario.Scenario) (edits []edit) {
	for _, n := range s.Nodes {
		edits = append(edits, each(len(n.IDs), func(d *draft, i int) { d.nodes[n.IDs[i]] = true })...)
	}
	return edits
}

func dropAllocs(s *scenario.Scenario) []edit {
	return each(len(s.Allocs), func(d *draft, i int) { d.allocs[i] = true })
}

func dropClients(s *scenario.Scenario) []edit {
	return each(len(s.Clients), func(d *draft, i int) { d.clients[i] = true })
}

// nodeList returns a list of nodes in a scenario, and the indexes of the allocations on them, or
// nil.
type nodeList func(*scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes)

// nodeLists returns the lists of nodes in allocations and events.
func nodeLists(s *scenario.Scenario) (all []nodeList) {
	for i := range s.Allocs {
		all = append(all, func(s *scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes) {
			return &s.Allocs[i].On, &s.Allocs[i].Indexes
		})
	}
	for i := range s.Events {
		if ids, _ := nodesOf(s.Events[i].Op); ids != nil {
			all = append(all, func(s *scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes) { return nodesOf(s.Events[i].Op) })
		}
	}
	return all
}

// nodesOf returns the nodes of an operation, or nil, and the indexes of the allocations that it
// places on them, or nil.
func nodesOf(op scenario.Op) (*[]cluster.NodeID, *scenario.Indexes) {
	switch op := op.(type) {
	case *scenario.Drain:
		return &op.Nodes, nil
	case *scenario.Cancel:
		return &op.Nodes, nil
	case *scenario.Confirm:
		return &op.Nodes, nil
	case *scenario.PauseDrains:
		return pausedNodes(&op.Nodes), nil
	case *scenario.ResumeDrains:
		return pausedNodes(&op.Nodes), nil
	case *scenario.NodeChange:
		return &op.Nodes, nil
	case *scenario.Place:
		return &op.Alloc.On, &op.Alloc.Indexes
	}
	return nil, nil
}

// pausedNodes returns the nodes of a pause, or nil if it is of all drains.
func pausedNodes(ids *[]cluster.NodeID) *[]cluster.NodeID {
	if len(*ids) == 0 {
		return nil
	}
	return ids
}

// noNode replaces a removed node in a list until the sweep, so that indexes stay valid.
const noNode cluster.NodeID = ""

// dropFromLists removes single nodes from lists.
func dropFromLists(s *scenario.Scenario) (edits []edit) {
	for _, list := range nodeLists(s) {
		ids, _ := list(s)
		for i := range *ids {
			edits = append(edits, func(d *draft) {
				ids, _ := list(d.Scenario)
				(*ids)[i], d.nodes[noNode] = noNode, true
			})
		}
	}
	return edits
}

// lowerCounts lowers the counts of groups and removes the surplus allocations.
func lowerCounts(by func(int) int) func(*scenario.Scenario) []edit {
	return func(s *scenario.Scenario) (edits []edit) {
		for i := range s.Jobs {
			for g := range s.Jobs[i].Groups {
				if lower := by(s.Jobs[i].Groups[g].Count); lower >= 0 && lower < s.Jobs[i].Groups[g].Count {
					edits = append(edits, func(d *draft) { d.lowerCount(i, g, lower) })
				}
			}
		}
		return edits
	}
}

func half(n int) int    { return n / 2 }
func oneLess(n int) int { return n - 1 }

func (d *draft) lowerCount(job, group, count int) {
	j := &d.Jobs[job]
	j.Groups[group].Count = count
	key := cluster.GroupKey{Job: j.Key, Name: j.Groups[group].Name}
	for i := range d.Allocs {
		a := &d.Allocs[i]
		if a.Group != key || a.Canary {
			continue
		}
		if left := max(0, min(count-a.Indexes.First, max(a.Indexes.Count, len(a.On)))); a.Indexes.Count > left || a.Indexes.Count == 0 {
			a.On = a.On[:min(left, len(a.On))]
			a.Indexes.Count = min(a.Indexes.Count, left)
		}
	}
}
