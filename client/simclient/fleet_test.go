package simclient_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Each story happens on one ready node "n". The test compares the reports.
func TestFleet_stories(t *testing.T) {
	t.Parallel()
	const never = simclient.Never
	for _, test := range []struct {
		name string
		tell func(w *world)
		want []string
	}{
		{"it starts, runs, and is healthy after its MinHealthyTime", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(2)})
			w.pass(seconds(100))
		}, []string{"2s a running", "12s a running healthy"}},

		{"what starts at once and is judged at once says so at once", func(w *world) {
			j := service()
			j.TaskGroups[0].Migrate.MinHealthyTime = 0
			w.place("a", "n", j, simclient.Behaviour{})
			w.settle()
		}, []string{"0s a running healthy"}},

		{"what is unhealthy is so at its HealthyDeadline", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(2), Unhealthy: true})
			w.pass(seconds(100))
		}, []string{"2s a running", "1m2s a running unhealthy"}},

		{"a verdict may come at another time", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(3), Unhealthy: true})
			w.place("b", "n", service(), simclient.Behaviour{Verdict: -1})
			w.place("c", "n", service(), simclient.Behaviour{Verdict: never})
			w.pass(seconds(100))
		}, []string{"0s a running", "0s b running healthy", "0s c running", "3s a running unhealthy"}},

		{"a good verdict becomes bad and good again, once", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(3), Worsen: seconds(5), Recover: seconds(2)})
			w.pass(seconds(100))
		}, []string{"0s a running", "3s a running healthy", "8s a running unhealthy", "10s a running healthy"}},

		{"a bad verdict becomes good", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(3), Unhealthy: true, Recover: seconds(5), Worsen: never})
			w.pass(seconds(100))
		}, []string{"0s a running", "3s a running unhealthy", "8s a running healthy"}},

		{"what stops keeps its verdict", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(1), Worsen: seconds(5), Stop: seconds(4)})
			w.pass(seconds(4))
			w.stop("a")
			w.pass(seconds(20))
		}, []string{"0s a running", "1s a running healthy", "8s a complete healthy"}},

		{"a system job is judged by the fleet's own times", func(w *world) {
			w.place("a", "n", jobOf(cluster.JobSystem), simclient.Behaviour{})
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a running healthy"}},

		{"batch is not judged and ends by itself", func(w *world) {
			w.place("a", "n", batch(), simclient.Behaviour{Start: seconds(1), Run: seconds(30), Verdict: seconds(2)})
			w.place("b", "n", jobOf(cluster.JobSysBatch), simclient.Behaviour{Run: never})
			w.pass(seconds(100))
		}, []string{"0s b running", "1s a running", "31s a complete"}},

		{"a service never ends by itself", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Run: seconds(5), Verdict: never})
			w.pass(seconds(100))
		}, []string{"0s a running"}},

		{"told to stop it stops", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: seconds(3)})
			w.pass(seconds(20))
			w.stop("a")
			w.pass(seconds(20))
		}, []string{"0s a running", "10s a running healthy", "23s a complete healthy"}},

		{"it is killed after its stop time", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: time.Hour})
			w.pass(seconds(5))
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a complete"}},

		{"what stops is not judged any more", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: never})
			w.pass(seconds(9))
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"0s a running"}},

		{"what never stops does not, but batch still ends by itself", func(w *world) {
			w.place("a", "n", batch(), simclient.Behaviour{Run: seconds(60), Stop: never})
			w.place("b", "n", batch(), simclient.Behaviour{Run: seconds(7), Stop: seconds(5)})
			w.pass(seconds(5))
			w.stop("a")
			w.stop("b")
			w.pass(seconds(100))
		}, []string{"0s a running", "0s b running", "7s b complete", "1m0s a complete"}},

		{"what has not started stops at once", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5), Stop: never})
			w.place("b", "n", service(), simclient.Behaviour{Start: never, Stop: never})
			w.place("c", "n", withData(service()), simclient.Behaviour{Stop: never}, replaces("a"))
			w.pass(seconds(2))
			w.stop("c")
			w.stop("b")
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"2s a complete", "2s b complete", "2s c complete"}},

		{"what is to stop when first seen never starts", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: never})
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"0s a complete"}},

		{"a client's allocation that never starts stays pending", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: never})
			w.pass(time.Hour)
			must.True(w.t, w.wakeAt.IsZero())
		}, nil},

		{"a mark is not a stop", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{})
			w.pass(seconds(5))
			w.edit("a", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a running healthy"}},

		{"a record without its job still starts and stops", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: time.Hour}, func(a *cluster.Allocation) { a.Job = nil })
			w.pass(seconds(20))
			w.stop("a")
			w.pass(seconds(20))
		}, []string{"0s a running", "10s a running healthy", "25s a complete healthy"}},

		{"a purged record is dropped", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5)})
			w.pass(seconds(2))
			w.purge("a")
			w.settle()
			must.True(w.t, w.wakeAt.IsZero())
			w.pass(seconds(100))
		}, nil},

		{"what servers gave up is dropped", func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5)})
			w.pass(seconds(2))
			w.edit("a", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientLost })
			w.settle()
			must.True(w.t, w.wakeAt.IsZero())
			w.pass(seconds(100))
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("n", cluster.NodeReady)
			test.tell(w)
			must.Eq(t, test.want, w.told)
			for id, times := range w.behaved {
				must.Eq(t, 1, times, must.Sprint("drawn once: ", id))
			}
		})
	}
}

