package simclient_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// quiet runs at once and reports nothing else.
var quiet = simclient.Behaviour{Verdict: simclient.Never}

// One batch holds the reports of many clients. The reports beyond its limit are in the next.
func TestFleet_batches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 3 {
		id := cluster.NodeID(fmt.Sprint("n", n))
		w.node(id, cluster.NodeReady)
		for a := range 100 {
			w.place(cluster.AllocID(fmt.Sprintf("%s-%02d", id, a)), id, service(), quiet)
		}
	}
	w.settle()
	must.Len(t, 2, w.batches)
	must.Len(t, 250, w.batches[0])
	must.Len(t, 50, w.batches[1])
	ordered := slices.IsSortedFunc(slices.Concat(w.batches...), func(a, b cluster.AllocReport) int { return cmp.Compare(a.Alloc, b.Alloc) })
	must.True(t, ordered, must.Sprint("in the order of their queueing"))
}

// While a batch is in flight no other is sent. The next one reports the changes since.
func TestFleet_oneBatchInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // whose applier refuses to have two
	w.held = true
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Stop: seconds(1)})
	w.pass(seconds(12))
	w.stop("a")
	w.pass(seconds(8))
	must.Len(t, 1, w.batches)
	w.held = false
	w.pass(seconds(1))
	must.Eq(t, []string{"0s a running", "20s a complete healthy"}, w.lines)
	must.Eq(t, start.Add(seconds(10)), w.state.allocs["a"].DeploymentStatus.Timestamp)
}

// A batch that was not applied is repeated. The wait doubles up to a limit, and is the shortest
// again after a success. A repeated batch contains the newest status, and no purged allocation.
func TestFleet_retries(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]fate{"not applied": failed, "no room": full} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var tries []time.Duration
			w.fate = func([]cluster.AllocReport) fate {
				tries = append(tries, w.now.Sub(start))
				if len(tries) == 10 || len(tries) == 12 {
					return taken
				}
				return outcome
			}
			w.node("n", cluster.NodeReady)
			w.place("a", "n", service(), quiet)
			w.place("purged", "n", service(), quiet)
			w.settle()
			w.purge("purged")
			w.stop("a")
			w.pass(seconds(30))
			w.place("b", "n", service(), quiet)
			w.pass(seconds(10))
			must.Eq(t, []string{"16.35s a complete", "30.05s b running"}, w.lines)
			must.Eq(t, []time.Duration{
				0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms, 3150 * ms, 6350 * ms, 11350 * ms, 16350 * ms,
				seconds(30), 30050 * ms,
			}, tries)
			must.Len(t, 1, w.batches[1])
		})
	}
}

const ms = time.Millisecond

// Reports that the servers accepted and refused are not repeated for ever.
func TestFleet_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(5)})
	w.fate = func(reports []cluster.AllocReport) fate {
		for i := range reports {
			reports[i].Node = "another" // so the servers refuse it; the reports belong to the applier
		}
		return taken
	}
	w.pass(time.Hour)
	must.SliceEmpty(t, w.lines)
	must.Len(t, 2, w.batches, must.Sprint("one for each change"))

	// After the servers change the allocation the report is repeated.
	w.fate = nil
	w.edit("a", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
	w.pass(seconds(1))
	must.Eq(t, []string{"1h0m0s a running healthy"}, w.lines)
}

// The fleet ignores the second answer of an applier, a late one, and one to reports that were
// not queued.
func TestFleet_secondAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var replies []func(bool)
	w.options.Applier = applierFunc(func(reports []cluster.AllocReport, reply func(bool)) bool {
		replies = append(replies, reply)
		return w.Report(reports, reply)
	})
	w.restart()
	w.fate = func([]cluster.AllocReport) fate {
		if len(replies) == 1 {
			return full
		}
		return taken
	}
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), quiet)
	w.settle()
	replies[0](true)
	w.pass(seconds(1))
	must.Eq(t, []string{"50ms a running"}, w.lines)

	w.held = true
	w.place("b", "n", service(), quiet)
	w.settle()
	w.place("c", "n", service(), quiet)
	replies[1](false)
	replies[0](true)
	w.pass(seconds(10))
	must.Len(t, 3, w.batches, must.Sprint("still in flight"))
}

type applierFunc func([]cluster.AllocReport, func(bool)) bool

func (f applierFunc) Report(reports []cluster.AllocReport, reply func(bool)) bool {
	return f(reports, reply)
}

// Equal seeds make equal reports, in whatever order a store yields its rows and whatever else is
// placed. Another seed makes other reports.
func TestFleet_deterministic(t *testing.T) {
	t.Parallel()
	run := func(seed, order uint64, extra bool) (all []string, batches [][]cluster.AllocReport) {
		w := newWorld(t, func(o *simclient.Options) { o.Behave, o.Seed = nil, seed })
		w.state.shuffle = rand.New(rand.NewPCG(order, 0))
		for n := range 5 {
			id := cluster.NodeID(fmt.Sprint("n", n))
			w.node(id, cluster.NodeReady)
			for a := range 4 {
				w.place(cluster.AllocID(fmt.Sprintf("%s-%d", id, a)), id, service(), simclient.Behaviour{})
			}
		}
		if extra {
			w.place("extra", "n0", service(), simclient.Behaviour{})
		}
		w.pass(seconds(20))
		for n := range 5 {
			w.stop(cluster.AllocID(fmt.Sprintf("n%d-1", n)))
		}
		w.pass(seconds(20))
		return w.lines, w.batches
	}
	lines, batches := run(1, 1, false)
	must.Len(t, 20+20+5, lines)
	starts := map[time.Time]bool{}
	for _, b := range batches {
		starts[b[0].At] = true
	}
	must.Greater(t, 10, len(starts), must.Sprint("each has its own draw"))
	for order := range uint64(5) {
		_, again := run(1, order, false)
		must.Eq(t, batches, again)
	}
	withExtra, _ := run(1, 1, true)
	withExtra = slices.DeleteFunc(withExtra, func(s string) bool { return strings.Contains(s, " extra ") })
	slices.Sort(lines)
	slices.Sort(withExtra)
	must.Eq(t, lines, withExtra, must.Sprint("a draw for one allocation changes no other"))

	other, _ := run(2, 1, false)
	slices.Sort(other)
	must.NotEq(t, lines, other)
}
