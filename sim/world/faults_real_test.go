package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// realCases are the faults of nodes with real clients.
func realCases() []faultCase {
	later := func(by time.Duration) func(t *testing.T, plain, struck *fixture) {
		return func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, plain.reported("n1", ended))
			must.Between(t, by-time.Second, struck.reported("n1", ended)-plain.reported("n1", ended), by+5*time.Second)
		}
	}
	grow := func(_ *testing.T, w *fixture) {
		w.at(armed+time.Second, func() {
			w.editJob(web, func(j *cluster.Job) { j.TaskGroups[0].Count = 4 })
		})
		w.at(drains+time.Second, func() { w.drainNode("n4", 0) })
	}
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.ClientCrash, On: "n1", Delay: exactly(8 * time.Second)},
		keeps: terms | applied | ending,
		check: later(3 * time.Second), // it dies five seconds before the drain
	}, {
		fault: scenario.Fault{Name: scenario.DriverCrash, On: "n1"},
		keeps: terms | applied | ending,
		check: later(0),
	}, {
		fault: scenario.Fault{Name: scenario.DriverHang, On: "n1", Delay: exactly(five)},
		keeps: terms | applied | ending,
		check: later(five),
	}, {
		fault: scenario.Fault{Name: scenario.ShimKill, On: "n1"},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Less(t, plain.reported("n1", ended), struck.reported("n1", ended)) // the task dies at once
		},
	}, {
		fault: scenario.Fault{Name: scenario.DriverLie, On: "@n4"},
		setup: grow,
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, struck.reported("n4", ended))
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
		},
	}, {
		fault: scenario.Fault{Name: scenario.NodeReboot, On: "n1", Delay: exactly(8 * time.Second)},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Less(t, armed+8*time.Second, plain.reported("n1", ended))
			must.Less(t, struck.reported("n1", ended), armed+8*time.Second) // nothing runs after the restart
		},
	}, {
		fault: scenario.Fault{Name: scenario.DiskFull, On: "n4", Delay: exactly(30 * time.Second)},
		setup: grow,
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Less(t, 10*time.Second, plain.reported("n4", running))
			must.Less(t, struck.reported("n1", ended), armed) // a task stops without a record
		},
	}, {
		fault: scenario.Fault{Name: scenario.RecordLose, On: "n1", Delay: exactly(2 * time.Second)},
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Positive(t, struck.reported("n1", ended))
		},
	}}
}

// A story names each change of a node with a real client.
func TestTranscript_nodeChanges(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Seed: 7, RealClients: true})
	transcript := world.NewTranscript(w.World)
	for _, f := range []scenario.Fault{
		{Name: scenario.ClientCrash, On: "n1", Delay: exactly(2 * time.Second)},
		{Name: scenario.NodeReboot, On: "n2", Delay: exactly(3 * time.Second)},
	} {
		w.at(armed, func() { must.NoError(t, w.Faults.Arm(f)) })
	}
	w.drain()
	w.run(t, lasts)
	for _, line := range []string{
		"node n1: the client dies", "node n1: the client starts",
		"node n2: the machine halts", "node n2: the machine starts", "node n2: the client starts",
	} {
		must.StrContains(t, transcript.String(), line)
	}
}
