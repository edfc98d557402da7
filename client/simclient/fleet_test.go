package simclient_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const never = simclient.Never

// Each story happens on the ready nodes "n" and "m". The test compares the reports. The allocation
// "old" runs on "n" from the beginning if the story needs a predecessor.
func TestFleet_stories(t *testing.T) {
	t.Parallel()
	inherited := simclient.Behaviour{Copy: seconds(4), Start: seconds(2), Verdict: never}
	for _, test := range []struct {
		name string
		old  bool
		play func(w *world)
		want []string
	}{
		{"it starts, runs, and is healthy after its MinHealthyTime", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(2)})
			w.pass(seconds(100))
		}, []string{"2s a running", "12s a running healthy"}},

		{"an unhealthy allocation is judged at its HealthyDeadline", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(2), Unhealthy: true})
			w.pass(seconds(100))
		}, []string{"2s a running", "1m2s a running unhealthy"}},

		{"a verdict may come at another time", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(3), Unhealthy: true})
			w.place("b", "n", service(), simclient.Behaviour{Verdict: -1})
			w.place("c", "n", service(), simclient.Behaviour{Verdict: never})
			w.pass(seconds(100))
		}, []string{"0s a running", "0s b running healthy", "0s c running", "3s a running unhealthy"}},

		{"a good verdict becomes bad and good again, once", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(3), Worsen: seconds(5), Recover: seconds(2)})
			w.pass(seconds(100))
		}, []string{"0s a running", "3s a running healthy", "8s a running unhealthy", "10s a running healthy"}},

		{"a system job is judged by the fleet's own times", false, func(w *world) {
			w.place("a", "n", jobOf(cluster.JobSystem), simclient.Behaviour{})
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a running healthy"}},

		{"batch work is not judged and ends by itself", false, func(w *world) {
			w.place("a", "n", batch(), simclient.Behaviour{Start: seconds(1), Run: seconds(30), Verdict: seconds(2)})
			w.place("b", "n", jobOf(cluster.JobSysBatch), simclient.Behaviour{Run: never})
			w.pass(seconds(100))
		}, []string{"0s b running", "1s a running", "31s a complete"}},

		{"a stopped allocation keeps its verdict", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(1), Worsen: seconds(5), Stop: seconds(4)})
			w.pass(seconds(4))
			w.stop("a")
			w.pass(seconds(20))
		}, []string{"0s a running", "1s a running healthy", "8s a complete healthy"}},

		{"it is killed after its stop time", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: time.Hour})
			w.pass(seconds(5))
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a complete"}},

		{"an allocation that never stops runs on, but batch work still ends by itself", false, func(w *world) {
			w.place("a", "n", batch(), simclient.Behaviour{Run: seconds(60), Stop: never})
			w.place("b", "n", batch(), simclient.Behaviour{Run: seconds(7), Stop: seconds(5)})
			w.place("c", "n", service(), simclient.Behaviour{Stop: never})
			w.pass(seconds(5))
			w.stop("a")
			w.stop("b")
			w.stop("c")
			w.pass(seconds(100))
		}, []string{"0s a running", "0s b running", "0s c running", "7s b complete", "1m0s a complete"}},

		{"an allocation that has not started stops at once", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5), Stop: never})
			w.place("b", "n", service(), simclient.Behaviour{Start: never, Stop: never})
			w.place("c", "n", withData(service()), simclient.Behaviour{Stop: never}, replaces("a"))
			w.pass(seconds(2))
			w.stop("c")
			w.stop("b")
			w.stop("a")
			w.pass(seconds(100))
		}, []string{"2s a complete", "2s b complete", "2s c complete"}},

		{"a mark is not a stop", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{})
			w.pass(seconds(5))
			w.edit("a", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
			w.pass(seconds(100))
		}, []string{"0s a running", "10s a running healthy"}},

		{"an allocation without its job still starts and stops", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Stop: time.Hour}, func(a *cluster.Allocation) { a.Job = nil })
			w.pass(seconds(20))
			w.stop("a")
			w.pass(seconds(20))
		}, []string{"0s a running", "10s a running healthy", "25s a complete healthy"}},

		{"a purged allocation and a confirmed one are dropped", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5)})
			w.place("b", "n", service(), simclient.Behaviour{Start: seconds(5)})
			w.pass(seconds(2))
			w.purge("a")
			w.edit("b", func(a *cluster.Allocation) { a.ClientStatus, a.ConfirmedAt = cluster.ClientLost, w.now })
			w.settle()
			must.True(w.t, w.wakeAt.IsZero())
			w.pass(seconds(100))
		}, nil},

		{"a lost allocation runs while its node is away, and its end is reported after that", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Verdict: never, Stop: seconds(3)})
			w.pass(seconds(5))
			w.lose("a")
			w.pass(seconds(95))
			must.Eq(w.t, []cluster.AllocID{"a"}, slices.Collect(w.fleet.Lives("n", w.now)))
			w.node("n", cluster.NodeReady)
			w.pass(seconds(100))
			must.SliceEmpty(w.t, slices.Collect(w.fleet.Lives("n", w.now)))
		}, []string{"0s a running", "1m43s a complete"}},

		{"an allocation that was lost before its client received it ends at once", false, func(w *world) {
			w.node("n", cluster.NodeDown)
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(1)})
			w.lose("a")
			w.pass(seconds(10))
			w.node("n", cluster.NodeReady)
			w.pass(seconds(10))
		}, []string{"10s a complete"}},

		{"a client that is away stops what must stop then, and reports it later", false, func(w *world) {
			j := service()
			j.TaskGroups[0].Disconnect.StopOnClientAfter = seconds(30)
			w.place("a", "n", j, simclient.Behaviour{Verdict: never, Stop: seconds(3)})
			w.pass(seconds(5))
			w.lose("a")
			w.pass(seconds(32))
			must.Eq(w.t, []cluster.AllocID{"a"}, slices.Collect(w.fleet.Lives("n", w.now)))
			w.pass(seconds(2))
			must.SliceEmpty(w.t, slices.Collect(w.fleet.Lives("n", w.now)))
			w.node("n", cluster.NodeReady)
			w.settle()
		}, []string{"0s a running", "39s a complete"}},

		{"a client that is back before does not stop it", false, func(w *world) {
			j := service()
			j.TaskGroups[0].Disconnect.StopOnClientAfter = seconds(30)
			w.place("a", "n", j, simclient.Behaviour{Verdict: never})
			for range 3 {
				w.node("n", cluster.NodeDown)
				w.pass(seconds(29))
				w.node("n", cluster.NodeReady)
				w.pass(seconds(1))
			}
			must.Eq(w.t, []cluster.AllocID{"a"}, slices.Collect(w.fleet.Lives("n", w.now)))
		}, []string{"29s a running"}},

		{"the client of a deleted node reports nothing", false, func(w *world) {
			w.place("a", "n", service(), simclient.Behaviour{Start: seconds(1)})
			w.settle()
			w.write(func(s *state) { delete(s.nodes, "n") }, "n")
			w.pass(seconds(10))
			w.purge("a")
			w.pass(seconds(10))
		}, nil},

		{"a replacement waits for data, copies it, and starts; another one starts at once", true, func(w *world) {
			w.place("new", "m", withData(service()), inherited, replaces("old"))
			w.place("plain", "m", service(), inherited, replaces("old"))
			w.pass(seconds(20))
			w.stop("old")
			w.pass(seconds(20))
		}, []string{"2s plain running", "23s old complete", "29s new running"}},

		{"a predecessor that is purged or lost has ended", true, func(w *world) {
			w.place("older", "n", service(), quiet)
			w.place("new", "m", withData(service()), inherited, replaces("old"))
			w.place("newer", "m", withData(service()), inherited, replaces("older"))
			w.pass(seconds(20))
			w.purge("old")
			w.node("n", cluster.NodeDown)
			w.edit("older", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientLost })
			w.pass(seconds(20))
		}, []string{"0s older running", "26s new running", "26s newer running"}},

		{"a predecessor on a disconnected node has not ended", true, func(w *world) {
			w.node("n", cluster.NodeDisconnected)
			w.place("new", "m", withData(service()), inherited, replaces("old"))
			w.edit("old", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown })
			w.pass(time.Hour)
		}, nil},

		{"a chain of three, on one node", true, func(w *world) {
			w.place("new", "n", withData(service()), inherited, replaces("old"))
			w.place("newer", "n", withData(service()), inherited, replaces("new"))
			w.pass(seconds(1))
			w.stop("old")
			w.pass(seconds(20))
			w.stop("new")
			w.pass(seconds(20))
		}, []string{"4s old complete", "10s new running", "21s new complete", "27s newer running"}},

		{"an end during an outage is noticed after it", true, func(w *world) {
			w.place("new", "m", withData(service()), inherited, replaces("old"))
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
			if test.old {
				w.place("old", "n", withData(service()), simclient.Behaviour{Verdict: never, Stop: seconds(3)})
				w.settle()
				w.lines = nil
			}
			test.play(w)
			must.Eq(t, test.want, w.lines)
			for id, times := range w.drawn {
				must.Eq(t, 1, times, must.Sprint("drawn once: ", id))
			}
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
			w.lines = nil

			w.node("n", status)
			w.stop("old")
			w.place("new", "n", service(), simclient.Behaviour{})
			w.pass(seconds(98))
			must.SliceEmpty(t, w.lines)
			must.True(t, w.wakeAt.IsZero(), must.Sprint("nothing to wake up for"))

			// The client receives the order to stop now, and the stop time begins now.
			w.edit("svc", func(a *cluster.Allocation) { a.ClientStatus = cluster.ClientUnknown })
			w.node("n", cluster.NodeReady)
			w.pass(seconds(20))
			must.Eq(t, []string{
				"1m40s etl complete", "1m40s new running", "1m40s old running healthy", "1m40s svc running healthy",
				"1m43s old complete healthy", "1m50s new running healthy",
			}, w.lines)
			must.Eq(t, start.Add(seconds(11)), w.state.allocs["svc"].DeploymentStatus.Timestamp, must.Sprint("when it was judged"))
		})
	}
}

