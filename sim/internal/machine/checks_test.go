package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// checkedBy draws checks for an allocation.
func (d draw) checkedBy(a *cluster.Allocation) *cluster.Allocation {
	g := a.Job.TaskGroups[0]
	s := cluster.Service{Name: "web", PortLabel: "80"}
	for i := range 1 + d.IntN(3) {
		s.Checks = append(s.Checks, cluster.ServiceCheck{
			Name: fmt.Sprint("c", i), Type: cluster.CheckHTTP, Path: "/", Interval: time.Second + d.upTo(20*time.Second), Timeout: time.Second + d.upTo(10*time.Second),
			SuccessBeforePassing: d.IntN(3), FailuresBeforeCritical: d.IntN(4), OnUpdate: []cluster.CheckOnUpdate{cluster.CheckMustPass, cluster.CheckMustPass, cluster.CheckIgnored}[d.IntN(3)],
		})
	}
	if d.chance(2) {
		s.Checks[0].Restart = &cluster.CheckRestart{Limit: 1 + d.IntN(4), Grace: d.upTo(30 * time.Second)}
	}
	if d.chance(2) {
		s.TaskName = g.Tasks[0].Name
	}
	g.Services = []cluster.Service{s}
	return a
}

// Random nodes whose checks pass, fail and hang, with every other fault.
func TestNode_randomChecks(t *testing.T) {
	t.Parallel()
	seeds := uint64(400)
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { playChecks(t, draw{rand.New(rand.NewPCG(seed, 34))}, seed) }) {
			return
		}
	}
}

func playChecks(t *testing.T, d draw, seed uint64) {
	f := newFixture(t, rand.New(rand.NewPCG(d.Uint64(), 1)))
	if d.chance(3) {
		odds := 5 + d.IntN(40)
		f.fault = func(c scripted.Call) scripted.Fault { return d.fault(c, odds) }
	}
	end, freeze := f.disturbs(seed), f.freezes(seed)
	count, troubled := 1+d.IntN(3), d.chance(2)
	for i := range count {
		f.place(d.checkedBy(d.allocation(f, i)))
	}
	each := func(do func(a *cluster.Allocation, check string)) {
		for _, a := range f.allocs {
			for _, c := range a.Job.TaskGroups[0].Services[0].Checks {
				do(a, c.Name)
			}
		}
	}
	for range 3 + d.IntN(12) {
		f.run(d.upTo(3 * time.Minute))
		each(func(a *cluster.Allocation, check string) {
			if d.chance(3) {
				machine.SetTarget(f.node, a.ID, check, machine.TargetState(d.IntN(3)))
			}
		})
		if troubled {
			d.trouble(f, count)
			freeze()
		}
	}
	f.fault, f.away, f.dieAt = nil, false, 0
	end()
	f.node.FillDisk(false)
	f.answer()
	f.settle()
	each(func(a *cluster.Allocation, check string) {
		machine.SetTarget(f.node, a.ID, check, machine.TargetPasses)
	})
	f.settle()
	for _, a := range f.allocs {
		f.stop(a.ID)
	}
	f.run(2 * time.Hour)
	f.settle()
	must.SliceEmpty(t, tasks(f))
}

// A check that fails for a time makes the allocation unhealthy for that time, in the table and on the row.
func TestNode_checkFails(t *testing.T) {
	t.Parallel()
	for _, state := range []machine.TargetState{machine.TargetFails, machine.TargetHangs} {
		f := newFixture(t, nil)
		a := allocation("a1", &cluster.Task{Name: "web", KillTimeout: 5 * time.Second})
		a.Job.TaskGroups[0].Services = []cluster.Service{{Name: "web", PortLabel: "80", Checks: []cluster.ServiceCheck{
			{Name: "c", Type: cluster.CheckHTTP, Path: "/", Interval: 10 * time.Second, Timeout: 2 * time.Second},
		}}}
		f.place(a)
		f.run(time.Minute)
		must.True(t, f.row("a1").JudgedHealthy())
		machine.SetTarget(f.node, "a1", "c", state)
		f.run(15 * time.Second)
		must.False(t, f.row("a1").JudgedHealthy())
		machine.SetTarget(f.node, "a1", "c", machine.TargetPasses)
		f.run(time.Minute)
		must.True(t, f.row("a1").JudgedHealthy())
		f.settle()
	}
}
