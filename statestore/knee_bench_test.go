package statestore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The size of a large cluster: the benchmarks' numbers hold for it.
const (
	largeNodes  = 1_500
	largeAllocs = 50_000
	largeGroup  = 100 // allocations of a job
)

// BenchmarkKnee measures what a row costs in transactions of more and more rows,
// to find where go-memdb's tracking of what watchers have to be told overflows:
// beyond 8,192 changed tree nodes of one index it compares the whole tree before
// and after. The bound on the ids of a raft entry belongs below it.
//
//	go test ./statestore -run '^$' -bench Knee -benchtime 10x
func BenchmarkKnee(b *testing.B) {
	sizes := []int{250, 500, 750, 1000, 1250, 1500, 2000, 3000, 4000, 8000}
	for _, rows := range sizes {
		b.Run(fmt.Sprintf("write=marks/rows=%d", rows), func(b *testing.B) { benchmarkMarks(b, rows) })
	}
	for _, rows := range sizes {
		b.Run(fmt.Sprintf("write=reports/rows=%d", rows), func(b *testing.B) { benchmarkReports(b, rows) })
	}
}

func benchmarkMarks(b *testing.B, rows int) {
	c := newLargeCluster(rows)
	at := time.Unix(1_000_000, 0)
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		marks := c.drainAll(fmt.Sprint("drain", i), at)[:rows]
		b.StartTimer()
		c.write(func(t *statestore.Txn) {
			if err := t.ApplyMarks(at, marks, nil); err != nil {
				b.Fatal(err)
			}
		})
		b.StopTimer()
		c.cancelAll(at)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}

func benchmarkReports(b *testing.B, rows int) {
	c := newLargeCluster(rows)
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		reports := make([]cluster.AllocReport, rows)
		for r := range reports {
			a := c.allocs[r]
			reports[r] = cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: cluster.ClientRunning, ClientDescription: fmt.Sprint(i)}
		}
		b.StartTimer()
		c.write(func(t *statestore.Txn) { t.UpdateAllocsFromClient(reports) })
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rows), "ns/row")
}

// largeCluster is a store with largeNodes nodes and largeAllocs allocations of
// random ids, those on the first nodes first.
type largeCluster struct {
	store  *statestore.Store
	index  uint64
	nodes  []cluster.NodeID
	allocs []*cluster.Allocation
	// drained are the nodes that drainAll drains.
	drained []cluster.NodeID
}

// newLargeCluster returns one of which drainAll drains as many nodes as hold the
// given number of allocations.
func newLargeCluster(drained int) *largeCluster {
	c := &largeCluster{store: statestore.New()}
	random := rand.NewChaCha8([32]byte{1})
	id := func() string { return uuid.Must(uuid.NewRandomFromReader(random)).String() }
	at := time.Unix(900_000, 0)
	c.write(func(t *statestore.Txn) {
		for range largeNodes {
			c.nodes = append(c.nodes, cluster.NodeID(id()))
			check(t.UpsertNode(&cluster.Node{ID: c.nodes[len(c.nodes)-1], Status: cluster.NodeReady}, at))
		}
	})
	healthy := true
	for len(c.allocs) < largeAllocs {
		job := serviceJob(fmt.Sprintf("job%04d", len(c.allocs)/largeGroup), largeGroup)
		places := make([]*cluster.Allocation, largeGroup)
		for i := range places {
			n := len(c.allocs) * largeNodes / largeAllocs
			places[i] = place(job, id(), c.nodes[n])
			places[i].ClientStatus = cluster.ClientRunning
			places[i].DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy}
			c.allocs = append(c.allocs, places[i])
			if len(c.allocs) <= drained && (len(c.drained) == 0 || c.drained[len(c.drained)-1] != c.nodes[n]) {
				c.drained = append(c.drained, c.nodes[n])
			}
		}
		c.write(func(t *statestore.Txn) {
			check(t.UpsertJob(job))
			_, err := t.ApplyPlan(&cluster.Plan{At: at, Places: places})
			check(err)
		})
	}
	return c
}

// write runs a transaction at the next index.
func (c *largeCluster) write(f func(*statestore.Txn)) {
	c.index++
	t := c.store.Begin(c.index)
	defer t.Abort()
	f(t)
	t.Commit()
}

// drainAll starts drains and returns the marks of everything on their nodes.
func (c *largeCluster) drainAll(name string, at time.Time) []drainer.Mark {
	var marks []drainer.Mark
	for _, n := range c.drained {
		drain := cluster.DrainID(name + string(n))
		c.write(func(t *statestore.Txn) {
			_, err := t.UpdateNodeDrain(statestore.DrainUpdate{Node: n, Drain: drain, Spec: &cluster.DrainSpec{Deadline: -1}, At: at})
			check(err)
		})
		for a := range c.store.Snapshot().LiveAllocsByNode(n) {
			marks = append(marks, drainer.Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n, Drain: drain, Class: cluster.MarkForced})
		}
	}
	return marks
}

func (c *largeCluster) cancelAll(at time.Time) {
	for _, n := range c.drained {
		c.write(func(t *statestore.Txn) {
			_, err := t.UpdateNodeDrain(statestore.DrainUpdate{Node: n, At: at})
			check(err)
		})
	}
}

// check stops a benchmark that cannot go on.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
