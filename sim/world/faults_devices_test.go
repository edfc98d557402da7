package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// deviceCases are the faults of device plugins. The replacement of n1's allocation is on n4.
func deviceCases() []faultCase {
	restarts := func(t *testing.T, plain, struck *fixture) {
		must.Positive(t, plain.reported("n4", running))
		must.Greater(t, plain.reported("n4", running)+10*time.Second, struck.reported("n4", running)) // after the delay of the restart policy
	}
	// registers: the client registers its devices, and again when the fault has ended. The task
	// keeps running.
	registers := func(devices string) func(t *testing.T, plain, struck *fixture) {
		return func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, []string{devices, "gpu0 gpu1"}, struck.registered("n1"))
			must.Eq(t, plain.reported("n1", ended), struck.reported("n1", ended))
			must.SliceEmpty(t, plain.registered("n1"))
		}
	}
	const twenty = 20 * time.Second
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.DeviceCrash, On: "n4"}, keeps: terms | applied | ending, check: restarts,
	}, {
		fault: scenario.Fault{Name: scenario.DeviceFail, On: "n4"}, keeps: terms | applied | ending, check: restarts,
	}, {
		fault: scenario.Fault{Name: scenario.DeviceHang, On: "n4", Delay: exactly(5 * time.Second)}, keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Between(t, 4*time.Second, struck.reported("n4", running)-plain.reported("n4", running), 6*time.Second)
		},
	}, {
		fault: scenario.Fault{Name: scenario.DeviceSick, On: "n1", Delay: exactly(twenty)}, keeps: terms | applied | ending, check: registers("!gpu0 gpu1"),
	}, {
		fault: scenario.Fault{Name: scenario.DeviceVanish, On: "n1", Delay: exactly(twenty)}, keeps: terms | applied | ending, check: registers("gpu1"),
	}, {
		fault: scenario.Fault{Name: scenario.DeviceRename, On: "n1", Delay: exactly(twenty)}, keeps: terms | applied | ending, check: registers("other-gpu0 other-gpu1"),
	}, {
		fault: scenario.Fault{Name: scenario.DeviceMute, On: "n1", Delay: exactly(twenty)}, keeps: terms | applied | ending, check: registers("!gpu0 !gpu1"),
	}}
}

// registered returns the devices of each later registration of a node. Unhealthy ones have a !.
func (w *fixture) registered(id cluster.NodeID) (all []string) {
	for _, e := range w.entries {
		m, is := e.Message.(*shims.NodeRegister)
		if !is || m.Node.ID != id {
			continue
		}
		text := ""
		for _, g := range m.Node.Devices {
			for _, d := range g.Devices {
				if text != "" {
					text += " "
				}
				if !d.Healthy {
					text += "!"
				}
				text += d.ID
			}
		}
		all = append(all, text)
	}
	return all
}
