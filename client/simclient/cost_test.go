package simclient_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A step costs what is due or has changed, however many nodes there are.
func TestFleet_costs(t *testing.T) {
	t.Parallel()
	const nodes = 500
	w := newWorld(t)
	for n := range nodes {
		id := cluster.NodeID(fmt.Sprintf("n%03d", n))
		w.node(id, cluster.NodeReady)
		w.place(cluster.AllocID(id), id, service(), simclient.Behaviour{Start: seconds(n)})
	}
	step := func() int {
		*w.state.reads = 0
		w.wakeAt = w.fleet.Step(w.now)
		return *w.state.reads
	}
	const readAll = 2 // its node, and its live allocations with the table below them
	perNode := readAll + 1

	must.Eq(t, 1+nodes*perNode, step(), must.Sprint("the first step reads all nodes"))
	w.settle()
	for range 10 {
		must.Zero(t, step(), must.Sprint("nothing is due"))
	}
	w.fleet.Changed("n007", "n007", "n300")
	must.Eq(t, 2*perNode, step())
	w.fleet.Changed("nowhere")
	must.Eq(t, perNode, step())

	for _, due := range []cluster.NodeID{"n001", "n002", "n003"} {
		w.now = w.wakeAt
		w.fleet.Changed(due)
		must.Eq(t, perNode, step(), must.Sprint("one node is due and changed, and is read once"))
		w.settle()
		must.Zero(t, step())
	}
}

// An allocation that waits for a predecessor is read when the predecessor's node changes, and
// costs nothing until then.
func TestFleet_costs_waiting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	w.place("old", "n", service(), quiet)
	for n := range 100 {
		id := cluster.NodeID(fmt.Sprint("m", n))
		w.node(id, cluster.NodeReady)
		w.place(cluster.AllocID(id), id, withData(service()), quiet, replaces("old"))
	}
	w.settle()
	*w.state.reads = 0
	w.pass(seconds(1000))
	w.fleet.Changed("m3")
	w.settle()
	must.Eq(t, 4, *w.state.reads, must.Sprint("its node, its allocations, and its predecessor"))
	w.stop("old")
	w.settle()
	must.Len(t, 102, w.told, must.Sprint("old runs and completes, all the others run"))
	*w.state.reads = 0
	w.fleet.Changed("n")
	w.settle()
	must.Less(t, 5, *w.state.reads, must.Sprint("no allocation waits"))
}

// What has ended costs nothing, not even where it was.
func TestFleet_costs_ended(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 50 {
		id := cluster.NodeID(fmt.Sprint("n", n))
		w.node(id, cluster.NodeReady)
		w.place(cluster.AllocID(id), id, batch(), simclient.Behaviour{})
	}
	w.settle()
	w.write(func(s *state) { clear(s.nodes) })
	*w.state.reads = 0
	w.fleet.ChangedAll()
	w.settle()
	must.Eq(t, 1, *w.state.reads, must.Sprint("there are no nodes to read"))
}

// For a due task the fleet does not read the other allocations of its node. For an answered
// report it reads the reported allocation alone.
func TestFleet_costs_due(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.node("n", cluster.NodeReady)
	for n := range 10 {
		w.place(cluster.AllocID(fmt.Sprint("a", n)), "n", service(), simclient.Behaviour{Start: seconds(1 + n)})
	}
	w.settle()
	told := len(w.told)
	for n := range 5 {
		*w.state.reads = 0
		w.now = w.wakeAt
		w.settle()
		must.Len(t, told+1+n, w.told, must.Sprint("one more runs"))
		must.Eq(t, 1, *w.state.reads, must.Sprint("the client sees that its report was applied"))
	}
}

// A report may be applied long after its failure was answered, without another answer. Until a
// later report is applied, the client reads all allocations of its node in each step.
func TestFleet_readsAllAfterAFailedReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fate = w.firstFails
	w.node("n", cluster.NodeReady)
	w.place("first", "n", service(), simclient.Behaviour{Start: seconds(1)})
	w.place("second", "n", service(), simclient.Behaviour{Start: seconds(1) + time.Millisecond})
	w.pass(seconds(1))
	must.Len(t, 1, w.batches)
	w.write(func(s *state) { s.apply(w.batches[0][0]) })
	w.pass(seconds(1))
	must.Len(t, 2, w.batches)
	must.Len(t, 1, w.batches[1], must.Sprint("the client does not repeat a report that the state shows"))
	must.Eq(t, "second", w.batches[1][0].Alloc)
	*w.state.reads = 0
	w.pass(seconds(10))
	must.Eq(t, []string{"2s second running", "11s first running healthy", "11.001s second running healthy"}, w.told)
	must.Eq(t, 2, *w.state.reads, must.Sprint("the client no longer reads all allocations"))
}
