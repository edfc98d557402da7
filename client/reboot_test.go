package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// bootTimes returns the times of a record on the boot clock, by name. They are all durations in the
// structs of package client and of the packages in its folder.
func bootTimes(of reflect.Value, name string, times map[string]reflect.Value) {
	switch {
	case of.Type() == reflect.TypeFor[time.Duration]():
		times[name] = of
	case of.Kind() == reflect.Pointer && !of.IsNil():
		bootTimes(of.Elem(), name, times)
	case of.Kind() == reflect.Struct && strings.HasPrefix(of.Type().PkgPath()+"/", reflect.TypeFor[client.Record]().PkgPath()+"/"):
		for i := range of.NumField() {
			bootTimes(of.Field(i), name+"."+of.Type().Field(i).Name, times)
		}
	case of.Kind() == reflect.Slice:
		for i := range of.Len() {
			bootTimes(of.Index(i), fmt.Sprint(name, "[", i, "]"), times)
		}
	}
}

// No time on the boot clock survives a reboot, in any state of the record: the test finds the fields
// by reflection. The times are later than every time of the next boot. Bug: a storage plugin held its
// volumes for the uptime of the earlier boot, and the drain of its node did not end.
func TestReboot_noTimeSurvives(t *testing.T) {
	t.Parallel()
	const old = 10 * uptime
	for phase := client.PhaseWaiting; phase <= client.PhaseDead; phase++ {
		for state := range 8 {
			stopping, restarting, ended := state&1 != 0, state&2 != 0, state&4 != 0
			t.Run(fmt.Sprint(phase, " ", stopping, restarting, ended), func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.place(withVolumes(allocation("a", mainTask("web"), hooked("cleanup", cluster.HookPoststop, false)), "data"))
				n.run(time.Second)
				rec := n.disk["a"]
				rec.Stopping, rec.RestartAll, rec.RestartedAll, rec.Ended, rec.VolumesLeft = stopping, restarting, restarting, ended, ended
				for i := range rec.Tasks {
					rec.Tasks[i].Phase, rec.Tasks[i].Stopping, rec.Tasks[i].Restarting = phase, stopping, restarting
					rec.Tasks[i].Exit = &driver.ExitResult{Unknown: true}
				}
				before := map[string]reflect.Value{}
				bootTimes(reflect.ValueOf(rec).Elem(), "", before)
				must.Greater(t, 10, len(before))
				for _, field := range before {
					field.SetInt(int64(old))
				}
				n.reboot()
				n.run(time.Second)
				after := map[string]reflect.Value{}
				bootTimes(reflect.ValueOf(n.disk["a"]).Elem(), "", after)
				must.EqOp(t, len(before), len(after))
				for name, field := range after {
					must.Less(t, int64(old), field.Int(), must.Sprint(name, " is of the earlier boot"))
				}
			})
		}
	}
}

// A task that has been restarted before a reboot has the attempts of its policy again after the
// interval. Bug: the window of the earlier boot never ended.
func TestReboot_restartWindow(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.scripts["web"] = script{runs: []ending{{after: time.Second, code: 1}, {}}}
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Minute, Delay: time.Second, Mode: cluster.RestartFail}
	n.place(a)
	n.run(time.Minute)
	n.reboot()
	n.answer()
	n.run(2 * time.Minute)
	must.Len(t, 1, n.live("web"))
	n.exit(n.live("web")[0], 1, 0)
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"), must.Sprint(n.eventsOf("a", "web")))
}

// After a reboot without servers the tasks of system jobs start, such as storage plugins. The tasks of other jobs wait
// for the servers, which may have replaced them. Bug: no test had a system job.
func TestReboot_systemJobsWithoutServers(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for id, kind := range map[cluster.AllocID]cluster.JobType{"system": cluster.JobSystem, "service": cluster.JobService, "batch": cluster.JobBatch} {
		a := allocation(id, mainTask("web"))
		a.Job.Type = kind
		n.place(a)
	}
	n.run(time.Minute)
	must.SliceLen(t, 3, n.live("web"))
	n.silent = true
	n.reboot()
	n.run(time.Hour)
	must.SliceLen(t, 1, n.live("web"))
	must.EqOp(t, "system", n.live("web")[0].alloc)
	n.silent = false
	n.answer()
	n.run(time.Minute)
	must.SliceLen(t, 3, n.live("web"))
}

// A plugin whose hold began before a reboot stops at the hold limit of this boot.
func TestReboot_hold(t *testing.T) {
	t.Parallel()
	n := newMounted(t)
	n.storage.failing["unpublish"] = errors.New("the target is busy")
	n.stop("p")
	n.run(time.Second)
	must.Positive(t, n.disk["p"].HoldBegan)
	n.reboot()
	n.answer()
	n.run(client.DefaultHoldLimit + 5*time.Minute)
	must.EqOp(t, cluster.ClientComplete, n.status("p"))
}
