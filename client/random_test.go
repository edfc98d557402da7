package client_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Random nodes: clients and drivers die at random, disks become full, machines restart, tasks
// misbehave. The fake checks at all times that a task has at most one copy, each process has a
// record, and each device has one owner. At the end every allocation that had to stop is reported
// as ended, no process is left, and no task was killed before the end of its grace.
func TestCore_random(t *testing.T) {
	t.Parallel()
	seeds := 400
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playRandom(t, rand.New(rand.NewPCG(uint64(seed), 7))) }) {
			return
		}
	}
}

func playRandom(t *testing.T, rng *rand.Rand) {
	n := newNode(t)
	defer func() {
		if t.Failed() {
			t.Log("\n" + strings.Join(last(n.story, 60), "\n"))
		}
	}()
	chance := func(of int) bool { return rng.IntN(of) == 0 }
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	n.install("d0", "d1", "d2")
	count := 1 + rng.IntN(5)
	var hurried bool // a machine restarted, a disk was full or a driver was away: graces are not kept then
	for i := range count {
		var tasks []*cluster.Task
		for k := range 1 + rng.IntN(4) {
			name := fmt.Sprintf("t%d-%d", i, k)
			sc := script{startTakes: upTo(time.Second), stopTakes: upTo(8 * time.Second), ignores: chance(4)}
			if chance(8) {
				sc.startTakes = 5 * time.Minute
			}
			if chance(6) {
				sc.startErrors = []error{&driver.Error{Class: driver.Recoverable, Call: "StartTask", Err: errors.New("not now")}}
			}
			if chance(20) {
				sc.startErrors = append(sc.startErrors, errors.New("never"))
			}
			if chance(8) {
				sc.undying = upTo(10 * time.Minute)
			}
			sc.waitEarly, sc.stopWaits, sc.stopCode = chance(4), chance(2), 7
			if chance(10) {
				sc.stopError = errors.New("unknown signal")
			}
			if chance(10) {
				sc.recoverErr = errors.New("EOF")
			}
			task := &cluster.Task{Name: name, KillTimeout: time.Second + upTo(10*time.Second), ShutdownDelay: upTo(3 * time.Second), KillSignal: "SIGTERM"}
			if k > 0 {
				switch rng.IntN(6) {
				case 0:
					task.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPrestart}
				case 1:
					task.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}
				case 2:
					task.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPoststart}
				case 3:
					task.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPoststart, Sidecar: true}
				case 4:
					task.Lifecycle = &cluster.Lifecycle{Hook: cluster.HookPoststop}
				}
			}
			if l := task.Lifecycle; chance(3) || l != nil && !l.Sidecar {
				sc.runs = []ending{{after: upTo(time.Minute) + 1, code: rng.IntN(2)}, {after: upTo(time.Minute) + 1}}
			}
			n.scripts[name] = sc
			tasks = append(tasks, task)
		}
		a := allocation(cluster.AllocID(fmt.Sprintf("a%d", i)), tasks...)
		for _, task := range tasks {
			if chance(2) {
				ids := rng.Perm(3)[:1+rng.IntN(2)] // also such that another task has
				for _, id := range ids {
					gives(a, task.Name, fmt.Sprint("d", id))
				}
				n.devices.scripts[task.Name] = deviceScript{takes: upTo(10 * time.Second), hangs: chance(20), dies: chance(10)}
			}
		}
		a.Job.TaskGroups[0].ShutdownDelay = upTo(5 * time.Second)
		if chance(4) {
			a.Job.Type = cluster.JobBatch
		}
		if chance(2) {
			withVolumes(a, []cluster.VolumeID{"data", "logs"}[:1+rng.IntN(2)]...)
		}
		n.place(a)
	}
	n.placePlugin("p")
	for range 3 + rng.IntN(12) {
		n.run(upTo(time.Minute))
		switch rng.IntN(15) {
		case 0, 1:
			n.crash()
			n.answer()
		case 2:
			n.dieAt = n.effects + 1 + rng.IntN(20)
		case 3:
			hurried = true
			if !n.driver.down {
				n.killDriver()
			}
		case 4:
			n.fullDisk = !n.fullDisk
			hurried = true // a client that restarts knows nothing of a signal
		case 5:
			n.silent = !n.silent
		case 6:
			n.stop(n.allocs[rng.IntN(count)].ID)
		case 7:
			if chance(5) {
				hurried = true
				n.reboot()
				n.answer()
			}
		case 8:
			n.restart(n.allocs[rng.IntN(count)].ID, "", true)
		case 9:
			p := n.live("")
			if len(p) > 0 {
				one := p[rng.IntN(len(p))]
				n.restart(one.alloc, one.name, false)
			}
		case 10:
			n.killDevicePlugin(n.devices.process.generation)
		case 11:
			n.devices.ids[rng.IntN(3)].Healthy = chance(2)
			n.tell()
		case 12, 13, 14:
			n.storage.trouble(rng, n.allocs[rng.IntN(count)].ID)
		}
	}
	n.fullDisk, n.silent, n.dieAt = false, false, 0
	n.storage.freeAll()
	clear(n.storage.failing)
	n.run(time.Minute)
	for _, a := range n.allocs {
		n.stop(a.ID)
	}
	n.run(2 * time.Hour)
	n.placePlugin("q") // the other one may have failed, or its hold was over
	n.run(time.Minute)
	n.storage.empty()
	n.stop("q")
	n.run(time.Minute)
	for _, a := range n.allocs {
		status := n.status(a.ID)
		must.True(t, status == cluster.ClientComplete || status == cluster.ClientFailed, must.Sprintf("%s is %s", a.ID, status))
	}
	must.Len(t, 0, n.live(""))
	for _, a := range n.allocs {
		checkCodes(n, a)
	}
	if !hurried {
		for _, p := range n.tasks {
			task := n.taskOf(p)
			lost := n.scripts[p.name].recoverErr != nil // a later driver could not take it over, and destroyed it
			if p.killed != 0 && p.signaled != 0 && !lost {
				must.Between(t, task.KillTimeout, p.killed-p.signaled, task.KillTimeout+time.Second, must.Sprint(p.id))
			}
		}
	}
}

// checkCodes checks that each reported exit code is the code of an ended process.
func checkCodes(n *node, a *cluster.Allocation) {
	for _, state := range n.servers[a.ID].TaskStates.Tasks {
		codes := n.codes[string(a.ID)+"/"+state.Name]
		for _, e := range state.Events {
			if text, ended := strings.CutPrefix(e.Message, "Exit Code: "); ended {
				code, _, _ := strings.Cut(text, ",")
				must.SliceContains(n.t, codes, code, must.Sprint(state.Name, e, n.storyOf()))
			}
		}
	}
}

func (n *node) taskOf(p *task) *cluster.Task {
	for _, a := range n.allocs {
		for _, t := range a.Job.TaskGroups[0].Tasks {
			if t.Name == p.name {
				return t
			}
		}
	}
	return nil
}

// reboot restarts the machine: all processes are gone, and the clock starts again.
func (n *node) reboot() {
	n.log("the machine restarts")
	for _, p := range n.live("") {
		p.alive, p.exit, p.ended = false, &driver.ExitResult{Unknown: true}, n.boot
	}
	n.tasks = map[driver.TaskID]*task{}
	n.events = nil
	n.boot, n.bootID = time.Hour, n.bootID+"'"
	n.storage.reboot()
	n.driver = driverProcess{generation: n.driver.generation + 1}
	n.devices.reboot()
	n.startCore()
}