// With Overlap, a replacement waits only for data.
func TestFleet_overlaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *simclient.Options) { o.Overlap = true })
	w.node("n", cluster.NodeReady)
	w.node("m", cluster.NodeReady)
	w.place("old", "n", service(), simclient.Behaviour{Verdict: simclient.Never, Stop: seconds(3)})
	w.settle()
	w.told = nil
	w.place("new", "m", service(), simclient.Behaviour{Start: seconds(2), Verdict: simclient.Never}, replaces("old"))
	w.place("data", "m", withData(service()), simclient.Behaviour{Verdict: simclient.Never}, replaces("old"))
	w.pass(seconds(20))
	w.stop("old")
	w.pass(seconds(20))
	must.Eq(t, []string{"23s data running", "23s old complete", "2s new running"}, slices.Sorted(slices.Values(w.told)))
}

// A replacement on node "m" of an allocation with data on node "n".
func TestFleet_inherits(t *testing.T) {
	t.Parallel()
	data := simclient.Behaviour{Copy: seconds(4), Start: seconds(2), Verdict: simclient.Never}
	for _, test := range []struct {
		name string
		tell func(w *world)
		want []string
	}{
		{"it waits for its predecessor's end, copies, and starts", func(w *world) {
			w.place("new", "m", withData(service()), data, replaces("old"))
			w.pass(seconds(20))
			w.stop("old")
			w.pass(seconds(20))
		}, []string{"23s old complete", "29s new running"}},

		{"a predecessor that is purged has ended", func(w *world) {
			w.place("new", "m", withData(service()), data, replaces("old"))
			w.pass(seconds(20))
			w.purge("old")
			w.pass(seconds(20))
		}, []string{"26s new running"}},

		{"a predecessor that is lost has ended", func(w *world) {
			w.place("new", "m", withData(service()), data, replaces("old"))
			w.node("n", cluster.NodeDown)
			w.pass(seconds(20))
			w.edit("old", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientLost })
			w.pass(seconds(20))
		}, []string{"26s new running"}},

		{"a predecessor out of touch has not", func(w *world) {
			w.node("n", cluster.NodeDisconnected)
			w.place("new", "m", withData(service()), data, replaces("old"))
			w.edit("old", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown })
			w.pass(time.Hour)
		}, nil},

		{"a chain of three, on one node", func(w *world) {
			w.place("new", "n", withData(service()), data, replaces("old"))
			w.place("newer", "n", withData(service()), data, replaces("new"))
			w.pass(seconds(1))
			w.stop("old")
			w.pass(seconds(20))
			w.stop("new")
			w.pass(seconds(20))
		}, []string{"4s old complete", "10s new running", "21s new complete", "27s newer running"}},

		{"what never copies never starts, but stops", func(w *world) {
			w.place("new", "m", withData(service()), simclient.Behaviour{Copy: simclient.Never}, replaces("old"))
			w.stop("old")
			w.pass(seconds(20))
			w.stop("new")
			w.pass(seconds(20))
		}, []string{"3s old complete", "20s new complete"}},

		{"an allocation without a predecessor does not wait", func(w *world) {
			w.place("new", "m", withData(service()), data)
			w.pass(seconds(20))
		}, []string{"2s new running"}},

		{"an allocation without data waits, and copies nothing", func(w *world) {
			w.place("new", "m", service(), data, replaces("old"))
			w.pass(seconds(20))
			w.stop("old")
			w.pass(seconds(20))
		}, []string{"23s old complete", "25s new running"}},

		{"an end that was missed while out of touch is seen when back", func(w *world) {
			w.place("new", "m", withData(service()), data, replaces("old"))
			w.settle()
			w.node("m", cluster.NodeDisconnected)
			w.stop("old")
			w.pass(seconds(20))
			w.node("m", cluster.NodeReady)
			w.pass(seconds(20))
		}, []string{"3s old complete", "26s new running"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("n", cluster.NodeReady)
			w.node("m", cluster.NodeReady)
			w.place("old", "n", withData(service()), simclient.Behaviour{Verdict: simclient.Never, Stop: seconds(3)})
			w.settle()
			w.told = nil
			test.tell(w)
			must.Eq(t, test.want, w.told)
		})
	}
}

