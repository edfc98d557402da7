package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// figureRealClients: small worlds of the simulator with the real client on each node, to the same worlds
// with simulated clients, which mount no volumes. So worlds with volumes are left out.
func figureRealClients(b *testing.B) {
	worlds := 20
	if measure.SizeOf(b) == measure.Full {
		worlds = 100
	}
	var with []*scenario.Scenario
	for seed := uint64(1); len(with) < worlds; seed++ {
		if s := swarm.Generate(seed, swarm.Small); s.Cluster.Clients == scenario.RealClients && !s.UsesVolumes() {
			with = append(with, s)
		}
	}
	play := func(clients string) measure.Side {
		return func() func(*measure.Meter) {
			return func(m *measure.Meter) {
				for _, s := range with {
					m.Pause() // the other side may run
					one := *s
					one.Cluster.Clients = clients
					m.Resume()
					_, err := sim.Play(&one, sim.Options{})
					must.NoError(b, err)
				}
			}
		}
	}
	measure.FigureSliced(b, play(""), play(scenario.RealClients)).Report(b)
	measure.Count(b, worlds, "worlds")
}
