package statestore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// BenchmarkFigure runs the figures that need unexported parts of the package: see bench.
func BenchmarkFigure(b *testing.B) {
	// Built at first use, because the largest takes minutes.
	cluster := sync.OnceValue(func() *figureCluster { return newFigureCluster(measure.SizeOf(b)) })
	b.Run("hook", func(b *testing.B) { figureHook(b, cluster) })
	b.Run("journal", figureJournal)
	b.Run("other-writes", func(b *testing.B) { figureOtherWrites(b, cluster) })
}

// figureCluster is a cluster for writes in which one node of a hundred drains.
type figureCluster struct {
	*bigCluster
	// bare is a bare go-memdb of the same schema, which holds the same allocations.
	bare *memdb.MemDB
	// most is the maximum number of entries written, each of entryRows rows.
	most int
}

const entryRows = 10

func newFigureCluster(s measure.Size) *figureCluster {
	nodes, most := 4_000, 1_000
	if s == measure.Full {
		nodes, most = 100_000, 5_000
	}
	const perNode = 10
	c := &figureCluster{bigCluster: newCluster(nodes, nodes*perNode, nodes*perNode/100), most: most}
	c.drainAll("drain", time.Unix(1_000_000, 0))
	var err error
	c.bare, err = memdb.NewMemDB(statestore.Schema())
	check(err)
	for part := range slices.Chunk(slices.Collect(c.store.Snapshot().Allocs()), 1000) {
		c.insertBare(part)
	}
	return c
}

// entries returns the allocations of one quarter of the cluster that are on nodes that do not
// drain, by entry. The first quarter has the draining nodes. Changes to one quarter do not touch
// the others.
func (c *figureCluster) entries(quarter int) (entries [][]cluster.AllocID) {
	from := quarter * len(c.allocs) / 4
	for part := range slices.Chunk(c.allocs[from:from+len(c.allocs)/4], entryRows) {
		if len(entries) == c.most {
			break
		}
		var ids []cluster.AllocID
		for _, a := range part {
			ids = append(ids, a.ID)
		}
		entries = append(entries, ids)
	}
	return entries
}

// insertBare writes rows to the bare go-memdb.
func (c *figureCluster) insertBare(rows []*cluster.Allocation) {
	txn := c.bare.Txn(true)
	for _, a := range rows {
		check(txn.Insert(statestore.TableAllocs, a))
	}
	txn.Commit()
}

// bareWrites writes the rows of the entries to the bare go-memdb, over the same rows.
func (c *figureCluster) bareWrites(entries [][]cluster.AllocID) measure.Side {
	rows := func() [][]*cluster.Allocation {
		state := c.store.Snapshot()
		rows := make([][]*cluster.Allocation, len(entries))
		for i, ids := range entries {
			for _, id := range ids {
				rows[i] = append(rows[i], state.Alloc(id).Copy())
			}
		}
		return rows
	}
	for _, entry := range rows() {
		c.insertBare(entry)
	}
	return func() func(*measure.Meter) {
		rows := rows()
		return func(*measure.Meter) {
			for _, entry := range rows {
				c.insertBare(entry)
			}
		}
	}
}

// figureOtherWrites compares the cost of the group accounts in a write that does not change them
// with the cost of writing the same rows to a bare go-memdb. It also reports the ratio for a whole
// write of one row.
func figureOtherWrites(b *testing.B, of func() *figureCluster) {
	for i, kind := range []struct {
		name  string
		ready func(*bigCluster, [][]cluster.AllocID)
	}{
		{"at-rest", func(*bigCluster, [][]cluster.AllocID) {}},
		{"on-draining-nodes", (*bigCluster).drainUnder},
		{"without-verdicts", (*bigCluster).forgetVerdicts},
	} {
		b.Run(kind.name, func(b *testing.B) {
			c := of()
			entries := c.entries(1 + i)
			kind.ready(c.bigCluster, entries)
			c.compareAccounts(b, entries)
		})
	}
}

