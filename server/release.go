package server

import (
	"context"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// releaseInterval is how often the leader checks which claims of volumes are over. A claim on an
// unreachable node is freed so much later at most.
const releaseInterval = 5 * time.Second

// releaseClaims frees claims of volumes on nodes that the servers cannot reach, when the nodes
// must have stopped the allocations, until the term ends. It writes nothing while there are none.
func (l *leader) releaseClaims(ctx context.Context, store *statestore.Store) {
	logger := l.config.Logger.Named("volumes")
	timer := time.NewTimer(0)
	defer timer.Stop()
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := time.Now()
		if !volumes.AnyExpires(store.Snapshot().WorkView()) {
			began = now
		}
		now = slower(began, now, now.Sub(began))
		if changes := volumes.Expired(store.Snapshot().WorkView(), now); len(changes) > 0 {
			m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: now, Changes: changes}}
			switch done, _, err := shims.Apply(ctx, l.own, m); {
			case err == nil:
				logger.Info("freed claims of volumes on unreachable nodes", "claims", len(changes)-len(done.Refused), "refused", len(done.Refused))
			case ctx.Err() == nil:
				logger.Warn("claims of volumes on unreachable nodes could not be freed, and the leader retries", "claims", len(changes), "error", err)
			}
		}
		timer.Reset(releaseInterval)
	}
}

// slower returns the time to a claim that may have waited since began: now, but not later than the time
// that has passed by the monotonic clock. If the clock of the leader is set forward, a claim is not
// freed while its node may still write.
func slower(began, now time.Time, passed time.Duration) time.Time {
	began, now = began.Round(0), now.Round(0) // compared as clocks show them
	if steady := began.Add(passed); steady.Before(now) {
		return steady
	}
	return now
}
