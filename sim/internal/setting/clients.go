package setting

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// partly is a state of which some clients see nothing.
type partly struct {
	*statestore.Snapshot
	silent func(cluster.NodeID) bool
}

// Partly is a state as clients see it of which some are silent: each of those takes its
// node to be disconnected.
func Partly(s *statestore.Snapshot, silent func(cluster.NodeID) bool) simclient.State {
	return partly{s, silent}
}

// Node returns the node as its client knows it.
func (p partly) Node(id cluster.NodeID) *cluster.Node {
	n := p.Snapshot.Node(id)
	if n == nil || !p.silent(id) {
		return n
	}
	cut := n.Copy()
	cut.Status = cluster.NodeDisconnected
	return cut
}

// Afflicted is how an allocation fares when faults are armed. strikes says whether one
// does, this allocation being its opportunity. One that is never judged, or was, is none
// for what is about verdicts.
func Afflicted(b simclient.Behaviour, a *cluster.Allocation, strikes func(scenario.FaultName) bool) simclient.Behaviour {
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

// Concerned calls changed with the nodes whose clients an entry may have something for.
func Concerned(a shims.Applied, changed func(...cluster.NodeID)) {
	switch m := a.Message.(type) {
	case *shims.NodeRegister:
		changed(m.Node.ID)
	case *shims.NodeDeregister:
		changed(m.Nodes...)
	case *shims.NodeUpdateStatus:
		changed(m.Node)
	case *shims.NodeUpdateDrain: // it may withdraw marks
		changed(m.Node)
	case *shims.AllocClientUpdate: // what ended by itself, or what they said themselves
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
	case *shims.JobDeregister: // a purge deletes allocations
		for gone := range a.Before.AllocsByJob(m.Job) {
			changed(gone.NodeID)
		}
	}
}
