package statestore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// blocked is a blocking query in its own goroutine.
type blocked struct {
	runs atomic.Int32
	// done is closed when the query has ended with index and err.
	done  chan struct{}
	index uint64
	err   error
}

// block starts a query and returns once it waits or has ended.
func block(ctx context.Context, w *world, min uint64, query func(*statestore.Snapshot) uint64) *blocked {
	b := &blocked{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.index, b.err = w.store.Blocking(ctx, min, func(s *statestore.Snapshot) (uint64, error) {
			b.runs.Add(1)
			return query(s), nil
		})
	}()
	synctest.Wait()
	return b
}

// waits reports whether the query has not ended.
func (b *blocked) waits() bool {
	synctest.Wait()
	select {
	case <-b.done:
		return false
	default:
		return true
	}
}

func nodesIndex(s *statestore.Snapshot) uint64 { return s.TableIndex(statestore.TableNodes) }

func TestABlockingQueryEndsOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes("n1")
		b := block(t.Context(), w, 1, nodesIndex)
		must.True(t, b.waits())

		w.job(serviceJob("web", 1))
		must.True(t, b.waits())
		must.Eq(t, 1, b.runs.Load(), must.Sprint("a change of another table does not wake it"))

		w.nodes("n2")
		must.False(t, b.waits())
		must.NoError(t, b.err)
		must.Eq(t, 3, b.index)
		must.Eq(t, 2, b.runs.Load())
	})
}

func TestABlockingQueryWaitsForItsRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes("n1", "n2")
		web := w.job(serviceJob("web", 1))
		w.place(web, "n1", nil, "w0", "w1")
		w.place(web, "n2", nil, "w2")
		modified := func(s *statestore.Snapshot) uint64 {
			if n := s.Node("n1"); n != nil {
				return n.ModifyIndex
			}
			return 0
		}
		b := block(t.Context(), w, 1, modified)
		w.status("n2", cluster.NodeDown)
		w.status("n2", cluster.NodeReady)
		must.True(t, b.waits())
		must.Eq(t, 1, b.runs.Load())
		w.status("n1", cluster.NodeDown)
		must.False(t, b.waits())
		must.NoError(t, b.err)
		must.Eq(t, w.index, b.index)

		lists := block(t.Context(), w, w.index, func(s *statestore.Snapshot) uint64 {
			newest := uint64(0)
			for a := range s.AllocsByNode("n2") {
				newest = max(newest, a.ModifyIndex)
			}
			return newest
		})
		w.report(cluster.ClientFailed, "w1")
		must.True(t, lists.waits())
		must.Eq(t, 1, lists.runs.Load())
		w.report(cluster.ClientFailed, "w2")
		must.False(t, lists.waits())
		must.Eq(t, w.index, lists.index)
	})
}

func TestABlockingQueryWithoutAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes("n1", "n2")
		must.False(t, block(t.Context(), w, 0, func(*statestore.Snapshot) uint64 { return 0 }).waits())
		ready := block(t.Context(), w, 1, nodesIndex)
		must.False(t, ready.waits())
		must.Eq(t, 2, ready.index)

		_, err := w.store.Blocking(t.Context(), 9, func(*statestore.Snapshot) (uint64, error) {
			return 0, errors.New("an error of the query")
		})
		must.EqError(t, err, "an error of the query")
	})
}

func TestABlockingQueryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes("n1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		b := block(ctx, w, 1, nodesIndex)
		must.True(t, b.waits())
		time.Sleep(time.Minute)
		must.False(t, b.waits())
		must.ErrorIs(t, b.err, context.DeadlineExceeded)
		must.Eq(t, 1, b.index, must.Sprint("the index of the last result"))
	})
}

// On an abandoned store a query ends instead of running again and again until its context ends.
func TestABlockingQueryEndsOnAnAbandonedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.nodes("n1")
		waiting := block(t.Context(), w, 1, nodesIndex)
		w.store.Abandon()
		must.False(t, waiting.waits())
		must.ErrorIs(t, waiting.err, statestore.ErrAbandoned)
		must.Eq(t, 1, waiting.runs.Load())

		late := block(t.Context(), w, 1, nodesIndex)
		must.False(t, late.waits())
		must.ErrorIs(t, late.err, statestore.ErrAbandoned)
		must.Eq(t, 1, late.index)
		must.Eq(t, 1, late.runs.Load())
	})
}
