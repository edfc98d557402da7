package statestore_test

import (
	"testing"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// BenchmarkFigure runs the figures that are measured from inside: see bench.
func BenchmarkFigure(b *testing.B) {
	b.Run("hook", figureHook)
	b.Run("other-writes", figureOtherWrites)
}

// figureCluster is one to write to, with entries of allocations on nodes that do not
// drain.
func figureCluster() (c *bigCluster, entries [][]cluster.AllocID) {
	const perEntry, nodes, allocs = 10, 500, 20_000
	c = newCluster(nodes, allocs, 100)
	c.drainAll("drain", time.Unix(1_000_000, 0))
	for i := allocs / 2; i+perEntry <= allocs; i += perEntry {
		var ids []cluster.AllocID
		for _, a := range c.allocs[i : i+perEntry] {
			ids = append(ids, a.ID)
		}
		entries = append(entries, ids)
	}
	return c, entries
}

// bareWrites writes the rows of the entries to a bare go-memdb of the same schema.
func bareWrites(c *bigCluster, entries [][]cluster.AllocID) measure.Side {
	state := c.store.Snapshot()
	return func() func(*measure.Meter) {
		db, err := memdb.NewMemDB(statestore.Schema())
		check(err)
		first := db.Txn(true)
		for a := range state.Allocs() {
			check(first.Insert(statestore.TableAllocs, a))
		}
		first.Commit()
		rows := make([][]*cluster.Allocation, len(entries))
		for i, ids := range entries {
			for _, id := range ids {
				rows[i] = append(rows[i], state.Alloc(id).Copy())
			}
		}
		return func(*measure.Meter) {
			for _, entry := range rows {
				txn := db.Txn(true)
				for _, a := range entry {
					check(txn.Insert(statestore.TableAllocs, a))
				}
				txn.Commit()
			}
		}
	}
}

// figureOtherWrites: what a write costs for the sake of its groups' accounts when it
// changes nothing about them, to writing the same rows to a bare go-memdb.
func figureOtherWrites(b *testing.B) {
	c, entries := figureCluster()
	measure.Compare(measure.PairsOf(b), bareWrites(c, entries), func() func(*measure.Meter) {
		keep, abort := c.store.Account(entries)
		return func(*measure.Meter) {
			for i := range entries {
				keep(i)
			}
			abort()
		}
	}).Report(b)
}

// figureHook: what a write costs for the sake of feeds that it does not concern, to
// writing the same rows to a bare go-memdb of the same schema.
func figureHook(b *testing.B) {
	c, entries := figureCluster()
	wake := make(chan struct{}, 1)
	feed := c.store.Subscribe(wake)
	defer feed.Close()
	feed.Follow(cluster.JobKey{Namespace: "default", ID: "another"})
	measure.Compare(measure.PairsOf(b),
		bareWrites(c, entries),
		func() func(*measure.Meter) {
			hooks := make([]func(), len(entries))
			for i, ids := range entries {
				hooks[i] = c.store.Hook(feed, nil, nil, ids...)
			}
			return func(*measure.Meter) {
				for _, hook := range hooks {
					hook()
				}
			}
		},
	).Report(b)
	if len(wake) > 0 {
		b.Fatal("the feed was told of something")
	}
}
