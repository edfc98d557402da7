//race:skip one goroutine
package volumes_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

func callOf(volume cluster.VolumeID, plugin cluster.PluginID, controllers ...cluster.NodeID) *volumes.Call {
	return &volumes.Call{Volume: &cluster.Volume{ID: volume, Plugin: plugin}, Node: "n1", Controllers: controllers}
}

// A failed call goes to the next controller after a wait that doubles. If the call was not due any
// more meanwhile, the next failure starts with the first wait.
func TestCaller_Failed(t *testing.T) {
	t.Parallel()
	c, now := volumes.NewCaller(), epoch
	call := callOf("data", "disks", "a", "b")
	var went []string
	fail := func() {
		must.True(t, c.Ready(call, now))
		a := c.Begin(call)
		must.False(t, c.Ready(call, now), must.Sprint("it is in flight"))
		failed := c.Failed(a, now, errors.New("the disk is away"))
		wait := failed.NextAt.Sub(failed.LastAt)
		must.EqOp(t, a.Controller, failed.Controller)
		must.False(t, c.Ready(call, now.Add(wait-1)))
		must.Eq(t, now.Add(wait), c.Again(call))
		now = now.Add(wait)
		went = append(went, fmt.Sprint(a.Controller, " ", wait))
	}
	for range 7 {
		fail()
	}
	must.Eq(t, []string{"a 1s", "b 2s", "a 4s", "b 8s", "a 16s", "b 30s", "a 30s"}, went)
	c.Forget(nil)
	fail()
	must.Eq(t, "a 1s", went[len(went)-1])
	a := c.Begin(call)
	must.Eq(t, volumes.Attempt{Call: call, Controller: "b", Completes: true}, a)
	c.Succeeded(a)
	must.Eq(t, 0, c.Flying())
	must.True(t, c.Again(call).IsZero())
}

// A controller that has not answered may still execute its call. So the opposite call goes to it, and is not
// done before each such controller that can be called has executed it.
func TestCaller_noAnswer(t *testing.T) {
	t.Parallel()
	attach := callOf("data", "disks", "a", "b", "c")
	detach := callOf("data", "disks", "a", "b", "c")
	detach.Detach = true
	silence := fmt.Errorf("%w: the session has ended", volumes.ErrNoAnswer)
	attempt := func(call *volumes.Call, controller cluster.NodeID, completes bool) volumes.Attempt {
		return volumes.Attempt{Call: call, Controller: controller, Completes: completes}
	}

	c := volumes.NewCaller()
	c.Failed(c.Begin(attach), epoch, silence)
	c.Failed(c.Begin(attach), epoch, silence)
	a := c.Begin(attach)
	must.Eq(t, attempt(attach, "c", true), a, must.Sprint("the same call goes on to the next one"))
	c.Succeeded(a)
	a = c.Begin(detach)
	must.Eq(t, attempt(detach, "a", false), a)
	c.Failed(a, epoch, errors.New("another call of the volume is in flight"))
	a = c.Begin(detach)
	must.Eq(t, attempt(detach, "b", false), a)
	c.Succeeded(a)
	a = c.Begin(detach)
	must.Eq(t, attempt(detach, "a", true), a)
	c.Succeeded(a)
	must.Eq(t, attempt(attach, "a", true), c.Begin(attach), must.Sprint("all have answered"))

	c = volumes.NewCaller()
	c.Failed(c.Begin(detach), epoch, silence)
	must.Eq(t, attempt(attach, "a", true), c.Begin(attach))
	attach.Controllers = []cluster.NodeID{"b", "c"}
	must.Eq(t, attempt(attach, "b", true), c.Begin(attach), must.Sprint("a controller that has gone is not waited for"))
	elsewhere := callOf("data", "disks", "b", "a")
	elsewhere.Node = "n2"
	must.Eq(t, attempt(elsewhere, "b", true), c.Begin(elsewhere), must.Sprint("another node"))
}

// The state of calls that fail: the last attempt of each, until it succeeds or is due no more.
func TestCaller_Failing(t *testing.T) {
	t.Parallel()
	c := volumes.NewCaller()
	data, logs, lone := callOf("data", "disks", "a", "b"), callOf("logs", "disks", "a"), callOf("lone", "none")
	data.Detach = true
	due := []*volumes.Call{data, logs}
	must.SliceEmpty(t, c.Failing(due))
	fail := func(call *volumes.Call, after time.Duration, why string) {
		c.Failed(c.Begin(call), epoch.Add(after), errors.New(why))
	}
	fail(logs, 0, strings.Repeat("x", 2*cluster.MaxTaskEventBytes))
	fail(data, 0, "the disk is away")
	fail(data, time.Second, "the pool is busy")
	want := []volumes.FailedCall{
		{Volume: data.Volume.Key(), Plugin: "disks", Node: "n1", Detach: true, Failures: 2, Controller: "b", LastError: "the pool is busy",
			LastAt: epoch.Add(time.Second), NextAt: epoch.Add(3 * time.Second)},
		{Volume: logs.Volume.Key(), Plugin: "disks", Node: "n1", Failures: 1, Controller: "a", LastError: strings.Repeat("x", cluster.MaxTaskEventBytes),
			LastAt: epoch, NextAt: epoch.Add(time.Second)},
	}
	must.Eq(t, want, c.Failing(due))
	a := c.Begin(data)
	want[0].InFlight = true
	must.Eq(t, want, c.Failing(due))
	must.Eq(t, want[1:], c.Failing(due[1:]), must.Sprint("one is due no more"))
	c.Succeeded(a)
	must.Eq(t, want[1:], c.Failing(due))

	logs.Controllers, want[1].NoController = nil, true
	must.Eq(t, []volumes.FailedCall{want[1], {Volume: lone.Volume.Key(), Plugin: "none", Node: "n1", NoController: true}}, c.Failing([]*volumes.Call{data, logs, lone}))
}

// The calls in flight are limited for each plugin and for all plugins, and a call without a
// controller waits.
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
