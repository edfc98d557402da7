package world

import (
	"math/rand/v2"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
)

// behave is how an allocation fares: as the world's options have it, and as faults
// will.
func (w *World) behave(a *cluster.Allocation, _ *rand.Rand) Behaviour {
	b := w.options.Client(a)
	if len(w.faults.armed) == 0 {
		return b
	}
	return setting.Afflicted(b, a, func(name scenario.FaultName) bool {
		_, strikes := w.strike(name, target{Alloc: a})
		return strikes
	})
}
