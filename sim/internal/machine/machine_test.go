//race:skip one goroutine
package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// three is an allocation of a prestart task, a main task and a sidecar.
func three(f *fixture) *cluster.Allocation {
	f.scripts["init"] = scripted.Script{Ends: true, RunFor: 2 * time.Second}
	f.scripts["web"] = scripted.Script{StartDelay: 500 * time.Millisecond, StopTakes: 3 * time.Second}
	f.scripts["proxy"] = scripted.Script{StartDelay: 100 * time.Millisecond, IgnoreSignals: true}
	return allocation("a1",
		&cluster.Task{Name: "init", KillTimeout: 5 * time.Second, Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart}},
		&cluster.Task{Name: "web", KillTimeout: 5 * time.Second, ShutdownDelay: time.Second},
		&cluster.Task{Name: "proxy", KillTimeout: 5 * time.Second, Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}},
	)
}

// story plays an allocation of three tasks from its start to its end.
func story(f *fixture) {
	f.place(three(f))
	f.run(30 * time.Second)
	f.stop("a1")
	f.settle()
	must.EqOp(f.t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.SliceEmpty(f.t, tasks(f))
}

// tasks returns the running task processes.
func tasks(f *fixture) (living []scripted.Process) {
	for _, p := range f.node.Machine().Living() {
		if p.Kind == scripted.TaskProcess {
			living = append(living, p)
		}
	}
	return living
}

// After a task has stopped, no timer is left: not the timeouts of answered calls, and not the end
// of its grace.
func TestNode_stoppedTaskLeavesNoTimers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.place(allocation("a1", &cluster.Task{Name: "web", Driver: "mock", KillTimeout: 10 * time.Second}))
	f.run(cluster.DefaultMinHealthyTime + time.Second)
	must.Len(t, 1, tasks(f))
	f.stop("a1")
	f.run(2 * time.Second)
	must.Len(t, 0, tasks(f))
	next, err := f.node.Advance(f.now)
	must.NoError(t, err)
	must.True(t, next.IsZero(), must.Sprint(next.Sub(f.now)))
	f.noViolations()
}

// A client dies while no server answers, and no client runs when its tasks must stop. The watchdog
// stops them in their order, and the next client reports it. The watchdog counts from the last
// contact of the second client, not of the first one.
func TestNode_watchdog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	a := three(f)
	a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
	f.place(a)
	f.run(30 * time.Second)
	f.node.KillClient()
	pass(f, 50*time.Second)
	must.Len(t, 2, tasks(f), must.Sprint("the deadline has not passed"))
	f.run(time.Second) // the next client reaches the servers
	f.run(30 * time.Second)
	must.Len(t, 2, tasks(f))
	f.cut(true)
	f.run(30 * time.Second)
	f.node.KillClient()
	pass(f, 30*time.Second-time.Millisecond)
	must.Len(t, 2, tasks(f))
	pass(f, 4*time.Second+time.Millisecond) // a second of delay, and three that the task takes
	left := tasks(f)
	must.Len(t, 1, left)
	must.Eq(t, scripted.SignalSent{At: f.now, Signal: scripted.SIGINT, By: scripted.ByWatchdog}, left[0].Signals[0], must.Sprint("the sidecar is next"))
	pass(f, 5*time.Second)
	must.Len(t, 0, tasks(f))
	f.judge.Still(f.now.Add(time.Hour), f.node)
	f.cut(false)
	f.run(time.Minute)
	f.settle()
	must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.Len(t, 0, tasks(f))
	f.noViolations()
}

// A client is frozen, and later the servers answer it before its first step. Its watchdog has killed the
// tasks after the time in which the client had to stop them, and the client restarts none of them.
func TestNode_frozen(t *testing.T) {
	t.Parallel()
	for name, last := range map[string]time.Duration{"no server answers when it continues": time.Minute, "the servers answer at once": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			a := three(f)
			a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Minute
			f.place(a)
			f.run(30 * time.Second)
			killed := time.Minute + a.StopTime() + cluster.KillMarginOfNode
			f.cut(true)
			machine.Freeze(f.node)
			pass(f, killed-time.Millisecond)
			must.Len(t, 2, tasks(f))
			pass(f, time.Millisecond)
			must.Len(t, 0, tasks(f))
			pass(f, time.Hour)
			f.judge.Still(f.now, f.node)
			machine.Thaw(f.node)
			f.run(last)
			f.cut(false)
			f.answer()
			f.settle()
			must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
			must.Len(t, 0, tasks(f))
			f.noViolations()
		})
	}
}

