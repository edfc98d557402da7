package statestore_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The size of the large cluster of the benchmarks.
const (
	largeNodes  = 1_500
	largeAllocs = 50_000
)

const groupSize = 100

// bigCluster is a store with many nodes and allocations with random ids, in the order of
// the nodes.
type bigCluster struct {
	store  *statestore.Store
	index  uint64
	nodes  []cluster.NodeID
	allocs []*cluster.Allocation
	// drained are the nodes that drainAll drains.
	drained []cluster.NodeID
}

// newCluster returns a cluster in which the nodes drained by drainAll hold this number
// of allocations. They belong to jobs of groupSize allocations.
func newCluster(nodes, allocs, drained int) *bigCluster {
	c := &bigCluster{store: statestore.New()}
	random := rand.NewChaCha8([32]byte{1})
	id := func() string { return uuid.Must(uuid.NewRandomFromReader(random)).String() }
	at := time.Unix(900_000, 0)
	c.write(func(t *statestore.Txn) {
		for range nodes {
			c.nodes = append(c.nodes, cluster.NodeID(id()))
			check(t.UpsertNode(&cluster.Node{ID: c.nodes[len(c.nodes)-1], Status: cluster.NodeReady}, at))
		}
	})
	healthy := true
	for len(c.allocs) < allocs {
		job := serviceJob(fmt.Sprintf("job%04d", len(c.allocs)/groupSize), groupSize)
		places := make([]*cluster.Allocation, groupSize)
		for i := range places {
			n := len(c.allocs) * nodes / allocs
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
func (c *bigCluster) write(f func(*statestore.Txn)) {
	c.index++
	t := c.store.Begin(c.index)
	defer t.Abort()
	f(t)
	t.Commit()
}

// drainAll starts drains and returns marks of all allocations on their nodes.
func (c *bigCluster) drainAll(name string, at time.Time) []rules.Mark {
	var marks []rules.Mark
	for _, n := range c.drained {
		drain := cluster.DrainID(name + string(n))
		c.write(func(t *statestore.Txn) {
			_, err := t.UpdateNodeDrain(cluster.DrainUpdate{Node: n, Drain: drain, Spec: &cluster.DrainSpec{Deadline: -1}, At: at})
			check(err)
		})
		for a := range c.store.Snapshot().WorkView().LiveAllocsByNode(n) {
			marks = append(marks, rules.Mark{Alloc: a.ID, Group: a.GroupKey(), Node: n, Drain: drain, Class: cluster.MarkForced})
		}
	}
	return marks
}

func (c *bigCluster) cancelAll(at time.Time) {
	for _, n := range c.drained {
		c.write(func(t *statestore.Txn) {
			_, err := t.UpdateNodeDrain(cluster.DrainUpdate{Node: n, At: at})
			check(err)
		})
	}
}

// check fails a benchmark on an error.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
