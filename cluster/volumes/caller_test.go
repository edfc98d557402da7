package volumes_test

import (
	"fmt"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

func callOf(volume cluster.VolumeID, plugin cluster.PluginID, controllers ...cluster.NodeID) *volumes.Call {
	return &volumes.Call{Volume: &cluster.Volume{ID: volume, Plugin: plugin}, Node: "n1", Controllers: controllers}
}

// A call that fails goes to the next controller after a wait that doubles, and begins again from the first
// wait when it was due no more.
func TestCaller_Failed(t *testing.T) {
	t.Parallel()
	c, now := volumes.NewCaller(), epoch
	call := callOf("data", "disks", "a", "b")
	var went []string
	fail := func() {
		must.True(t, c.Ready(call, now))
		controller := c.Begin(call)
		must.False(t, c.Ready(call, now), must.Sprint("it is in flight"))
		_, wait := c.Failed(call, now)
		must.False(t, c.Ready(call, now.Add(wait-1)))
		must.Eq(t, now.Add(wait), c.Again(call))
		now = now.Add(wait)
		went = append(went, fmt.Sprint(controller, " ", wait))
	}
	for range 7 {
		fail()
	}
	must.Eq(t, []string{"a 1s", "b 2s", "a 4s", "b 8s", "a 16s", "b 30s", "a 30s"}, went)
	c.Forget(nil)
	fail()
	must.Eq(t, "a 1s", went[len(went)-1])
	must.Eq(t, "b", c.Begin(call))
	c.Succeeded(call)
	must.Eq(t, 0, c.Flying())
	must.True(t, c.Again(call).IsZero())
}

// One plugin has few calls in flight, all plugins together have more, and a call without a controller waits.
func TestCaller_Ready(t *testing.T) {
	t.Parallel()
	c := volumes.NewCaller()
	must.False(t, c.Ready(callOf("data", "disks"), epoch))
	for p := range 5 {
		begun := 0
		for v := range 20 {
			call := callOf(cluster.VolumeID(fmt.Sprint("v", p, "-", v)), cluster.PluginID(fmt.Sprint("p", p)), "a")
			if c.Ready(call, epoch) {
				c.Begin(call)
				begun++
			}
		}
		if p == 4 {
			must.Eq(t, volumes.MaxCalls-4*volumes.MaxCallsOfPlugin, begun)
		} else {
			must.Eq(t, volumes.MaxCallsOfPlugin, begun)
		}
	}
	must.Eq(t, volumes.MaxCalls, c.Flying())
}
