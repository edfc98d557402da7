package setting

import (
	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// silenced is a state in which the nodes of silent clients are disconnected.
type silenced struct {
	simclient.State
	silent func(cluster.NodeID) bool
}

// ClientState returns a state as clients see it. A silent client sees its node as disconnected.
func ClientState(s *statestore.Snapshot, silent func(cluster.NodeID) bool) simclient.State {
	return silenced{s.WorkView(), silent}
}

// Node returns the node as its client sees it.
func (p silenced) Node(id cluster.NodeID) *cluster.Node {
	n := p.State.Node(id)
	if n == nil || !p.silent(id) {
		return n
	}
	cut := n.Copy()
	cut.Status = cluster.NodeDisconnected
	return cut
}

// WithFaults returns the behaviour of an allocation after the faults of clients. strikes reports
// whether a fault strikes at this allocation. Faults of verdicts have no opportunity if the
// allocation has a verdict or never gets one.
func WithFaults(b simclient.Behaviour, a *cluster.Allocation, strikes func(scenario.FaultName) bool) simclient.Behaviour {
	if strikes(scenario.ClientSlowStop) {
		b.Stop = a.StopTime()
	}
	if strikes(scenario.ClientNeverStop) {
		b.Stop = simclient.Never
	}
	if a.HasVerdict() || a.JobType().ToCompletion() || a.ServerTerminal() {
		return b
	}
	if strikes(scenario.ClientFailNew) {
		b.Unhealthy = true
	}
	if strikes(scenario.ClientMute) {
		b.Verdict = simclient.Never
	}
	return b
}

// ChangedNodes calls changed with the nodes whose clients may have to act on an entry.
func ChangedNodes(a shims.Applied, changed func(...cluster.NodeID)) {
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		changed(m.Node.ID)
	case *shims.NodeDeregister:
		changed(m.Nodes...)
	case *shims.NodeUpdateStatus:
		changed(m.Node)
	case *shims.NodeUpdateDrain: // it may withdraw marks
		changed(m.Node)
	case *shims.AllocClientUpdate: // also reports of the clients themselves
		for _, r := range m.Reports {
			changed(r.Node)
		}
	case *shims.AllocUpdateDesiredTransition:
		for _, mark := range m.Marks.Marks {
			changed(mark.Node)
		}
	case *shims.ApplyPlan:
		for _, stop := range m.Stops {
			if stopped := a.After.Alloc(stop.Alloc); stopped != nil {
				changed(stopped.NodeID)
			}
		}
		for _, place := range m.Places {
			changed(place.NodeID)
		}
	case *shims.Collect: // a client registers allocations without a row
		for _, id := range m.Allocs {
			if gone := a.Before.Alloc(id); gone != nil {
				changed(gone.NodeID)
			}
		}
	case *shims.JobRegister: // allocations may get the services of the new version
		for given := range a.After.AllocsByJob(m.Job.Key()) {
			if given.AllocModifyIndex == a.Index {
				changed(given.NodeID)
			}
		}
	case *shims.JobDeregister: // a purge stops or deletes allocations
		for gone := range a.Before.AllocsByJob(m.Job) {
			changed(gone.NodeID)
		}
	}
}
