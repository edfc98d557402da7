package applied

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// Entry converts an applied entry to the witness's type. It names the rows that the entry may have
// written. They follow from the message and from the state before it, so they are the same on every
// server.
func Entry(a shims.Applied) witness.Entry {
	e := entry(a)
	if a.Before != nil {
		e.Touched.Allocs = append(e.Touched.Allocs, standbys(a.Before, e.Touched.Allocs)...)
	}
	return e
}

// standbys returns the standby allocations beside allocations, and those beside which standby allocations stand: an
// entry that ends one of them may write the other.
func standbys(before *statestore.Snapshot, allocs []cluster.AllocID) (all []cluster.AllocID) {
	for _, id := range allocs {
		row := before.Alloc(id)
		if row == nil {
			continue
		}
		for next := before.Alloc(row.NextAllocation); next != nil && next.Standby; next = before.Alloc(next.NextAllocation) {
			all = append(all, next.ID)
		}
		for row != nil && row.Standby {
			if row = before.Alloc(row.PreviousAllocation); row != nil {
				all = append(all, row.ID)
			}
		}
	}
	return all
}

func entry(a shims.Applied) witness.Entry {
	e := witness.Entry{Index: a.Index, Before: a.Before, After: a.After, Source: witness.Other}
	t := &e.Touched
	switch m := a.Message.(type) {
	case nil: // an entry that the FSM skipped
		e.Source = witness.UnknownSource
	case *shims.NodeRegister:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node.ID}
	case *shims.NodeDeregister:
		e.At = m.At
		t.Nodes = m.Nodes
		t.Allocs = deregistered(a, m.Nodes)
	case *shims.NodeUpdateStatus:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateEligibility:
		e.At = m.At
		t.Nodes = []cluster.NodeID{m.Node}
	case *shims.NodeUpdateDrain:
		e.At, e.Source = m.At, witness.Operator
		t.Nodes = []cluster.NodeID{m.Node}
		if m.Spec == nil { // a cancel withdraws marks
			t.Allocs = append(ids(a.Before.WorkView().LiveAllocsByNode(m.Node)), unconfirmed(a, m.Node)...)
		}
	case *shims.PauseDrains:
		e.At, e.Source = m.At, witness.Operator
		t.Nodes = pausedNodes(a, m)
	case *shims.JobRegister:
		t.Jobs = []cluster.JobKey{keyOf(m.Job)}
	case *shims.JobDeregister:
		t.Jobs = []cluster.JobKey{m.Job}
		if m.Purge { // it stops or deletes the allocations, and drains count those that ran
			e.At = m.At
			for alloc := range a.Before.AllocsByJob(m.Job) {
				t.Allocs, t.Nodes = append(t.Allocs, alloc.ID), append(t.Nodes, alloc.NodeID)
			}
		}
	case *shims.Collect: // the allocations of a finished batch job are deleted with it
		e.At, e.Source = m.At, witness.Collection
		t.Jobs, t.Allocs = m.Jobs, slices.Clone(m.Allocs)
		for _, key := range m.Jobs {
			t.Allocs = append(t.Allocs, ids(a.Before.AllocsByJob(key))...)
		}
	case *shims.ConfirmStops:
		e.At = m.At
		t.Nodes, t.Allocs = m.Nodes, unconfirmed(a, m.Nodes...)
	case *shims.ConfirmDrain:
		e.At, e.Source = m.At, witness.Operator
		if d := a.Before.DrainRecord(m.Drain); d != nil {
			t.Nodes, t.Allocs = []cluster.NodeID{d.NodeID}, unconfirmed(a, d.NodeID)
		}
	case *shims.AllocStop:
		e.At = m.At
		t.Allocs = []cluster.AllocID{m.Alloc}
	case *shims.VolumeDetach: // by force it stops allocations
		e.At = m.At
		t.Allocs = ids(a.Before.WorkView().LiveAllocsByNode(m.Node))
	case *shims.NodeAppendEvent, *shims.EvalUpdate: // the witness follows neither events nor evaluations
	case *shims.VolumeRegister, *shims.VolumeDeregister, *shims.ClaimUpdate: // nor volumes
	case *shims.AllocClientUpdate:
		e.At = m.At
		for _, r := range m.Reports {
			e.At = latest(e.At, r.At)
			t.Allocs = append(t.Allocs, reported(a, r)...)
		}
	case *shims.ApplyPlan:
		e.At = m.At
		t.Allocs = planned(&m.Plan)
	case *shims.AllocUpdateDesiredTransition:
		e.At, e.Source = m.At, witness.Drainer
		addMarks(&e, m.Marks.Marks)
	case *shims.NodesDrainComplete:
		e.At, e.Source = m.At, witness.Drainer
		for _, c := range m.Completions.Completions {
			t.Nodes = append(t.Nodes, c.Node)
			e.Planned = append(e.Planned, witness.Planned{Node: c.Node, Revision: c.Revision})
		}
		t.Allocs = unconfirmed(a, t.Nodes...) // the entry confirms none of them
	}
	return e
}

