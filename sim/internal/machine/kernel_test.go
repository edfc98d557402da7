package machine_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// The kernel refuses a call for the cgroup of a task, once or for minutes, while the process is in state
// D. The driver hangs, or has lost the task, so that the client kills the task or removes its remains. It
// retries without a loop, and the allocation ends.
func TestNode_kernelFails(t *testing.T) {
	t.Parallel()
	for _, lost := range []bool{false, true} {
		kernelFails(t, lost)
	}
}

func kernelFails(t *testing.T, lost bool) {
	for call := range machine.KernelCallCount {
		for name, until := range map[string]time.Duration{"once": 0, "for minutes": 5 * time.Minute} {
			t.Run(fmt.Sprint(lost, " ", call, " ", name), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, nil)
				f.scripts["web"] = scripted.Script{IgnoreSignals: true, KillTakes: 20 * time.Second}
				if lost {
					f.scripts["web"] = scripted.Script{KillTakes: 20 * time.Second, RecoverError: "EOF"}
				}
				f.place(allocation("a1", &cluster.Task{Name: "web", KillTimeout: 5 * time.Second}))
				f.run(30 * time.Second)
				end, failed := f.now.Add(until), 0
				f.kernel = func(c machine.KernelCall) error {
					if c != call || failed > 0 && !f.node.Now().Before(end) {
						return nil
					}
					failed++
					return errors.New("device or resource busy")
				}
				if lost {
					f.node.KillDriver("mock")
					f.run(10 * time.Second)
				} else {
					f.node.HangDriver("mock", 2*time.Minute)
				}
				f.stop("a1")
				f.run(10 * time.Minute)
				f.settle()
				must.Positive(t, failed)
				must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
				must.SliceEmpty(t, tasks(f))
				must.SliceEmpty(t, f.node.Machine().Cgroups())
			})
		}
	}
}

// A plugin dies after the answer to its launch and before its first call, once and several times, while
// its client runs and when the next one starts. The tasks run on, and the next one starts.
func TestNode_pluginDiesAfterItsLaunch(t *testing.T) {
	t.Parallel()
	for _, kind := range []client.PluginType{client.DriverPlugin, client.DevicePlugin} {
		for _, restarts := range []bool{false, true} {
			for deaths := 1; deaths <= 3; deaths++ {
				t.Run(fmt.Sprint(kind, " ", restarts, " ", deaths), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, nil)
					f.place(gives(three(f), "web", "d0"))
					f.run(5 * time.Minute)
					left := deaths
					f.launch = func(p client.Plugin) (l scripted.Launch) {
						if p.Type == kind && left > 0 {
							left--
							l.Dies = true
						}
						return l
					}
					if restarts {
						f.node.KillClient()
					}
					f.node.KillDriver("mock")
					f.node.Devices().Kill("toys")
					f.run(5 * time.Minute)
					must.Zero(t, left)
					must.Len(t, 2, tasks(f))
					f.stop("a1")
					f.place(gives(allocation("a2", &cluster.Task{Name: "next"}), "next", "d0"))
					f.settle()
					must.EqOp(t, cluster.ClientComplete, f.row("a1").ClientStatus)
					must.Len(t, 1, tasks(f))
				})
			}
		}
	}
}

// disturbs draws errors of the kernel, plugins that die at their launches, and reports that the servers
// take late. The draws have a stream of their own, so that the other draws of a seed stay. The returned
// function ends the faults.
func (f *fixture) disturbs(seed uint64) (end func()) {
	d := draw{rand.New(rand.NewPCG(seed, 34))}
	if d.chance(2) {
		odds := 3 + d.IntN(10)
		f.kernel = func(machine.KernelCall) error {
			if d.chance(odds) {
				return errors.New("device or resource busy")
			}
			return nil
		}
	}
	if d.chance(2) {
		odds := 2 + d.IntN(4)
		f.launch = func(client.Plugin) scripted.Launch { return scripted.Launch{Dies: d.chance(odds)} }
	}
	if d.chance(2) {
		f.late = func() bool { return d.chance(3) }
	}
	return func() { f.kernel, f.launch, f.late = nil, nil, nil }
}
