package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// releaseInterval is how often the leader checks what time alone ends on unreachable nodes. A claim is
// freed, and a stop is confirmed, so much later at most.
const releaseInterval = 5 * time.Second

// release frees claims of volumes on nodes that the servers cannot reach, and confirms the ends of
// allocations on them, when the nodes must have stopped the allocations. It runs until the term ends.
// It writes nothing while there are none.
func (l *leader) release(ctx context.Context, store *statestore.Store) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	begin := time.Now()
	clocks := func() clocks { now := time.Now(); return clocks{now.Round(0), now.Sub(begin)} }
	r := releaser{own: l.own, logger: l.config.Logger.Named("release"), last: clocks()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		r.step(ctx, store.Snapshot(), clocks())
		timer.Reset(releaseInterval)
	}
}

// releaser is the memory of [leader.release].
type releaser struct {
	own    shims.Proposals
	logger hclog.Logger
	// last is the time of the last step.
	last clocks
}

func (r *releaser) step(ctx context.Context, state *statestore.Snapshot, at clocks) {
	stops := maps.Collect(lifecycle.AwaitedStops(state.DrainView(), state.Nodes(), state.Drains()))
	if len(stops) == 0 && !volumes.AnyExpires(state.WorkView()) {
		r.last = at
		return
	}
	r.last = at.slower(r.last)
	now := r.last.wall
	if changes := volumes.Expired(state.WorkView(), now); len(changes) > 0 {
		m := &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: now, Changes: changes}}
		switch done, _, err := shims.Apply(ctx, r.own, m); {
		case err == nil:
			r.logger.Info("freed claims of volumes on unreachable nodes", "claims", len(changes)-len(done.Refused), "refused", len(done.Refused))
		case ctx.Err() == nil:
			r.logger.Warn("claims of volumes on unreachable nodes could not be freed, and the leader retries", "claims", len(changes), "error", err)
		}
	}
	maps.DeleteFunc(stops, func(_ cluster.NodeID, at time.Time) bool { return now.Before(at) })
	if nodes := slices.Sorted(maps.Keys(stops)); len(nodes) > 0 {
		nodes = nodes[:min(len(nodes), shims.MaxConfirmedNodes)]
		switch _, _, err := shims.Apply(ctx, r.own, &shims.ConfirmStops{At: now, Nodes: nodes}); {
		case err == nil:
			r.logger.Info("confirmed the ends of lost allocations: their nodes have stopped them by themselves", "nodes", len(nodes))
		case ctx.Err() == nil:
			r.logger.Warn("the ends of lost allocations could not be confirmed, and the leader retries", "nodes", len(nodes), "error", err)
		}
	}
}

// clocks is a time by both clocks of the leader.
type clocks struct {
	wall time.Time
	// steady is the monotonic clock.
	steady time.Duration
}

// slower returns the time to waits of which some may have begun before the time last: at most so much later
// as has passed by the monotonic clock. If the clock of the leader is set forward, a claim is not
// freed, and a stop not confirmed, while the node may still run the allocation. A wait may begin while the
// clock is set back, so the time does not return to a clock that is then set forward.
func (c clocks) slower(last clocks) clocks {
	if steady := last.wall.Add(c.steady - last.steady); steady.Before(c.wall) {
		c.wall = steady
	}
	return c
}