// A new fleet keeps the verdict in the state with its time, and counts later changes of the verdict
// from its own first read.
func TestFleet_restart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{})
	w.place("b", "n", service(), simclient.Behaviour{Worsen: seconds(15)})
	w.pass(seconds(20))
	w.restart()
	w.lines = nil
	w.behaviours["a"] = simclient.Behaviour{Verdict: 1, Unhealthy: true}
	w.pass(seconds(20))
	w.stop("a")
	w.settle()
	must.Eq(t, []string{"35s b running unhealthy", "40s a complete healthy"}, w.lines)
	must.Eq(t, start.Add(seconds(10)), w.batches[len(w.batches)-1][0].HealthyAt)

	w.behaviours["b"] = simclient.Behaviour{Stop: seconds(4)}
	w.stop("b")
	w.now = w.now.Add(seconds(3))
	w.restart()
	w.pass(seconds(10))
	must.Eq(t, "44s b complete unhealthy", w.lines[len(w.lines)-1], must.Sprint("it has stopped since the order"))
}

// When the clock is set back, no wait becomes longer.
func TestFleet_clockSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Start: seconds(5), Worsen: seconds(4)})
	w.place("etl", "n", batch(), simclient.Behaviour{Run: seconds(20)})
	w.pass(seconds(3))
	w.now = w.now.Add(-time.Hour)
	w.pass(seconds(13))
	w.now = w.now.Add(-time.Hour)
	w.pass(seconds(30))
	must.Eq(t, []string{"0s etl running", "-59m55s a running", "-59m45s a running healthy", "-1h59m41s a running unhealthy", "-1h59m40s etl complete"}, w.lines)

	w.fate = func([]cluster.AllocReport) fate { return full }
	w.place("b", "n", service(), quiet)
	w.settle()
	w.now = w.now.Add(-time.Hour)
	w.fate, w.lines = nil, nil
	w.pass(seconds(1))
	must.Len(t, 1, w.lines)
}

