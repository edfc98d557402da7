package scripted_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

var killed = driver.ExitResult{Code: 137, Signal: 9}

// The driver's process ends inside StartTask after the task has started. The next generation does
// not have the task, and only the cgroup finds its process.
func TestDriver_crashInsideStart(t *testing.T) {
	t.Parallel()
	o := script(scripted.Script{})
	o.Fault = func(c scripted.Call) scripted.Fault {
		if c.Name == scripted.CallStart && c.Generation == 1 {
			return scripted.Fault{Action: scripted.CrashAfter}
		}
		return scripted.Fault{}
	}
	n := newNode(t, o)
	start := n.start("web")
	n.clock.pass(0)
	must.EqOp(t, driver.Gone, driver.ClassOf(answered(n, start)))
	n.launch()
	destroy := n.destroy("web")
	n.clock.pass(0)
	must.EqOp(t, driver.NotFound, driver.ClassOf(answered(n, destroy)))
	must.False(t, n.main("web").Ended)
	empty := 0
	n.machine.AwaitEmpty(cgroup, func() { empty++ })
	n.clock.pass(time.Hour)
	must.Zero(t, empty)
	n.machine.KillCgroup(cgroup, scripted.ByClient)
	n.clock.pass(0)
	must.EqOp(t, 1, empty)
	must.NoError(t, n.machine.RemoveCgroup(cgroup))
}

// A start takes effect long after the call. If the client has removed the cgroup, it fails.
func TestDriver_lateStart(t *testing.T) {
	t.Parallel()
	for _, removed := range []bool{false, true} {
		n := newNode(t, script(scripted.Script{StartDelay: time.Hour}))
		start := n.start("web")
		n.clock.pass(time.Minute)
		if removed {
			must.NoError(t, n.machine.RemoveCgroup(cgroup))
		}
		n.clock.pass(time.Hour)
		err := answered(n, start)
		must.EqOp(t, removed, err != nil)
		must.EqOp(t, removed, len(n.machine.LivingIn(cgroup)) == 0)
	}
}

// The driver's process dies 1 s into a stop of 4 s. What happens to the task depends on its parent.
func TestDriver_diesInsideStop(t *testing.T) {
	t.Parallel()
	for _, story := range []struct {
		parent  scripted.Parent
		endsAt  time.Duration // after the stop; 0 is never
		recover bool
		exit    driver.ExitResult
	}{
		{scripted.InShim, 4 * time.Second, true, killed},
		{scripted.InInit, 0, true, driver.ExitResult{Unknown: true}},
		{scripted.InDriver, time.Second, true, driver.ExitResult{Unknown: true}},
	} {
		o := script(scripted.Script{IgnoreSignals: true})
		o.Parent = story.parent
		n := newNode(t, o)
		h, _ := n.started("web")
		began := n.clock.now
		wait, stop := n.wait("web"), n.stop("web", 4*time.Second, "")
		n.clock.pass(time.Second)
		must.EqOp(t, story.recover, n.relaunch("web", h) == nil)
		must.EqOp(t, driver.Gone, driver.ClassOf(answered(n, wait)))
		must.EqOp(t, driver.Gone, driver.ClassOf(answered(n, stop)))
		wait = n.wait("web")
		n.clock.pass(time.Hour)
		main := n.main("web")
		must.EqOp(t, story.endsAt != 0, main.Ended, must.Sprint(story.parent))
		if !main.Ended {
			must.Zero(t, wait.count)
			n.machine.KillCgroup(cgroup, scripted.ByClient)
			n.clock.pass(0)
		} else {
			must.EqOp(t, began.Add(story.endsAt), main.EndedAt)
		}
		must.NoError(t, answered(n, wait))
		must.EqOp(t, story.exit, wait.value)
	}
}