// The client of an unreachable node reports nothing, and its allocations continue.
func TestFleet_unreachable(t *testing.T) {
	t.Parallel()
	for _, status := range []cluster.NodeStatus{cluster.NodeDown, cluster.NodeDisconnected} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.node("n", cluster.NodeReady)
			w.place("svc", "n", service(), simclient.Behaviour{Start: seconds(1), Stop: seconds(3)})
			w.place("etl", "n", batch(), simclient.Behaviour{Run: seconds(30)})
			w.place("old", "n", service(), simclient.Behaviour{Stop: seconds(3)})
			w.pass(seconds(2))
			w.told = nil

			w.node("n", status)
			w.stop("old")
			w.place("new", "n", service(), simclient.Behaviour{})
			w.pass(seconds(98))
			must.SliceEmpty(t, w.told)
			must.True(t, w.wakeAt.IsZero(), must.Sprint("nothing to wake up for"))

			// It learns of the stop only now, and its stop time begins now.
			w.edit("svc", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown })
			w.node("n", cluster.NodeReady)
			w.pass(seconds(20))
			must.Eq(t, []string{
				"1m40s etl complete", "1m40s new running", "1m40s old running healthy", "1m40s svc running healthy",
				"1m43s old complete healthy", "1m50s new running healthy",
			}, w.told)
			must.Eq(t, start.Add(seconds(11)), w.state.allocs["svc"].DeploymentStatus.Timestamp, must.Sprint("when it was judged"))
		})
	}
}

// A deleted node has no client. Allocations that are purged later are dropped.
func TestFleet_nodeDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Start: seconds(1)})
	w.settle()
	w.write(func(s *state) { delete(s.nodes, "n") }, "n")
	w.pass(seconds(10))
	w.purge("a")
	w.pass(seconds(10))
	must.SliceEmpty(t, w.batches)
}

// A fleet is replaced at any moment, and nothing is lost. The new one continues with running and
// stopping allocations. Only the run time of batch work and an unfinished copy start again.
func TestFleet_restart(t *testing.T) {
	t.Parallel()
	for at := range 40 {
		w := newWorld(t)
		w.node("n", cluster.NodeReady)
		w.node("m", cluster.NodeReady)
		w.place("old", "n", withData(service()), simclient.Behaviour{Stop: seconds(3)})
		w.place("etl", "n", batch(), simclient.Behaviour{Run: seconds(20)})
		w.place("new", "m", withData(service()), simclient.Behaviour{Copy: seconds(4), Start: seconds(2)}, replaces("old"))
		for now := range 80 {
			if now == 15 {
				w.stop("old")
			}
			if now == at {
				w.held = true // what it says last gets lost
				w.settle()
				w.restart()
				w.held = false
			}
			w.pass(seconds(1))
		}
		etl, new := 20, 24
		if at < 20 {
			etl = at + 20
		}
		if 18 < at && at < 24 {
			new = at + 6
		}
		for _, want := range []string{"18s old complete", fmt.Sprintf("%s etl complete", seconds(etl)), fmt.Sprintf("%s new running", seconds(new))} {
			told := slices.ContainsFunc(w.told, func(line string) bool { return strings.HasPrefix(line, want) })
			must.True(t, told, must.Sprintf("restarted at %ds: no %q in %q", at, want, w.told))
		}
		must.True(t, w.state.allocs["new"].JudgedHealthy())
	}
}

