package node

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Bug: the effects that write to the disk formed one line. The start of one allocation waited for
// all writes of a job of a thousand failing allocations, several times.
func TestSharedTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharedTurns(1)
		must.NoError(t, s.take(t.Context(), cluster.JobKey{}))
		var mu sync.Mutex
		var order []cluster.JobID
		wait := func(ctx context.Context, job cluster.JobID) {
			go func() {
				if s.take(ctx, cluster.JobKey{ID: job}) != nil {
					return
				}
				mu.Lock()
				order = append(order, job)
				mu.Unlock()
				s.leave()
			}()
			synctest.Wait()
		}
		ended, end := context.WithCancelCause(t.Context())
		for range 3 {
			wait(t.Context(), "many")
		}
		wait(ended, "ends")
		wait(t.Context(), "few")
		end(errors.New("the node stops"))
		synctest.Wait()
		s.leave()
		synctest.Wait()
		must.Eq(t, []cluster.JobID{"many", "few", "many", "many"}, order)
		must.NoError(t, s.take(t.Context(), cluster.JobKey{}))
	})
}

// The turn of an effect that ends at the same time is not lost.
func TestSharedTurns_endOfTheNode(t *testing.T) {
	t.Parallel()
	for range 1000 {
		s := newSharedTurns(1)
		must.NoError(t, s.take(t.Context(), cluster.JobKey{}))
		ctx, cancel := context.WithCancel(t.Context())
		answered := make(chan error)
		go func() { answered <- s.take(ctx, cluster.JobKey{ID: "a"}) }()
		go cancel()
		s.leave()
		if <-answered == nil {
			s.leave()
		}
		must.NoError(t, s.take(t.Context(), cluster.JobKey{}))
		must.Eq(t, 0, s.free)
	}
}
