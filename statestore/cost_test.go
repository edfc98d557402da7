package statestore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/learned"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The cost of a write depends on its changes, and the cost of a read on its rows, not on the size
// of the state. In a cluster twenty times as large they make less than twice as many memory
// allocations. (The extra ones are nodes of deeper trees.)
func TestCostFollowsWhatChanged(t *testing.T) {
	small, large := costs(newCluster(30, 1_000, 100)), costs(newCluster(600, 20_000, 100))
	for name := range small {
		must.Less(t, 2*small[name], large[name], must.Sprintf("%s: %.0f allocations of memory in a small cluster, %.0f in a large one", name, small[name], large[name]))
	}
}

// costs counts the allocations of memory of single operations.
func costs(c *bigCluster) map[string]float64 {
	at := time.Unix(1_000_000, 0)
	wake := make(chan struct{}, 1)
	feed := c.store.Subscribe(wake)
	defer feed.Close()
	feed.Follow(c.allocs[0].JobKey())
	last := c.allocs[len(c.allocs)-1]
	toggle := map[bool]cluster.ClientStatus{true: cluster.ClientPending, false: cluster.ClientRunning}
	round := 0
	count := func(f func()) float64 { return testing.AllocsPerRun(20, func() { round++; f() }) }
	drain := func() cluster.DrainID {
		return cluster.DrainID(string(rune('a'+round%26)) + string(rune('a'+round/26)))
	}

	return map[string]float64{
		"heartbeat": count(func() {
			c.write(func(x *statestore.Txn) { check(x.UpdateNodeStatus(last.NodeID, cluster.NodeReady, at)) })
		}),
		"report": count(func() {
			r := cluster.AllocReport{Alloc: last.ID, Node: last.NodeID, ClientStatus: toggle[round%2 == 0]}
			c.write(func(x *statestore.Txn) { x.UpdateAllocsFromClient([]cluster.AllocReport{r}, time.Time{}) })
		}),
		"drain, mark and cancel": count(func() {
			c.write(func(x *statestore.Txn) {
				_, err := x.UpdateNodeDrain(cluster.DrainUpdate{Node: last.NodeID, Drain: drain(), Spec: &cluster.DrainSpec{}, At: at})
				check(err)
				m := rules.Mark{Alloc: last.ID, Node: last.NodeID, Drain: drain(), Class: cluster.MarkPaced}
				check(x.ApplyMarks(at, []rules.Mark{m}, nil))
				_, err = x.UpdateNodeDrain(cluster.DrainUpdate{Node: last.NodeID, At: at})
				check(err)
			})
		}),
		"place and stop": count(func() {
			p := &cluster.Plan{At: at, Stops: []cluster.PlanStop{{Alloc: c.allocs[round].ID}}}
			p.Places = []*cluster.Allocation{place(serviceJob(string(last.JobID), 1), string(last.ID)+string(drain()), last.NodeID)}
			c.write(func(x *statestore.Txn) { _, err := x.ApplyPlan(p); check(err) })
		}),
		"node down and up": count(func() {
			c.write(func(x *statestore.Txn) { check(x.UpdateNodeStatus(c.nodes[0], cluster.NodeDown, at)) })
			c.write(func(x *statestore.Txn) { check(x.UpdateNodeStatus(c.nodes[0], cluster.NodeReady, at)) })
		}),
		"snapshot and reads": count(func() {
			s := c.store.Snapshot()
			for range s.DrainView().GroupAllocs(c.allocs[500].GroupKey()) {
			}
			for range s.DrainView().NodeAllocs(c.nodes[20], cluster.StageConsumers, false) {
			}
			for range s.DrainView().DrainingNodes() {
			}
			s.DrainView().Consumers(last.NodeID)
		}),
		"purge": count(func() {
			k := c.allocs[100*(round%8+1)].JobKey()
			j := c.store.Snapshot().Job(k)
			c.write(func(x *statestore.Txn) { check(x.DeleteJob(k, true)) })
			c.write(func(x *statestore.Txn) { check(x.UpsertJob(j)) })
		}),
	}
}

// What the learned times cost a report, in allocations of memory. A report that ends no such time costs what it costs
// in an entry without a time, from which nothing is learned. One that ends a time writes one further row, of its group.
func TestCostOfLearnedTimes(t *testing.T) {
	at := time.Unix(1_000_000, 0)
	const runs = 20
	// cost is that of a report on an allocation that is to stop, in a state that has the row of its group.
	cost := func(at time.Time, s cluster.ClientStatus, text func(round int) string) float64 {
		c := newCluster(30, 1_000, 100)
		write := func(i int, at time.Time, s cluster.ClientStatus, text string) {
			a := c.allocs[i]
			c.write(func(x *statestore.Txn) {
				x.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: s, ClientDescription: text}}, at)
			})
		}
		c.write(func(x *statestore.Txn) {
			x.RaiseClusterVersion(cluster.VersionOfLearnedTimes)
			p := &cluster.Plan{At: time.Unix(1_000_000, 0)}
			for _, a := range c.allocs[:runs+2] {
				p.Stops = append(p.Stops, cluster.PlanStop{Alloc: a.ID})
			}
			_, err := x.ApplyPlan(p)
			check(err)
		})
		write(0, time.Unix(1_000_001, 0), cluster.ClientComplete, "")
		round := 0
		n := testing.AllocsPerRun(runs, func() { round++; write(round, at, s, text(round)) })
		counted := statestore.LearnedTimes(c.store.Snapshot().State, c.allocs[0].GroupKey()).Stop.Total() - 1
		must.Eq(t, !at.IsZero() && s == cluster.ClientComplete, counted > 0)
		return n
	}
	for name, test := range map[string]struct {
		status cluster.ClientStatus
		text   func(int) string
		most   float64
	}{
		"nothing new": {cluster.ClientRunning, func(int) string { return "" }, 0},
		"a text":      {cluster.ClientRunning, func(round int) string { return string(rune('a' + round)) }, 0},
		"an end":      {cluster.ClientComplete, func(int) string { return "" }, 60},
	} {
		without, with := cost(time.Time{}, test.status, test.text), cost(at, test.status, test.text)
		t.Logf("a report of %s: %.0f without a time, %.0f with one", name, without, with)
		must.LessEq(t, without+test.most, with, must.Sprint(name))
	}
}

// The row of a group has two bytes for each counter in memory, and at most three in a snapshot.
func TestLearnedTimes_size(t *testing.T) {
	t.Parallel()
	w := learning(t, cluster.VersionOfLearnedTimes)
	before := len(persisted(t, w.snap()))
	w.reportNow(cluster.ClientRunning, true, "a")
	must.LessEq(t, before+350, len(persisted(t, w.snap())))
	row := &statestore.GroupTimes{Group: webGroup}
	for i := range row.Times.Start {
		row.Times.Start[i], row.Times.Verdict[i], row.Times.Stop[i] = 1<<16-1, 1<<16-1, 1<<16-1
	}
	full := newWorld(t)
	empty := len(persisted(t, full.snap()))
	full.store.InsertRow(row)
	must.LessEq(t, empty+3*learned.Buckets*3+110, len(persisted(t, full.snap())))
	must.Eq(t, 3*learned.Buckets*2, int(reflect.TypeFor[learned.Times]().Size()))
}
