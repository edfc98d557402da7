package setting

import (
	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
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
