package simclient_test

import (
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
	w := newWorld(t, func(o *simclient.Options) { o.MaxBatch = 4 })
	for n := range 3 {
		id := cluster.NodeID(fmt.Sprint("n", n))
		w.node(id, cluster.NodeReady)
		for a := range 6 {
			w.place(cluster.AllocID(fmt.Sprintf("%s-%d", id, a)), id, service(), quiet)
		}
	}
	w.settle()
	var sizes []int
	var order []cluster.AllocID
	for _, b := range w.batches {
		sizes = append(sizes, len(b))
		for _, r := range b {
			order = append(order, r.Alloc)
		}
	}
	must.Eq(t, []int{4, 4, 4, 4, 2}, sizes)
	must.Len(t, 18, order)
	must.True(t, slices.IsSorted(order), must.Sprint("first come first served"))
}

// While a batch is in flight no other is sent. The next one reports the changes since.
func TestFleet_oneBatchInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t) // whose applier refuses to have two
	w.held = true
	w.node("n", cluster.NodeReady)
	w.node("m", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Stop: seconds(1)})
	w.pass(seconds(12))
	w.stop("a")
	w.place("b", "m", service(), quiet)
	w.pass(seconds(8))
	must.Len(t, 1, w.batches)
	w.held = false
	w.pass(seconds(1))
	must.Eq(t, []string{"0s a running", "20s b running", "20s a complete healthy"}, sortedTail(w.told, 1))
	must.Eq(t, start.Add(seconds(10)), w.state.allocs["a"].DeploymentStatus.Timestamp)
}

// sortedTail sorts the lines after the first n in descending order, for batches whose order
// does not matter.
func sortedTail(lines []string, n int) []string {
	slices.Sort(lines[n:])
	slices.Reverse(lines[n:])
	return lines
}

// A batch that was not applied is repeated. The wait doubles up to RetryMax, and is the shortest
// again after a success.
func TestFleet_retries(t *testing.T) {
	t.Parallel()
	for name, not := range map[string]fate{"not applied": failed, "no room": full} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var tries []time.Duration
			successes := 0
			w.fate = func([]cluster.AllocReport) fate {
				tries = append(tries, w.now.Sub(start))
				if len(tries) == 6 || len(tries) == 8 {
					successes++
					return taken
				}
				return not
			}
			w.node("n", cluster.NodeReady)
			w.place("a", "n", service(), quiet)
			w.pass(seconds(20))
			w.place("b", "n", service(), quiet)
			w.pass(seconds(20))
			must.Eq(t, []string{"15s a running", "21s b running"}, w.told)
			must.Eq(t, []time.Duration{
				0, seconds(1), seconds(3), seconds(7), seconds(11), seconds(15),
				seconds(20), seconds(21),
			}, tries)
			must.Eq(t, 2, successes)
		})
	}
}

// A repeated batch reports the newest status.
func TestFleet_retrySaysNews(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = w.firstFails
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), quiet)
	w.place("b", "n", service(), quiet)
	w.settle()
	w.purge("b")
	w.stop("a")
	w.pass(seconds(5))
	must.Eq(t, []string{"1s a complete"}, w.told)
	must.Len(t, 1, w.batches[1], must.Sprint("the client does not report a purged allocation"))
}

// A report that may have been applied is repeated unless the state shows it.
func TestFleet_repeatsUnlessTheStateShowsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = func([]cluster.AllocReport) fate { return appliedButFailed }
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), quiet)
	w.pass(seconds(60))
	must.Eq(t, []string{"0s a running"}, w.told)
	must.Len(t, 1, w.batches)
}

// Reports that the servers took and refused are not repeated for ever.
func TestFleet_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), simclient.Behaviour{Verdict: seconds(5)})
	w.fate = func(reports []cluster.AllocReport) fate {
		for i := range reports {
			reports[i].Node = "another" // no fleet takes it; the reports belong to the applier
		}
		return taken
	}
	w.pass(time.Hour)
	must.SliceEmpty(t, w.told)
	must.Len(t, 2, w.batches, must.Sprint("one for each thing it had to say"))

	// After the servers change the allocation the report is repeated.
	w.fate = nil
	w.edit("a", func(a *cluster.Allocation) { a.DesiredTransition.Migrate = true })
	w.pass(seconds(1))
	must.Eq(t, []string{"1h0m0s a running healthy"}, w.told)
}

// A node with an unsent report becomes unreachable. It reports when it is back.
func TestFleet_retryOutOfTouch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = w.firstFails
	w.node("n", cluster.NodeReady)
	w.place("a", "n", service(), quiet)
	w.settle()
	w.node("n", cluster.NodeDown)
	w.pass(seconds(20))
	must.Len(t, 1, w.batches)
	w.node("n", cluster.NodeReady)
	w.pass(seconds(1))
	must.Eq(t, []string{"20s a running"}, w.told)
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
	must.Eq(t, []string{"1s a running"}, w.told)

	w.held = true
	w.place("b", "n", service(), quiet)
	w.settle()
	w.place("c", "n", service(), quiet)
	replies[1](false)
	replies[0](true)
	w.pass(seconds(10))
	must.Len(t, 3, w.batches, must.Sprint("still in flight"))
}

// applierFunc is an applier.
type applierFunc func([]cluster.AllocReport, func(bool)) bool

func (f applierFunc) Report(reports []cluster.AllocReport, reply func(bool)) bool {
	return f(reports, reply)
}

// Equal seeds make equal reports, in whatever order a store yields its rows and whatever else is
// placed. Another seed makes other reports.
func TestFleet_deterministic(t *testing.T) {
	t.Parallel()
	run := func(seed, order uint64, extra bool) (all []string, batches [][]cluster.AllocReport) {
		w := newWorld(t, func(o *simclient.Options) { o.Behave, o.Seed, o.MaxBatch = nil, seed, 7 })
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
		return w.told, w.batches
	}
	told, batches := run(1, 1, false)
	must.Len(t, 20+20+5, told)
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
	slices.Sort(told)
	slices.Sort(withExtra)
	must.Eq(t, told, withExtra, must.Sprint("what is drawn for one shifts no other"))

	other, _ := run(2, 1, false)
	slices.Sort(other)
	must.NotEq(t, told, other)
}
