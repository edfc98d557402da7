package applied

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// Entry converts an applied entry to the witness's type.
func Entry(a shims.Applied) witness.Entry {
	e := witness.Entry{Index: a.Index, Before: a.Before, After: a.After}
	t := &e.Touched
	switch m := a.Message.(type) {
	case nil: // an entry that the FSM skipped
	case *shims.NodeRegister:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node.ID}
	case *shims.NodeDeregister:
		e.At = m.At
		t.Nodes = m.Nodes
	case *shims.NodeUpdateStatus:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateEligibility:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateDrain: // the end of a drain withdraws marks
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node}
		t.Allocs = ids(a.Before.AllocsByNode(m.Node))
	case *shims.JobRegister:
		t.Jobs = []cluster.JobKey{m.Job.Key()}
	case *shims.JobDeregister: // a purge deletes allocations
		t.Jobs = []cluster.JobKey{m.Job}
		t.Allocs = ids(a.Before.AllocsByJob(m.Job))
	case *shims.Collect:
		e.At = m.At
		t.Allocs, t.Jobs = m.Allocs, m.Jobs
	case *shims.AllocStop:
		e.At = m.At
		t.Allocs = []cluster.AllocID{m.Alloc}
	case *shims.VolumeDetach: // by force it stops allocations
		e.At = m.At
		for c := range a.Before.ClaimsOnNode(m.Node) {
			if c.Volume == m.Volume {
				t.Allocs = append(t.Allocs, c.Alloc)
			}
		}
	case *shims.EvalUpdate: // the witness does not follow evaluations
	case *shims.VolumeRegister, *shims.VolumeDeregister, *shims.ClaimUpdate: // nor volumes
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			e.At = latest(e.At, r.At)
			t.Allocs = append(t.Allocs, r.Alloc)
		}
	case *shims.ApplyPlan:
		e.At = m.At
		for _, stop := range m.Stops {
			t.Allocs = append(t.Allocs, stop.Alloc)
		}
		for _, place := range m.Places {
			t.Allocs = append(t.Allocs, place.ID)
		}
	case *shims.AllocUpdateDesiredTransition:
		e.At = m.At
		for _, mark := range m.Marks.Marks {
			t.Allocs = append(t.Allocs, mark.Alloc)
			e.Planned = append(e.Planned, witness.Planned{Alloc: mark.Alloc, Node: mark.Node, Revision: mark.Revision})
		}
	case *shims.NodesDrainComplete:
		e.At = m.At
		for _, c := range m.Completions.Completions {
			t.Nodes = append(t.Nodes, c.Node)
			e.Planned = append(e.Planned, witness.Planned{Node: c.Node, Revision: c.Revision})
		}
	}
	return e
}

func ids(allocs iter.Seq[*cluster.Allocation]) (ids []cluster.AllocID) {
	for a := range allocs {
		ids = append(ids, a.ID)
	}
	return ids
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