// A report that was not sent before the outage of a node is sent after it.
func TestFleet_outageBeforeTheReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = func([]cluster.AllocReport) fate { return full }
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), quiet)
	w.settle()
	w.fate = nil
	w.node("n", cluster.NodeDown)
	w.pass(seconds(20))
	must.SliceEmpty(t, w.lines)
	w.node("n", cluster.NodeReady)
	w.pass(seconds(1))
	must.Eq(t, []string{"20s a running"}, w.lines)
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
	must.True(t, w.wakeAt.After(start) && w.wakeAt.Before(start.Add(time.Second)), must.Sprint("it reads the newer state soon"))
	w.pass(seconds(3))
	must.SliceEmpty(t, w.batches)

	w.shown = nil
	w.settle()
	must.Eq(t, []string{"3s a running"}, w.lines, must.Sprint("the first read of b is now"))
	w.pass(seconds(1))
	must.Eq(t, []string{"3s a running", "4s b running"}, w.lines)
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
	must.SliceEmpty(t, w.lines, must.Sprint("no event names the node"))
	w.fleet.ChangedAll()
	w.settle()
	must.Eq(t, []string{"0s a running"}, w.lines)

	w.write(func(s *state) { delete(s.nodes, "n"); delete(s.allocs, "a") })
	w.fleet.ChangedAll()
	w.settle()
	must.True(t, w.wakeAt.IsZero(), must.Sprint("the allocation is dropped, although its node is gone"))
}