// deregistered returns the allocations of deleted nodes that such an entry may write. Unknown
// allocations continue without the row of the node.
func deregistered(a shims.Applied, nodes []cluster.NodeID) []cluster.AllocID {
	allocs := unconfirmed(a, nodes...)
	if a.Before != nil {
		for _, id := range nodes {
			allocs = append(allocs, ids(a.Before.WorkView().LiveAllocsByNode(id))...)
		}
	}
	return allocs
}

// planned returns the allocations that a plan stops or places.
func planned(p *cluster.Plan) (allocs []cluster.AllocID) {
	for _, stop := range p.Stops {
		allocs = append(allocs, stop.Alloc)
	}
	for _, place := range p.Places {
		if place != nil {
			allocs = append(allocs, place.ID)
		}
	}
	return allocs
}

// keyOf returns the key of a job after its registration. An empty namespace becomes the default
// one.
func keyOf(j *cluster.Job) cluster.JobKey {
	return cluster.JobKey{Namespace: cmp.Or(j.Namespace, cluster.DefaultNamespace), ID: j.ID}
}

// reported returns the allocations whose rows a report may write: the end of a move of data is on both
// rows. A client that has lost its records reports no move, and the end is that of the row.
func reported(a shims.Applied, r cluster.AllocReport) []cluster.AllocID {
	all := []cluster.AllocID{r.Alloc}
	if r.DataIn != nil && r.DataIn.Peer != "" {
		all = append(all, r.DataIn.Peer)
	}
	if a.Before == nil {
		return all
	}
	if row := a.Before.Alloc(r.Alloc); row != nil && row.DataIn != nil && row.DataIn.Peer != "" {
		all = append(all, row.DataIn.Peer)
	}
	return all
}

// unconfirmed returns the unconfirmed allocations of nodes: an entry that ends a drain, or confirms
// ends, may write their rows. Without a state before the entry there are none.
func unconfirmed(a shims.Applied, nodes ...cluster.NodeID) (all []cluster.AllocID) {
	if a.Before == nil {
		return nil
	}
	for _, id := range nodes {
		all = append(all, ids(a.Before.DrainView().Unconfirmed(id))...)
	}
	return all
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

// pausedNodes are the nodes whose drains a request may pause or resume.
func pausedNodes(a shims.Applied, m *shims.PauseDrains) (nodes []cluster.NodeID) {
	if m.Node != "" {
		return []cluster.NodeID{m.Node}
	}
	draining, _ := a.Before.Draining()
	for n := range draining {
		nodes = append(nodes, n.ID)
	}
	return nodes
}

// addMarks adds the marks that an entry plans, and their rows.
func addMarks(e *witness.Entry, marks []rules.Mark) {
	for _, mark := range marks {
		e.Touched.Allocs, e.Touched.Nodes = append(e.Touched.Allocs, mark.Alloc), append(e.Touched.Nodes, mark.Node)
		e.Planned = append(e.Planned, witness.Planned{Alloc: mark.Alloc, Node: mark.Node, Revision: mark.Revision, Class: mark.Class, Surge: mark.Surge})
	}
}