// A task whose shim dies is killed, and its exit result is lost.
func TestDriver_shimDies(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(scripted.Script{}))
	n.started("web")
	wait := n.wait("web")
	for _, p := range n.machine.Living() {
		if p.Kind == scripted.ShimProcess {
			n.machine.Signal(p.Identity, scripted.SIGKILL, scripted.ByFault)
		}
	}
	n.clock.pass(0)
	must.NoError(t, answered(n, wait))
	must.True(t, wait.value.Unknown)
	must.Eq(t, []scripted.SignalSent{{At: n.clock.now, Signal: scripted.SIGKILL, By: scripted.ByKernel}}, n.main("web").Signals)
}

// The handles that a driver refuses: of another version, of another task, and of an earlier boot.
func TestDriver_refusesHandles(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(scripted.Script{}))
	h, _ := n.started("web")
	must.ErrorContains(t, n.relaunch("web", driver.Handle("scripted/2 web")), "another version")
	must.ErrorContains(t, n.relaunch("other", h), "another task")
	n.machine.Halt()
	must.SliceEmpty(t, n.machine.Living())
	n.machine.Boot()
	must.EqOp(t, 2, n.machine.BootNumber())
	must.SliceEmpty(t, n.machine.Cgroups())
	must.ErrorContains(t, n.relaunch("web", h), "lost")
}

// A child with setsid outlives its task. The cgroup kills it, unless it has left the cgroup.
func TestDriver_child(t *testing.T) {
	t.Parallel()
	for _, leaves := range []bool{false, true} {
		o := script(scripted.Script{Child: &scripted.Child{RunFor: time.Hour, LeavesCgroup: leaves}})
		o.LeavesChildren = true
		n := newNode(t, o)
		n.started("web")
		n.stop("web", time.Second, "")
		n.clock.pass(time.Second)
		destroy := n.destroy("web")
		n.clock.pass(0)
		must.NoError(t, answered(n, destroy))
		must.EqOp(t, !leaves, len(n.machine.LivingIn(cgroup)) == 1)
		n.machine.KillCgroup(cgroup, scripted.ByClient)
		must.EqOp(t, leaves, len(n.machine.Living()) == 2, must.Sprint(n.machine.Living()))
	}
}

// A process in state D gets SIGKILL and ends later. StopTask and DestroyTask give up before.
func TestDriver_stateD(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(scripted.Script{IgnoreSignals: true, KillTakes: 10 * time.Minute}))
	n.started("web")
	stop := n.stop("web", time.Second, "")
	n.clock.pass(time.Minute)
	must.ErrorContains(t, answered(n, stop), "did not end")
	must.True(t, n.main("web").Stuck)
	destroy := n.destroy("web")
	n.clock.pass(time.Minute)
	must.ErrorContains(t, answered(n, destroy), "did not end")
	must.Error(t, n.machine.RemoveCgroup(cgroup))
	n.clock.pass(time.Hour)
	must.True(t, n.main("web").Ended)
	must.False(t, n.main("web").Stuck)
}