// A step reads the nodes that have changed. An allocation that waits for a predecessor reads it when the
// predecessor's node changes.
func TestFleet_costs(t *testing.T) {
	t.Parallel()
	const nodes = 200
	w := newWorld(t)
	for n := range nodes {
		id := cluster.NodeID(fmt.Sprintf("n%03d", n))
		w.node(id, cluster.NodeReady)
		w.place(cluster.AllocID(id), id, service(), simclient.Behaviour{Start: seconds(n), Verdict: never})
	}
	step := func() int {
		*w.state.reads = 0
		w.wakeAt = w.fleet.Step(w.now)
		return *w.state.reads
	}
	const perNode = 4 // its node, and its live and its unconfirmed allocations with the tables below them
	must.Eq(t, 1+nodes*perNode, step(), must.Sprint("the first step reads all nodes"))
	w.settle()
	must.Zero(t, step(), must.Sprint("nothing is due"))
	w.fleet.Changed("n007", "n007", "n150", "nowhere")
	must.Eq(t, 2*perNode+1, step(), must.Sprint("a node that does not exist has no client"))
	for _, due := range []cluster.NodeID{"n001", "n002", "n003"} {
		w.now = w.wakeAt
		w.fleet.Changed(due)
		must.Eq(t, perNode, step(), must.Sprint("one node is due and changed, and is read once"))
		w.settle()
		must.Zero(t, step())
	}
	w.now = w.wakeAt
	must.Zero(t, step(), must.Sprint("a node that is due has not changed"))
	w.settle()
	w.place("new", "n001", withData(service()), quiet, replaces("n002"))
	w.settle()
	w.fleet.Changed("n002")
	must.Eq(t, perNode+1, step(), must.Sprint("the changed node, and the predecessor"))
	w.stop("n002")
	w.settle()
	w.fleet.Changed("n002")
	must.Eq(t, perNode, step(), must.Sprint("no allocation waits"))
}

// An allocation that crashes again and again gets the verdicts that a real client gives: see
// client.TestHealth_crashLoop.
func TestFleet_crashes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		crash time.Duration
		want  []string
	}{
		{seconds(5), []string{"2s a running", "1m0s a running unhealthy"}},
		{seconds(12), []string{"2s a running", "12s a running healthy", "14s a running unhealthy"}},
		{seconds(30), []string{
			"2s a running", "12s a running healthy", "32s a running unhealthy", "1m7s a running healthy", "1m17s a running unhealthy",
		}},
	} {
		w := newWorld(t)
		w.node("n", cluster.NodeReady)
		w.place("a", "n", service(), simclient.Behaviour{Start: seconds(2), Crash: test.crash})
		w.pass(seconds(100))
		must.Eq(t, test.want, w.lines)
		must.True(t, w.wakeAt.IsZero(), must.Sprint("no later start can change the verdict"))
		w.stop("a")
		w.pass(seconds(10))
		must.EqOp(t, cluster.ClientComplete, w.state.allocs["a"].ClientStatus)
	}
}

// A new fleet continues with the verdict in the state, and a clock that is set back changes no wait.
func TestFleet_crashesAfterARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Crash: seconds(12)})
	w.pass(seconds(11))
	w.restart()
	w.now = w.now.Add(-time.Hour)
	w.pass(seconds(5))
	w.now = w.now.Add(-time.Hour)
	w.pass(seconds(60))
	must.Eq(t, []string{"0s a running", "10s a running healthy", "-1h59m37s a running unhealthy"}, w.lines)
}
