package client_test

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// crowd is a node with many allocations. It judges nothing: its core does the work. No two effects
// are answered in one step, as on a busy machine.
type crowd struct {
	tb      testing.TB
	core    *client.Core
	now     time.Duration
	events  crowdEvents
	order   int
	ids     int
	waiting map[driver.TaskID]func(driver.ExitResult, error)
	// failing: the storage plugin fails each call.
	failing bool
	index   uint64
	allocs  []*cluster.Allocation
}

type crowdEvents []event

func (e crowdEvents) Len() int { return len(e) }
func (e crowdEvents) Less(i, k int) bool {
	return cmp.Or(cmp.Compare(e[i].at, e[k].at), cmp.Compare(e[i].order, e[k].order)) < 0
}
func (e crowdEvents) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *crowdEvents) Push(x any)   { *e = append(*e, x.(event)) }
func (e *crowdEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newCrowd(tb testing.TB) *crowd {
	c := &crowd{tb: tb, now: time.Hour, waiting: map[driver.TaskID]func(driver.ExitResult, error){}}
	core, err := client.New(client.Options{
		Node: "node-1", Shell: crowdShell{c}, BootID: "boot-1", Drivers: []string{"mock"}, Volumes: &volume.Options{Shell: crowdShell{c}, Root: volumesRoot},
		NewTaskID: func(alloc cluster.AllocID, task string) driver.TaskID {
			c.ids++
			return driver.TaskID(fmt.Sprintf("%s/%s/%d", alloc, task, c.ids))
		},
	})
	must.NoError(tb, err)
	c.core = core
	return c
}

// later does something after a time that nothing else has.
func (c *crowd) later(d time.Duration, do func()) {
	c.order++
	heap.Push(&c.events, event{at: c.now + d + time.Duration(c.order%1000)*time.Microsecond, order: c.order, do: do})
}

func (c *crowd) run(d time.Duration) {
	for end := c.now + d; c.now < end; {
		wake := c.core.Step(client.Time{Boot: c.now, Wall: wallAtBoot.Add(c.now)})
		select {
		case <-c.core.Woken():
			continue
		default:
		}
		next := min(wake, end)
		if len(c.events) > 0 && c.events[0].at <= next {
			e := heap.Pop(&c.events).(event)
			c.now = max(c.now, e.at)
			e.do()
			continue
		}
		c.now = max(c.now, next)
	}
}

// place places allocations: a storage plugin, and a number of others. They use no volume, one that
// is "shared", or one each, whose name begins so.
func (c *crowd) place(count int, name string) {
	plugin := allocation("plugin", pluginTask("plugin"))
	plugin.Job.Type = cluster.JobSystem
	c.allocs = append(c.allocs, plugin)
	for i := range count {
		a := allocation(cluster.AllocID(fmt.Sprintf("a%05d", i)), mainTask("web"))
		switch name {
		case "":
		case "shared":
			withVolumes(a, "shared")
		default:
			withVolumes(a, cluster.VolumeID(fmt.Sprint(name, i)))
		}
		c.allocs = append(c.allocs, a)
	}
	c.answer()
	c.core.StoragePluginUp("disks", volume.Plugin{Stages: true})
}

// stop stops all allocations.
func (c *crowd) stop() {
	for i, a := range c.allocs {
		newer := a.Copy()
		newer.DesiredStatus, newer.AllocModifyIndex = cluster.DesiredStop, c.index+1
		c.allocs[i] = newer
	}
	c.answer()
}

func (c *crowd) answer() {
	c.index++
	w := client.Changes{ClusterID: "cluster-1", Index: c.index, Complete: true, Allocs: c.allocs}
	for _, a := range c.allocs {
		w.Known = append(w.Known, a.ID)
	}
	c.core.Servers(w)
}

// crowdShell answers each effect alone.
type crowdShell struct{ *crowd }

func (s crowdShell) done(reply func(error)) { s.later(time.Millisecond, func() { reply(nil) }) }

func (s crowdShell) Launch(_ client.Plugin, reply func(client.Launched)) {
	s.later(time.Millisecond, func() {
		reply(client.Launched{Generation: 1})
		s.core.Fingerprint("mock", 1, driver.Fingerprint{Health: driver.Healthy})
	})
}
func (s crowdShell) Abandon(client.Plugin, client.Generation)            {}
func (s crowdShell) Save(_ *client.Record, reply func(error))            { s.done(reply) }
func (s crowdShell) Discard(_ cluster.AllocID, reply func(error))        { s.done(reply) }
func (s crowdShell) Build(_ *cluster.Allocation, reply func(error))      { s.done(reply) }
func (s crowdShell) AwaitEmpty(_ client.TaskRef, reply func(error))      { s.done(reply) }
func (s crowdShell) Publish(client.NodeFacts)                            {}
func (s crowdShell) SaveVolume(_ *volume.Record, reply func(error))      { s.done(reply) }
func (s crowdShell) DeleteVolume(_ cluster.VolumeKey, reply func(error)) { s.done(reply) }
func (s crowdShell) Release(_ storage.Request, reply func(error))        { s.done(reply) }
func (s crowdShell) Report(_ []cluster.AllocReport, reply func(bool)) {
	s.later(time.Millisecond, func() { reply(true) })
}
func (s crowdShell) Clean(_ client.TaskRef, r func([]client.Process, error)) {
	s.later(time.Millisecond, func() { r(nil, nil) })
}
func (s crowdShell) Kill(_ client.TaskRef, r func([]client.Process, error)) {
	s.later(time.Millisecond, func() { r(nil, nil) })
}
func (s crowdShell) Reserve(client.TaskRef, client.DevicesRef, func(device.Reservation, error)) {}
func (s crowdShell) Recover(_ client.TaskRef, _ *cluster.Allocation, _ driver.Handle, reply func(error)) {
	s.done(reply)
}
func (s crowdShell) Inspect(_ client.TaskRef, reply func(driver.Status, error)) {
	s.later(time.Millisecond, func() { reply(driver.Status{State: driver.TaskRunning}, nil) })
}
func (s crowdShell) Start(_ client.TaskRef, _ *cluster.Allocation, _ []device.Part, reply func(driver.Handle, error)) {
	s.later(time.Millisecond, func() { reply(driver.Handle{}, nil) })
}
func (s crowdShell) Wait(ref client.TaskRef, reply func(driver.ExitResult, error)) {
	s.waiting[ref.ID] = reply
}
func (s crowdShell) Stop(ref client.TaskRef, _ time.Duration, _ string, reply func(error)) {
	s.done(reply)
	s.later(2*time.Millisecond, func() { s.waiting[ref.ID](driver.ExitResult{}, nil) })
}
func (s crowdShell) Claim(_ storage.Request, reply func(storage.Claimed, error)) {
	s.later(time.Millisecond, func() { reply(storage.Claimed{Plugin: "disks", ExternalID: "ext"}, nil) })
}
func (s crowdShell) Call(_ storage.Call, reply func(storage.Result)) {
	s.later(time.Millisecond, func() {
		if s.failing {
			reply(storage.Result{Err: errors.New("the storage does not answer")})
			return
		}
		reply(storage.Result{})
	})
}

// The work of the core grows with what happens, and not with the square of it: four times the
// allocations make four times the visits, while they are placed, while they stop, and while the
// storage plugin fails each call. Each visit has a cause: the answer to an effect, or a time that
// has come. A visit may need a second one.
func TestCore_visitsWhatHappens(t *testing.T) {
	t.Parallel()
	for name, volumes := range map[string]string{"a volume each": "v", "one volume for all": "shared", "without volumes": ""} {
		t.Run(name, func(t *testing.T) {
			few, many := visitsOf(t, 30, volumes), visitsOf(t, 120, volumes)
			for phase := range few {
				must.LessEq(t, 5*few[phase].visits, many[phase].visits, must.Sprint("phase ", phase, ": ", few[phase], many[phase]))
				must.LessEq(t, 8*many[phase].answers, many[phase].visits, must.Sprint("phase ", phase, ": ", many[phase]))
			}
		})
	}
}

type crowdWork struct{ visits, answers int }

// visitsOf returns the work while allocations are placed, while they run, while they stop, and in a
// later minute, in which the storage plugin still fails.
func visitsOf(t *testing.T, count int, volumes string) (phases [4]crowdWork) {
	c := newCrowd(t)
	c.run(time.Second)
	for i, begin := range []func(){func() { c.place(count, volumes) }, func() { c.failing = true }, c.stop, func() {}} {
		before := crowdWork{client.Visits(c.core), c.order}
		begin()
		c.run(time.Minute)
		phases[i] = crowdWork{client.Visits(c.core) - before.visits, c.order - before.answers}
	}
	return phases
}