// pass lets time pass, and starts no client.
func pass(f *fixture, d time.Duration) {
	f.t.Helper()
	f.now = f.now.Add(d)
	_, err := f.node.Advance(f.now)
	must.NoError(f.t, err)
}

// The client dies at each effect of a story, when the effect starts and when it is answered. No
// guarantee breaks, and the story ends as usual.
func TestNode_crashAtEachEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play       func(*fixture)
		containers bool
		least      int
	}{
		"three tasks":                        {story, false, 40},
		"three tasks in containers":          {story, true, 40},
		"devices go to the next allocation":  {succession, false, 60},
		"two requests of one task":           {twoRequests, false, 60},
		"tasks with devices, and their disk": {everything, false, 90},
	} {
		plain := newFixtureOf(t, nil, c.containers)
		before := plain.effects
		c.play(plain)
		must.Greater(t, c.least, plain.effects-before)
		for at := before + 1; at <= plain.effects; at++ {
			t.Run(fmt.Sprint(name, "/", at), func(t *testing.T) {
				f := newFixtureOf(t, nil, c.containers)
				f.dieAt = at
				c.play(f)
			})
		}
	}
}

// failAtEachCall plays three tasks, or the succession of their devices, once for each of the faults
// and each of the calls. arm makes the fixture call a function at each call, which returns its fault.
func failAtEachCall(t *testing.T, containers, devices bool, faults map[string]scripted.Fault, arm func(*fixture, func() scripted.Fault)) {
	play := func(t *testing.T, at int, fault scripted.Fault) (calls int) {
		f := newFixtureOf(t, nil, containers)
		arm(f, func() scripted.Fault {
			if calls++; calls == at {
				return fault
			}
			return scripted.Fault{}
		})
		a, left := three(f), 0
		if devices {
			a = gives(gives(gives(a, "web", "d0"), "web", "d1"), "proxy", "d2")
		}
		f.place(a)
		f.run(6 * time.Minute)
		f.stop("a1")
		if devices {
			f.place(gives(gives(allocation("a2", &cluster.Task{Name: "next"}), "next", "d2"), "next", "d1"))
			left = 1
		}
		f.settle()
		must.True(t, f.row("a1").ClientTerminal(), must.Sprint(f.row("a1").ClientStatus))
		must.Len(t, left, tasks(f))
		return calls
	}
	calls := play(t, 0, scripted.Fault{})
	must.Positive(t, calls)
	for name, fault := range faults {
		for at := 1; at <= calls; at++ {
			t.Run(fmt.Sprint(name, "/", at), func(t *testing.T) { play(t, at, fault) })
		}
	}
}

// faults are the ways in which a call fails: its program dies or does not answer, before or after
// the call takes effect, or it returns the error.
func faults(failed error) map[string]scripted.Fault {
	return map[string]scripted.Fault{
		"crash": {Action: scripted.Crash}, "crash after": {Action: scripted.CrashAfter}, "hang": {Action: scripted.Hang},
		"hang after": {Action: scripted.HangAfter}, "fail": {Action: scripted.Fail, Err: failed},
	}
}

// failDriver makes a fixture call a function at each call of the driver.
func failDriver(f *fixture, next func() scripted.Fault) {
	f.fault = func(c scripted.Call) scripted.Fault {
		if c.Name == scripted.CallFingerprint {
			return scripted.Fault{}
		}
		return next()
	}
}

// The driver fails at each of its calls.
func TestNode_driverFailsAtEachCall(t *testing.T) {
	t.Parallel()
	failAtEachCall(t, false, false, faults(nil), failDriver)
}

// A driver with containers fails at each call, or answers late. The grace ends while StopTask has no
// answer, or InspectTask fails after WaitTask has answered.
func TestNode_containersFailAtEachCall(t *testing.T) {
	t.Parallel()
	all := faults(&driver.Error{Class: driver.Recoverable, Call: "call", Err: errors.New("not now")})
	all["delay"] = scripted.Fault{Delay: 7 * time.Second}
	failAtEachCall(t, true, false, all, failDriver)
}

