package server

import (
	"context"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// collect deletes ended work until the term ends.
func (l *leader) collect(ctx context.Context, store *statestore.Store) {
	logger := l.config.Logger.Named("collect")
	collector, err := collect.NewCollector(l.config.Collect, time.Now())
	if err != nil { // New has refused it
		logger.Error("ended work is not collected", "error", err)
		return
	}
	defer l.held.Store(nil)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var deleted cluster.Collected // in this round
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		request, wakeAt := collector.Step(store.Snapshot().WorkView(), time.Now())
		if held := collector.Held(); held != nil {
			l.held.Store(held)
		}
		switch {
		case request != nil:
			done, err := collectRows(ctx, l.own, request)
			if err != nil && ctx.Err() == nil {
				logger.Warn("an entry that deletes ended rows failed, and the next round retries it", "rows", request.Len(), "error", err)
			}
			deleted = deleted.Plus(done)
		case deleted.Total() > 0:
			logger.Info("collected ended work", "allocs", deleted.Allocs, "evals", deleted.Evals, "jobs", deleted.Jobs)
			deleted = cluster.Collected{}
		}
		timer.Reset(min(time.Until(wakeAt), clockCheck))
	}
}

// clockCheck is how often a waiting loop reads the wall clock: timers are monotonic, the times in
// the state are not.
const clockCheck = 30 * time.Second

// collectRows writes one request to collect ended work.
func collectRows(ctx context.Context, p shims.Proposals, r *collect.Request) (cluster.Collected, error) {
	response, _, err := shims.Apply(ctx, p, &shims.Collect{At: time.Now(), Request: *r})
	d := response.Deleted
	return cluster.Collected{Allocs: len(d.Allocs), Evals: len(d.Evals), Jobs: len(d.Jobs)}, err
}

// HeldRows counts the rows of the state as the last round that collects ended work found them. It is nil on
// a server that does not lead, and before the first round of a term.
func (s *Server) HeldRows() *collect.Held { return s.leader.held.Load() }
