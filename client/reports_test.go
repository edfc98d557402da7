package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// mostTaken is the largest request that the servers accept, in bytes.
const mostTaken = 1 << 20

// weigher is a shell that refuses a whole batch of reports if it is too large, as real servers do.
type weigher struct {
	*shell
	t       *testing.T
	batches []int // their sizes in bytes
	refused int
}

func (w *weigher) Report(reports []cluster.AllocReport, reply func(bool)) {
	var body wire.AllocsRequest
	for _, r := range reports {
		body.Allocs = append(body.Allocs, wire.NewAllocReport(r))
	}
	text, err := json.Marshal(body)
	must.SliceNotEmpty(w.t, reports)
	w.batches = append(w.batches, len(text))
	if err != nil || len(text) > mostTaken {
		w.refused++
		reply(false)
		return
	}
	w.shell.Report(reports, reply)
}

func newWeigher(t *testing.T) (*node, *weigher) {
	n, w := newNode(t), &weigher{t: t}
	n.wrap = func(s *shell) client.Shell {
		w.shell = s
		return w
	}
	n.startCore()
	return n, w
}

// The servers accept every batch of many allocations with many events, with any text in the errors
// of a driver.
func TestReports_aBatchFits(t *testing.T) {
	for name, message := range map[string]string{
		"long":      strings.Repeat("long ", 10_000),
		"escaped":   strings.Repeat("<\x01>&", 100),
		"quoted":    strings.Repeat(`"\`, 200),
		"separator": strings.Repeat("\u2028", 200),
		"invalid":   strings.Repeat("\xff\xfe", 200),
	} {
		t.Run(name, func(t *testing.T) {
			n, w := newWeigher(t)
			n.silent = true
			var ids []cluster.AllocID
			for i := range 90 {
				var tasks []*cluster.Task
				for k := range 3 {
					task := mainTask(fmt.Sprintf("task-%d-%d", i, k))
					n.scripts[task.Name] = script{startErrors: []error{fail(message), fail(message), fail(message)}}
					tasks = append(tasks, task)
				}
				ids = append(ids, cluster.AllocID(fmt.Sprintf("8d5d7a4e-0000-0000-0000-%012d", i)))
				n.place(allocation(ids[i], tasks...))
			}
			n.run(40 * time.Second) // two restarts
			n.silent = false
			n.run(2 * time.Minute)
			must.EqOp(t, 0, w.refused)
			for _, id := range ids {
				must.EqOp(t, cluster.ClientFailed, n.status(id), must.Sprint(id))
				must.Len(t, 3, n.servers[id].TaskStates.Tasks)
			}
			largest := slices.Max(w.batches)
			must.LessEq(t, 768<<10, largest)
			must.Greater(t, 256<<10, largest, must.Sprint("the bound is reached"))
		})
	}
}

// The servers accept every batch of allocations whose volumes stay on the node. Bug: the size did
// not include the names, paths and reasons of volumes, and the servers refused the same batch
// repeatedly.
func TestReports_aBatchWithVolumesFits(t *testing.T) {
	n, w := newWeigher(t)
	n.placePlugin("p")
	var volumes []cluster.VolumeID
	for i := range cluster.MaxVolumeHolds {
		volumes = append(volumes, cluster.VolumeID(fmt.Sprint(strings.Repeat("<", 100), i)))
	}
	var ids []cluster.AllocID
	for i := range 23 {
		ids = append(ids, cluster.AllocID(fmt.Sprintf("8d5d7a4e-0000-0000-0000-%012d", i)))
		n.place(withVolumes(allocation(ids[i], mainTask(fmt.Sprint("web-", i))), volumes...))
	}
	n.run(20 * time.Second)
	n.silent = true
	n.storage.failing["unpublish"] = errors.New(strings.Repeat("<", 300))
	for _, id := range ids {
		n.stop(id)
	}
	n.run(20 * time.Second)
	n.silent = false
	n.run(20 * time.Second)
	must.EqOp(t, 0, w.refused)
	for _, id := range ids {
		must.Eq(t, cluster.MaxVolumeHolds, n.servers[id].VolumeHolds.Count(), must.Sprint(id))
	}
	largest := slices.Max(w.batches)
	must.LessEq(t, 768<<10, largest)
	must.Greater(t, 256<<10, largest, must.Sprint("the bound is reached"))
}

func fail(message string) error {
	return &driver.Error{Class: driver.Recoverable, Call: "StartTask", Err: errors.New(message)}
}

// The client sends one report for the start of an allocation, one for its verdict and one for its
// stop, although each of them has several events. It also reports a task that ends before the
// others, and a task that takes long to stop.
func TestReports_ofOneGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		script  script
		tasks   []*cluster.Task
		reports []string
	}{
		"quick": {
			tasks:   []*cluster.Task{mainTask("web"), mainTask("log")},
			reports: []string{"running: running, running", "healthy", "complete: dead, dead"},
		},
		"slow": {
			script: script{startTakes: 2 * time.Second, stopTakes: 3 * time.Second},
			tasks:  []*cluster.Task{mainTask("web")},
			reports: []string{
				"pending: pending", "running: running", "healthy", "running: running", "complete: dead",
			},
		},
		"prestart": {
			script:  script{runs: []ending{{after: time.Second}, {}}},
			tasks:   []*cluster.Task{hooked("web", cluster.HookPrestart, false), mainTask("log")},
			reports: []string{"pending: pending, running", "pending: pending, dead", "running: running, dead", "healthy", "complete: dead, dead"},
		},
		"sidecar": {
			script:  script{stopTakes: 100 * time.Millisecond},
			tasks:   []*cluster.Task{hooked("web", cluster.HookPrestart, true), mainTask("log")},
			reports: []string{"running: running, running", "healthy", "running: dead, running", "complete: dead, dead"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.scripts["web"] = c.script
			n.place(allocation("a", c.tasks...))
			n.run(20 * time.Second)
			leaves(n, "a", 20*time.Second)
			must.Eq(t, c.reports, n.reports)
		})
	}
}

// A drain may wait for a verdict: it is reported at once.
func TestReports_verdictAtOnce(t *testing.T) {
	n := newNode(t)
	n.place(allocation("a", mainTask("web")))
	for n.disk["a"] == nil || n.disk["a"].Healthy == nil {
		must.Less(t, uptime+time.Hour, n.boot)
		n.run(10 * time.Millisecond)
	}
	n.run(50 * time.Millisecond)
	must.NotNil(t, n.servers["a"].Healthy)
}

// The end of an allocation is reported at once, also together with changes that wait.
func TestReports_endAtOnce(t *testing.T) {
	n := newRunning(t, script{}, 15*time.Second)
	n.place(allocation("b", mainTask("log")))
	ends(n, "a", 50*time.Millisecond)
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}

// An allocation with the largest number of tasks is reported. If the names are so long that the
// states do not fit, the report omits the states.
func TestReports_oneReportFits(t *testing.T) {
	for name, long := range map[string]int{"short": 0, "long": 240} {
		t.Run(name, func(t *testing.T) {
			n, w := newWeigher(t)
			n.driver.launchError = errors.New("no such program") // the tasks wait for their driver
			var tasks []*cluster.Task
			for i := range cluster.MaxJobTasks {
				tasks = append(tasks, mainTask(fmt.Sprintf("%s%04d", strings.Repeat("<", long), i)))
			}
			n.place(allocation("a", tasks...))
			reaches(n, "a", cluster.ClientPending, time.Second)
			must.EqOp(t, 0, w.refused)
			must.EqOp(t, long == 0, n.servers["a"].TaskStates != nil)
			must.Positive(t, len(w.batches))
		})
	}
}

// JSON cannot contain the times of a clock that is wrong by thousands of years. The report omits the
// states. With a verdict, which has a time, it is sent alone, and fails. Bug: the client sent an empty
// batch, which the servers accept, again and again.
func TestReports_timesThatCannotBeSent(t *testing.T) {
	n, w := newWeigher(t)
	n.wallAtBoot = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	n.place(allocation("a", mainTask("web")))
	n.place(allocation("b", mainTask("web")))
	n.run(time.Second)
	for _, id := range []cluster.AllocID{"a", "b"} {
		must.EqOp(t, cluster.ClientRunning, n.servers[id].ClientStatus)
		must.Nil(t, n.servers[id].TaskStates)
	}
	must.EqOp(t, 0, w.refused)
	n.run(time.Minute)
	must.Positive(t, w.refused)
	must.Less(t, 20, len(w.batches))
}

// After a restart the client waits for the first answer of the servers, and then reports only what
// they do not have, because each report is an entry in the raft log.
func TestReports_afterARestart(t *testing.T) {
	taskOf := func(n *node) *task { return n.live("web")[0] }
	for name, c := range map[string]struct {
		missed  func(n *node) // what the servers do not have
		reports []string
		// early: the client reports before the first answer, because the answer does not contain
		// ended allocations.
		early bool
	}{
		"nothing is new": {missed: func(*node) {}},
		"a task has ended": {
			missed:  func(n *node) { n.exit(taskOf(n), 3, 0) },
			reports: []string{"running: pending"},
		},
		"a verdict": {
			missed:  func(n *node) { delete(n.servers, "a") },
			reports: []string{"healthy"},
		},
		"a description": {
			missed: func(n *node) {
				r := n.servers["a"]
				r.ClientDescription = "no tasks have started"
				n.servers["a"] = r
			},
			reports: []string{"running: running"},
		},
		"the end": {
			missed: func(n *node) {
				n.silent = true
				leaves(n, "a", time.Minute)
				n.silent = false
			},
			reports: []string{"complete: dead"},
			early:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newRunning(t, script{}, time.Minute)
			n.reports = nil
			c.missed(n)
			n.crash()
			n.run(5 * time.Second)
			must.EqOp(t, c.early, len(n.reports) > 0)
			n.answer()
			n.run(5 * time.Second)
			must.Eq(t, c.reports, n.reports)
		})
	}
}

// For an allocation that is lost or unknown to the servers, the client reports only the end.
func TestReports_ofAForgottenAllocation(t *testing.T) {
	n := newRunning(t, script{stopTakes: 3 * time.Second}, time.Minute)
	allocs := n.allocs
	n.allocs, n.reports = nil, nil
	n.answer()
	n.run(time.Minute)
	must.Eq(t, []string{"complete: dead"}, n.reports)

	n.allocs, n.reports = allocs, nil // the servers have it again
	n.answer()
	n.run(time.Minute)
	must.Eq(t, nil, n.reports)
	must.EqOp(t, cluster.ClientComplete, n.status("a"))
}

// A change of the row by the servers causes no report.
func TestReports_notOfChangesByTheServers(t *testing.T) {
	n := newRunning(t, script{}, time.Minute)
	n.reports = nil
	n.index++
	n.allocs[0].AllocModifyIndex = n.index
	n.answer()
	n.run(time.Minute)
	must.Eq(t, nil, n.reports)
	must.EqOp(t, n.index, n.disk["a"].Alloc.AllocModifyIndex)
}