// The driver answers each call in flight when its process dies: once, with class Gone.
func TestDriver_hangsAtEachCall(t *testing.T) {
	t.Parallel()
	calls := map[string]func(n *node, reply func(error)){
		scripted.CallStart: func(n *node, reply func(error)) {
			n.driver.Start(task("new"), func(_ driver.Handle, err error) { reply(err) })
		},
		scripted.CallRecover: func(n *node, reply func(error)) { n.driver.Recover("web", nil, reply) },
		scripted.CallWait: func(n *node, reply func(error)) {
			n.driver.Wait("web", func(_ driver.ExitResult, err error) { reply(err) })
		},
		scripted.CallStop:    func(n *node, reply func(error)) { n.driver.Stop("web", 0, "", reply) },
		scripted.CallDestroy: func(n *node, reply func(error)) { n.driver.Destroy("web", true, reply) },
		scripted.CallInspect: func(n *node, reply func(error)) {
			n.driver.Inspect("web", func(_ driver.Status, err error) { reply(err) })
		},
		scripted.CallSignal: func(n *node, reply func(error)) { n.driver.Signal("web", "SIGHUP", reply) },
		scripted.CallExec: func(n *node, reply func(error)) {
			n.driver.Exec("web", nil, func(_ driver.ExitResult, err error) { reply(err) })
		},
		scripted.CallStats:  func(n *node, reply func(error)) { n.driver.Stats("web", time.Second, func(driver.Usage) {}, reply) },
		scripted.CallEvents: func(n *node, reply func(error)) { n.driver.Events(func(driver.Event) {}, reply) },
		scripted.CallFingerprint: func(n *node, reply func(error)) {
			n.driver.Fingerprints(func(driver.Fingerprint) {}, reply)
		},
	}
	for name, begin := range calls {
		for _, action := range []scripted.Action{scripted.Hang, scripted.Crash, scripted.Fail} {
			t.Run(fmt.Sprint(name, action), func(t *testing.T) {
				t.Parallel()
				o := script(scripted.Script{})
				o.Fault = func(c scripted.Call) scripted.Fault {
					if c.Name == name && (c.Name != scripted.CallStart || c.Task == "new") {
						return scripted.Fault{Action: action, Delay: time.Second}
					}
					return scripted.Fault{}
				}
				n := newNode(t, o)
				n.started("web")
				r := callError(n, func(reply func(error)) { begin(n, reply) })
				n.clock.pass(time.Minute)
				must.EqOp(t, action == scripted.Hang, r.count == 0)
				n.driver.Kill(scripted.ByFault)
				n.clock.pass(time.Hour)
				must.EqOp(t, action != scripted.Fail, driver.ClassOf(answered(n, r)) == driver.Gone)
				must.False(t, n.main("web").Ended)
				later := callError(n, func(reply func(error)) { begin(n, reply) })
				n.clock.pass(0)
				must.EqOp(t, driver.Gone, driver.ClassOf(answered(n, later)))
			})
		}
	}
}

// Launches: one that hangs, one that fails, and one whose process is killed.
func TestProgram_launches(t *testing.T) {
	t.Parallel()
	clock := newVirtual(1)
	m := scripted.NewMachine(clock)
	p := m.Install("double", scripted.Options{Launch: func(generation int) scripted.Launch {
		return []scripted.Launch{{Takes: scripted.Never}, {Takes: time.Second, Err: "no handshake"}, {}}[generation-1]
	}})
	var answers []string
	for range 3 {
		p.Launch(func(d *scripted.Driver, err error) { answers = append(answers, fmt.Sprint(d != nil, err)) })
		clock.pass(time.Minute)
	}
	must.Eq(t, []string{"false Launch: no handshake", "true <nil>"}, answers)
	lives := p.Living()
	must.SliceLen(t, 2, lives)
	lives[0].Kill(scripted.ByClient)
	clock.pass(0)
	must.EqOp(t, "false Launch: the driver's process is gone", answers[2])
	must.SliceLen(t, 1, p.Living())
	m.Halt()
	p.Launch(func(d *scripted.Driver, err error) { answers = append(answers, fmt.Sprint(d != nil, err)) })
	clock.pass(0)
	must.EqOp(t, "false Launch: the machine is off", answers[3])
}

// A machine reuses a pid. The identity of the ended process finds no living process.
func TestMachine_pidIsReused(t *testing.T) {
	t.Parallel()
	clock := newVirtual(1)
	m := scripted.NewMachine(clock)
	first, err := m.Spawn(scripted.Process{Command: "first"})
	must.NoError(t, err)
	m.Signal(first, scripted.SIGKILL, scripted.ByFault)
	clock.pass(time.Second)
	second, err := m.Spawn(scripted.Process{Command: "second"})
	must.NoError(t, err)
	must.EqOp(t, first.PID, second.PID)
	m.Signal(first, scripted.SIGKILL, scripted.ByClient)
	p := m.Living()[0]
	must.EqOp(t, "second", p.Command)
	_, signalled := p.Signalled(scripted.SIGKILL)
	must.False(t, signalled)
}

