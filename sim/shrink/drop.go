package shrink

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// The passes that remove parts, with all references to them.

func dropEvents(s *scenario.Scenario) (edits []edit) {
	for i := range s.Events {
		edits = append(edits, func(d *draft) { d.events[i] = true })
	}
	return edits
}

func dropJobs(s *scenario.Scenario) (edits []edit) {
	for i := range s.Jobs {
		key := s.Jobs[i].Key
		edits = append(edits, func(d *draft) { d.jobs[key] = true })
	}
	return edits
}

func dropGroups(s *scenario.Scenario) (edits []edit) {
	for i := range s.Jobs {
		for _, g := range s.Jobs[i].Groups {
			key := cluster.GroupKey{Job: s.Jobs[i].Key, Name: g.Name}
			edits = append(edits, func(d *draft) { d.groups[key] = true })
		}
	}
	return edits
}

func dropNodes(s *scenario.Scenario) (edits []edit) {
	for i := range s.Nodes {
		for _, id := range s.Nodes[i].IDs {
			edits = append(edits, func(d *draft) { d.nodes[id] = true })
		}
	}
	return edits
}

func dropAllocs(s *scenario.Scenario) (edits []edit) {
	for i := range s.Allocs {
		edits = append(edits, func(d *draft) { d.allocs[i] = true })
	}
	return edits
}

func dropClients(s *scenario.Scenario) (edits []edit) {
	for i := range s.Clients {
		edits = append(edits, func(d *draft) { d.clients[i] = true })
	}
	return edits
}

// nodeList returns a list of nodes in a scenario, and the indexes of the allocations on them, or nil.
type nodeList func(*scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes)

// nodeLists returns the lists of nodes in allocations and events.
func nodeLists(s *scenario.Scenario) (all []nodeList) {
	for i := range s.Allocs {
		all = append(all, func(s *scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes) {
			return &s.Allocs[i].On, &s.Allocs[i].Indexes
		})
	}
	for i := range s.Events {
		if ids, _ := eventNodes(s, i); ids != nil {
			all = append(all, func(s *scenario.Scenario) (*[]cluster.NodeID, *scenario.Indexes) { return eventNodes(s, i) })
		}
	}
	return all
}

func eventNodes(s *scenario.Scenario, i int) (*[]cluster.NodeID, *scenario.Indexes) {
	switch op := s.Events[i].Op.(type) {
	case *scenario.Drain:
		return &op.Nodes, nil
	case *scenario.Cancel:
		return &op.Nodes, nil
	case *scenario.NodeChange:
		return &op.Nodes, nil
	case *scenario.Place:
		return &op.Alloc.On, &op.Alloc.Indexes
	}
	return nil, nil
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