// drainUnder drains the nodes of the allocations.
func (c *bigCluster) drainUnder(entries [][]cluster.AllocID) {
	at := time.Unix(1_000_000, 0)
	for _, id := range slices.Concat(entries...) {
		n := c.store.Snapshot().Alloc(id).NodeID
		if c.store.Snapshot().Node(n).Draining() {
			continue
		}
		c.write(func(t *statestore.Txn) {
			_, err := t.UpdateNodeDrain(cluster.DrainUpdate{Node: n, Drain: cluster.DrainID("under " + n), Spec: &cluster.DrainSpec{}, At: at})
			check(err)
		})
	}
}

// forgetVerdicts removes the verdicts of the allocations.
func (c *bigCluster) forgetVerdicts(entries [][]cluster.AllocID) {
	for _, ids := range entries {
		c.write(func(t *statestore.Txn) {
			for _, id := range ids {
				a := t.State().Alloc(id).Copy()
				a.DeploymentStatus = nil
				t.PutAlloc(id, a)
			}
		})
	}
}

// compareAccounts compares the cost of the accounts with the cost of the write, for entries of ten
// rows and of one.
func (c *figureCluster) compareAccounts(b *testing.B, entries [][]cluster.AllocID) {
	measure.Figure(b, c.bareWrites(entries), c.accounts(entries)).Report(b)
	var ones [][]cluster.AllocID
	for _, ids := range entries {
		ones = append(ones, ids[:1])
	}
	base := c.bareWrites(ones)
	alone := measure.Compare(measure.MinPairs, base, c.accounts(ones))
	measure.Count(b, alone.Median, "of-one-row")
	whole := measure.Compare(measure.MinPairs, base, reportWrites(c.bigCluster, ones))
	measure.Count(b, whole.Median, "write-of-one-row-to-bare")
}

// accounts updates the accounts for the entries.
func (c *bigCluster) accounts(entries [][]cluster.AllocID) measure.Side {
	return func() func(*measure.Meter) {
		keep := c.store.Account(entries)
		return func(*measure.Meter) {
			for i := range entries {
				keep(i)
			}
		}
	}
}

// reportWrites writes client reports of one allocation each.
func reportWrites(c *bigCluster, ones [][]cluster.AllocID) measure.Side {
	turn := 0
	return func() func(*measure.Meter) {
		turn++
		state, description := c.store.Snapshot(), fmt.Sprint("turn ", turn)
		var reports []cluster.AllocReport
		for _, ids := range ones {
			a := state.Alloc(ids[0])
			reports = append(reports, cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: a.ClientStatus, ClientDescription: description, At: time.Unix(1_000_001, 0)})
		}
		return func(*measure.Meter) {
			for i := range reports {
				c.write(func(t *statestore.Txn) { t.UpdateAllocsFromClient(reports[i:i+1], time.Time{}) })
			}
		}
	}
}

// figureHook compares the cost of feeds that a write does not concern with writing the same rows to
// a bare go-memdb of the same schema, and reports the memory it allocates. The feed follows all
// jobs on draining nodes.
func figureHook(b *testing.B, of func() *figureCluster) {
	c := of()
	entries := c.entries(1)
	wake := make(chan struct{}, 1)
	feed := c.store.Subscribe(wake)
	defer feed.Close()
	for _, a := range c.allocs[:len(c.allocs)/100] {
		feed.Follow(a.JobKey())
	}
	hooks := make([]func(), len(entries))
	for i, ids := range entries {
		hooks[i] = c.store.Hook(feed, nil, nil, ids...)
	}
	all := func() {
		for _, hook := range hooks {
			hook()
		}
	}
	measure.Figure(b, c.bareWrites(entries), func() func(*measure.Meter) {
		return func(*measure.Meter) { all() }
	}).Report(b)
	measure.Count(b, measure.Bytes(all), "hook-bytes")
	if len(wake) > 0 {
		b.Fatal("the feed has woken its subscriber")
	}
}
