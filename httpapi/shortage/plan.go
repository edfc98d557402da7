package shortage

import (
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// OfPlan describes, by group, why a plan does not place allocations. It is nil if all are placed.
func OfPlan(s State, j *cluster.Job, p *cluster.Plan) map[string]*wire.AllocationMetric {
	if len(p.Eval.Queued) == 0 {
		return nil
	}
	after := newPlanned(s, p)
	failed := map[string]*wire.AllocationMetric{}
	for name, queued := range p.Eval.Queued {
		failed[name] = newShortage(after, j, j.Group(name), queued).metric
	}
	return failed
}

// planned is a state with the placements of a plan. Stopped allocations still hold their resources,
// because their clients have not stopped them yet.
type planned struct {
	State
	places []*cluster.Allocation
	used   map[cluster.NodeID]cluster.Usage
}

func newPlanned(s State, p *cluster.Plan) *planned {
	after := &planned{State: s, places: p.Places, used: map[cluster.NodeID]cluster.Usage{}}
	for _, a := range p.Places {
		u := after.used[a.NodeID]
		after.used[a.NodeID] = cluster.Usage{Live: u.Live + 1, Resources: u.Resources.Plus(a.Resources)}
	}
	return after
}

// Usage is the need of the node's allocations.
func (p *planned) Usage(id cluster.NodeID) cluster.Usage {
	u, more := p.State.Usage(id), p.used[id]
	return cluster.Usage{Live: u.Live + more.Live, Resources: u.Resources.Plus(more.Resources)}
}

// AllocsByNode yields the node's allocations.
func (p *planned) AllocsByNode(id cluster.NodeID) iter.Seq[*cluster.Allocation] {
	all := slices.Collect(p.State.AllocsByNode(id))
	for _, a := range p.places {
		if a.NodeID == id {
			all = append(all, a)
		}
	}
	return slices.Values(all)
}

// AllocsByJob yields the job's allocations.
func (p *planned) AllocsByJob(key cluster.JobKey) iter.Seq[*cluster.Allocation] {
	all := slices.Collect(p.State.AllocsByJob(key))
	for _, a := range p.places {
		if a.JobKey() == key {
			all = append(all, a)
		}
	}
	return slices.Values(all)
}