// The driver never answers WaitTask. The client finds the end of the task by InspectTask. Bug: the task
// ran for ever for the client.
func TestNode_waitNeverAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.fault = func(c scripted.Call) scripted.Fault {
		if c.Name == scripted.CallWait {
			return scripted.Fault{Action: scripted.Hang}
		}
		return scripted.Fault{}
	}
	f.scripts["web"] = scripted.Script{Ends: true, RunFor: time.Minute, Exit: driver.ExitResult{Code: 3}}
	f.place(allocation("a1", &cluster.Task{Name: "web"}))
	f.run(7 * time.Minute)
	events := f.node.Record("a1").Tasks[0].State.Events
	must.True(t, slices.ContainsFunc(events, func(e cluster.TaskEvent) bool { return strings.Contains(e.Message, "Exit Code: 3") }))
	f.settle()
}

// A record is lost. The client destroys its tasks, and the allocation runs again.
func TestNode_lostRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.place(three(f))
	f.run(30 * time.Second)
	f.node.LoseRecord("a1")
	f.node.KillClient()
	f.run(time.Minute)
	must.Len(t, 2, tasks(f))
	must.EqOp(t, "a1/web/6", tasks(f)[1].Task)
	f.settle()
}

// A record is lost while the driver works on its start. The next client does not know this start,
// and the driver would start the task while another copy runs.
func TestNode_lostRecordOfAStart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.place(three(f))
	f.run(30 * time.Second)
	f.scripts["slow"] = scripted.Script{StartDelay: 90 * time.Second}
	f.place(allocation("a2", &cluster.Task{Name: "slow"}))
	f.run(time.Second)
	f.node.LoseRecord("a2")
	f.node.KillClient()
	f.run(5 * time.Minute)
	must.Len(t, 3, tasks(f))
	f.settle()
}

// Servers of another cluster do not list the allocations of the node.
func TestNode_otherCluster(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.place(three(f))
	f.run(30 * time.Second)
	f.node.Servers(wiped())
	f.run(time.Minute)
	must.Len(t, 2, tasks(f))
	f.settle()
}

// Random nodes with every fault.
func TestNode_random(t *testing.T) {
	t.Parallel()
	seeds := uint64(600)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playRandom(t, rand.New(rand.NewPCG(seed, 18)), seed, false) }) {
			return
		}
	}
}

// draw draws random nodes.
type draw struct{ *rand.Rand }

func (d draw) chance(of int) bool                 { return d.IntN(of) == 0 }
func (d draw) upTo(t time.Duration) time.Duration { return time.Duration(d.Int64N(int64(t) + 1)) }

func playRandom(t *testing.T, rng *rand.Rand, seed uint64, containers bool) {
	d := draw{rng}
	keep := []int{0, -1}[seed%2] // a client that keeps no ended allocation discards each one when the servers have its end
	f := newFixtureKeeping(t, rand.New(rand.NewPCG(rng.Uint64(), 1)), containers, keep)
	if d.chance(2) {
		odds := 5 + d.IntN(40)
		f.fault = func(c scripted.Call) scripted.Fault { return d.fault(c, odds) }
	}
	end, freeze := f.disturbs(seed), f.freezes(seed)
	count := 1 + d.IntN(4)
	for i := range count {
		f.place(d.allocation(f, i))
	}
	for range 3 + d.IntN(12) {
		f.run(d.upTo(time.Minute))
		d.trouble(f, count)
		freeze()
	}
	f.fault, f.away, f.dieAt = nil, false, 0
	end()
	f.node.FillDisk(false)
	f.answer()
	f.settle()
	for i := range count {
		f.stop(cluster.AllocID(fmt.Sprint("a", i)))
	}
	f.run(2 * time.Hour)
	f.settle()
	for _, a := range f.allocs {
		must.True(t, a.ClientTerminal(), must.Sprintf("%s is %s", a.ID, a.ClientStatus))
	}
	must.SliceEmpty(t, tasks(f))
}

// freezes returns what freezes the client now and then, in every third random test.
func (f *fixture) freezes(seed uint64) func() {
	d := draw{rand.New(rand.NewPCG(seed, 41))}
	return func() {
		if seed%3 != 0 || !d.chance(4) {
			return
		}
		away := f.away
		f.freeze(d.upTo(5 * time.Minute))
		f.cut(away)
		f.answer()
	}
}

// freeze freezes the client for a time. The servers do not answer it afterwards.
func (f *fixture) freeze(d time.Duration) {
	f.cut(true)
	machine.Freeze(f.node)
	f.run(d)
	machine.Thaw(f.node)
}

