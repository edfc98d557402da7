package world

import (
	"math/rand/v2"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/simclient"
)

// behave is how an allocation fares: as the world's options have it, and as faults
// will. One that is never judged, or was, is no opportunity for what is about verdicts.
func (w *World) behave(a *cluster.Allocation, _ *rand.Rand) Behaviour {
	b := w.options.Client(a)
	if len(w.faults.armed) == 0 {
		return b
	}
	strikes := func(name scenario.FaultName) bool {
		_, strikes := w.strike(name, target{alloc: a})
		return strikes
	}
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