// A report of an earlier fleet is applied after the new fleet has started. The allocation runs,
// and does not become pending again.
func TestFleet_restart_lateReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.held = true
	w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5)})
	w.pass(seconds(5))
	late := w.flight
	must.NotNil(t, late)
	w.restart()
	w.held = false
	w.pass(seconds(2))
	w.land(late)
	w.fleet.Changed("n")
	w.pass(seconds(20))
	must.Eq(t, []string{"5s a running", "17s a running healthy"}, w.told)
}

// A new fleet keeps the verdict that the servers know, with its time.
func TestFleet_restart_verdict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{})
	w.pass(seconds(20))
	w.restart()
	w.behaviours["a"] = simclient.Behaviour{Verdict: 1, Unhealthy: true}
	w.pass(seconds(20))
	w.stop("a")
	w.settle()
	must.Eq(t, []string{"0s a running", "10s a running healthy", "40s a complete healthy"}, w.told)
	must.Eq(t, start.Add(seconds(10)), w.batches[len(w.batches)-1][0].HealthyAt)
}

// A new fleet counts the change of a verdict that the servers know from its own first sight.
func TestFleet_restart_worsens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Worsen: seconds(15)})
	w.pass(seconds(20))
	w.restart()
	w.pass(seconds(20))
	must.Eq(t, []string{"0s a running", "10s a running healthy", "35s a running unhealthy"}, w.told)
}

// The fleet ignores a state that is older than the one before, and reads the change from a newer
// one.
func TestFleet_olderState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	older := w.state
	w.place("a", "n", service(), simclient.Behaviour{Start: seconds(1)})
	w.settle()
	w.place("b", "n", service(), simclient.Behaviour{Start: seconds(1)})

	w.shown = older
	w.settle()
	must.Eq(t, start.Add(time.Second), w.wakeAt, must.Sprint("comes back for the newer one"))
	w.pass(seconds(3))
	must.SliceEmpty(t, w.batches)

	w.shown = nil
	w.settle()
	must.Eq(t, []string{"3s a running"}, w.told, must.Sprint("b was first seen now"))
	w.pass(seconds(1))
	must.Eq(t, []string{"3s a running", "4s b running"}, w.told)
}

// After ChangedAll the fleet reads all nodes.
func TestFleet_ChangedAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.settle()
	w.write(func(s *state) {
		s.nodes["n"] = &cluster.Node{ID: "n", Status: cluster.NodeReady}
		s.allocs["a"] = &cluster.Allocation{ID: "a", NodeID: "n", ClientStatus: cluster.ClientPending}
	})
	w.settle()
	must.SliceEmpty(t, w.told, must.Sprint("no event says that an allocation changed"))
	w.fleet.ChangedAll()
	w.settle()
	must.Eq(t, []string{"0s a running"}, w.told)

	w.write(func(s *state) { delete(s.nodes, "n"); delete(s.allocs, "a") })
	w.fleet.ChangedAll()
	w.settle()
	must.True(t, w.wakeAt.IsZero(), must.Sprint("dropped, although its node is no more"))
}

// When the clock is set back no wait gets longer.
func TestFleet_clockSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5)})
	w.place("etl", "n", batch(), simclient.Behaviour{Run: seconds(20)})
	w.pass(seconds(3))
	w.now = w.now.Add(-time.Hour)
	w.told = nil
	w.pass(seconds(30))
	must.Eq(t, []string{"-59m55s a running", "-59m45s a running healthy", "-59m40s etl complete"}, w.told)
}

// When the clock is set back the wait for a retry does not get longer.
func TestFleet_clockSetBack_retry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = func([]cluster.AllocReport) fate { return full }
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Verdict: simclient.Never})
	w.settle()
	w.now = w.now.Add(-time.Hour)
	w.fate = nil
	w.pass(seconds(1))
	must.Eq(t, []string{"-59m59s a running"}, w.told)
}