// fault draws a fault of a call.
func (d draw) fault(c scripted.Call, odds int) scripted.Fault {
	if c.Name == scripted.CallFingerprint || !d.chance(odds) {
		return scripted.Fault{}
	}
	switch d.IntN(6) {
	case 0:
		return scripted.Fault{Action: scripted.Crash}
	case 1:
		return scripted.Fault{Action: scripted.CrashAfter}
	case 2:
		return scripted.Fault{Action: scripted.Hang}
	case 3:
		return scripted.Fault{Action: scripted.HangAfter}
	case 4:
		return scripted.Fault{Action: scripted.Fail, Err: &driver.Error{Class: driver.Recoverable, Call: c.Name, Err: errors.New("not now")}}
	}
	return scripted.Fault{Delay: d.upTo(40 * time.Second)}
}

// allocation draws an allocation and the behaviour of its tasks.
func (d draw) allocation(f *fixture, i int) *cluster.Allocation {
	var tasks []*cluster.Task
	for k := range 1 + d.IntN(4) {
		name := fmt.Sprintf("t%d-%d", i, k)
		s := scripted.Script{
			StartDelay: d.upTo(time.Second), StopTakes: d.upTo(8 * time.Second), IgnoreSignals: d.chance(4),
			StopLies: d.chance(8), WaitFailsAfterStop: d.chance(6),
		}
		if d.chance(10) {
			s.StartDelay = 3 * time.Minute
		}
		if d.chance(8) {
			s.KillTakes = d.upTo(10 * time.Minute)
		}
		if d.chance(10) {
			s.RecoverError = "EOF"
		}
		if f.containers { // only the driver that has started a container can remove it
			s.KillTakes, s.RecoverError = 0, ""
		}
		if d.chance(15) {
			s.StartError, s.StartRecoverable = "not now", d.chance(2)
		}
		if d.chance(6) {
			s.Child = &scripted.Child{RunFor: d.upTo(10 * time.Minute)}
		}
		task := &cluster.Task{Name: name, KillTimeout: time.Second + d.upTo(10*time.Second), ShutdownDelay: d.upTo(3 * time.Second), KillSignal: "SIGTERM"}
		if k > 0 {
			task.Lifecycle = d.lifecycle()
		}
		if task.Main() && d.chance(6) && k == 0 {
			task.Leader = true
		}
		if l := task.Lifecycle; d.chance(3) || l != nil && !l.Sidecar {
			s.Ends, s.RunFor, s.Exit = true, d.upTo(time.Minute), driver.ExitResult{Code: d.IntN(2) * 3}
		}
		f.scripts[name] = s
		tasks = append(tasks, task)
	}
	a := allocation(cluster.AllocID(fmt.Sprint("a", i)), tasks...)
	a.Job.TaskGroups[0].ShutdownDelay = d.upTo(5 * time.Second)
	if d.chance(4) {
		a.Job.TaskGroups[0].Disconnect.StopOnClientAfter = time.Second + d.upTo(time.Minute)
	}
	if d.chance(4) {
		a.Job.Type = cluster.JobBatch
	}
	return a
}

func (d draw) lifecycle() *cluster.Lifecycle {
	switch d.IntN(6) {
	case 0:
		return &cluster.Lifecycle{Hook: cluster.HookPrestart}
	case 1:
		return &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}
	case 2:
		return &cluster.Lifecycle{Hook: cluster.HookPoststart}
	case 3:
		return &cluster.Lifecycle{Hook: cluster.HookPoststart, Sidecar: true}
	case 4:
		return &cluster.Lifecycle{Hook: cluster.HookPoststop}
	}
	return nil
}

// trouble causes a random fault of the machine, or a random request of the servers.
func (d draw) trouble(f *fixture, count int) {
	some := cluster.AllocID(fmt.Sprint("a", d.IntN(count)))
	switch d.IntN(11) {
	case 0:
		f.node.KillClient()
	case 1, 2:
		f.dieAt = f.effects + 1 + d.IntN(20)
	case 3:
		f.node.KillDriver("mock")
	case 4:
		f.node.HangDriver("mock", d.upTo(time.Minute))
	case 5:
		f.node.KillShims(some)
	case 6:
		f.node.FillDisk(!f.node.DiskFull())
	case 7:
		f.cut(!f.away)
		f.answer()
	case 8:
		f.stop(some)
	case 9:
		if d.chance(4) {
			f.node.Halt()
			f.node.Boot()
		}
	case 10:
		if d.chance(4) && f.node.Record(some) != nil && !f.containers {
			f.node.LoseRecord(some)
			f.node.KillClient()
		}
	}
}
