package shims

import "github.com/seed-f9cf0b39/nodedrain/cluster"

// ChangedNodes calls changed with the nodes whose clients may have to act on an entry.
func ChangedNodes(a Applied, changed func(...cluster.NodeID)) {
	switch m := a.Message.(type) {
	case *NodeRegister:
		changed(m.Node.ID)
	case *NodeDeregister:
		changed(m.Nodes...)
	case *NodeUpdateStatus:
		changed(m.Node)
	case *NodeUpdateDrain: // it may withdraw marks
		changed(m.Node)
	case *AllocClientUpdate: // also reports of the clients themselves
		for _, r := range m.Reports {
			changed(r.Node)
		}
	case *AllocUpdateDesiredTransition:
		for _, mark := range m.Marks.Marks {
			changed(mark.Node)
		}
	case *ApplyPlan:
		for _, stop := range m.Stops {
			if stopped := a.After.Alloc(stop.Alloc); stopped != nil {
				changed(stopped.NodeID)
			}
		}
		for _, place := range m.Places {
			changed(place.NodeID)
		}
	case *Collect: // a client registers allocations without a row
		for _, id := range m.Allocs {
			if gone := a.Before.Alloc(id); gone != nil {
				changed(gone.NodeID)
			}
		}
	case *JobRegister: // allocations may get the services of the new version
		for given := range a.After.AllocsByJob(m.Job.Key()) {
			if given.AllocModifyIndex == a.Index {
				changed(given.NodeID)
			}
		}
	case *JobDeregister: // a purge stops or deletes allocations
		for gone := range a.Before.AllocsByJob(m.Job) {
			changed(gone.NodeID)
		}
	}
}