// Random clients: every call has exactly one answer, the journal agrees with the table, and equal
// seeds give equal histories.
func TestDriver_randomCalls(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		first := randomHistory(t, seed)
		must.Eq(t, first, randomHistory(t, seed), must.Sprintf("seed %d", seed))
	}
}

// randomHistory makes random calls to a driver that has random faults, and returns the journal.
func randomHistory(t *testing.T, seed uint64) []scripted.Change {
	rng := rand.New(rand.NewPCG(seed, 2))
	clock := newVirtual(seed)
	m := scripted.NewMachine(clock)
	m.MakeCgroup(cgroup)
	some := func() time.Duration { return time.Duration(rng.IntN(20)) * time.Second }
	p := m.Install("double", scripted.Options{
		Capabilities: driver.Capabilities{HostCgroup: true, Exec: true},
		Parent:       scripted.Parent(rng.IntN(3)), LeavesChildren: rng.IntN(2) == 0,
		Script: func(*driver.TaskConfig) scripted.Script {
			s := scripted.Script{StartDelay: some() / 4, Ends: rng.IntN(2) == 0, RunFor: some(), StopTakes: some(), IgnoreSignals: rng.IntN(4) == 0}
			if rng.IntN(4) == 0 {
				s.Child = &scripted.Child{RunFor: some()}
			}
			return s
		},
		Fault: func(scripted.Call) scripted.Fault {
			if rng.IntN(3) > 0 {
				return scripted.Fault{}
			}
			return scripted.Fault{Action: scripted.Action(rng.IntN(7)), Delay: some()}
		},
	})
	handles := map[driver.TaskID]driver.Handle{}
	begun, answers := 0, map[int]int{}
	call := func() func() {
		begun++
		number := begun
		return func() { answers[number]++ }
	}
	for range 60 {
		clock.pass(some() / 4)
		lives := p.Living()
		if len(lives) == 0 {
			done := call()
			p.Launch(func(*scripted.Driver, error) { done() })
			continue
		}
		d, id, done := lives[len(lives)-1], driver.TaskID(fmt.Sprint(rng.IntN(4))), call()
		switch rng.IntN(8) {
		case 0, 1:
			d.Start(task(id), func(h driver.Handle, _ error) { handles[id] = h; done() })
		case 2:
			d.Recover(id, handles[id], func(error) { done() })
		case 3:
			d.Wait(id, func(driver.ExitResult, error) { done() })
		case 4:
			d.Stop(id, some(), "", func(error) { done() })
		case 5:
			d.Destroy(id, rng.IntN(2) == 0, func(error) { done() })
		case 6:
			d.Inspect(id, func(driver.Status, error) { done() })
		default:
			d.Exec(id, []string{"true"}, func(driver.ExitResult, error) { done() })
		}
	}
	for _, d := range p.Living() {
		d.Kill(scripted.ByFault)
	}
	clock.pass(time.Hour)
	for number := range begun {
		must.EqOp(t, 1, answers[number+1], must.Sprintf("seed %d: answers to call %d", seed, number+1))
	}
	m.Halt()
	checkJournal(t, m)
	return m.Changes(0)
}

// checkJournal compares the journal of a machine that is off with its process table.
func checkJournal(t *testing.T, m *scripted.Machine) {
	t.Helper()
	living := map[scripted.Identity]bool{}
	signals := 0
	for _, c := range m.Changes(0) {
		must.EqOp(t, c.What != scripted.Started, living[c.Process])
		living[c.Process] = c.What != scripted.Ended
		if c.What == scripted.Signalled {
			signals++
		}
	}
	for _, p := range m.Processes() {
		must.True(t, p.Ended)
		must.False(t, living[p.Identity])
		signals -= len(p.Signals)
	}
	must.Zero(t, signals)
	must.SliceEmpty(t, m.Living())
}
