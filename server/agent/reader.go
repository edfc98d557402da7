package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// reader reads the state of a server for the API.
type reader struct {
	server   *server.Server
	versions *versions
}

var (
	_ httpapi.Reader = reader{}
	_ httpapi.State  = (*statestore.Snapshot)(nil)
)

// Read calls the query until the index that the query returns is above minIndex. When a restored
// snapshot replaces the state, Read continues on the new state.
func (r reader) Read(ctx context.Context, minIndex uint64, query func(httpapi.State) (uint64, error)) error {
	for {
		_, err := r.server.Store().Blocking(ctx, minIndex, func(state *statestore.Snapshot) (uint64, error) {
			return query(state)
		})
		if !errors.Is(err, statestore.ErrAbandoned) {
			return err
		}
	}
}

// CaughtUp waits until the state contains every write of earlier leaders, and a new cluster has its
// version.
func (r reader) CaughtUp(ctx context.Context) error {
	if err := r.server.CaughtUp(ctx); err != nil {
		return server.Classify(err)
	}
	return r.versions.awaitFirst(ctx)
}

// planner previews registrations for the API.
type planner struct {
	server  *server.Server
	drainer drainer.NodeDrainerConfig
}

var _ httpapi.Planner = planner{}

// PlanJob returns the plan of a registration, and the state that it was computed from.
func (p planner) PlanJob(ctx context.Context, j *cluster.Job, most int) (*cluster.Plan, httpapi.State, error) {
	if err := p.server.Consistent(ctx); err != nil {
		return nil, nil, server.Classify(err)
	}
	state := p.server.Store().Snapshot()
	return scheduler.Preview(state.WorkView(), j, time.Now(), most), state, nil
}

// PlanDrains returns what drains would do.
func (p planner) PlanDrains(ctx context.Context, q httpapi.DrainQuestion, more func(done int) bool) (*drainplan.Answer, error) {
	a, err := plan.Answer(ctx, p.server.Store(), plan.Question{
		Nodes: q.Nodes, Spec: q.Spec, OneByOne: q.OneByOne, At: time.Now().UTC(),
	}, plan.Settings{Drainer: p.drainer}, q.Plays, more)
	if errors.Is(err, statestore.ErrNodeNotFound) {
		err = fmt.Errorf("%w: %w", httpapi.ErrNotFound, err)
	}
	return a, err
}

// GivenUp returns the allocations whose slots stay empty.
func (p planner) GivenUp(k cluster.JobKey) []cluster.AllocID {
	return scheduler.GivenUp(p.server.Store().Snapshot().WorkView(), k)
}

// Rollouts returns the rollouts of a job that have not ended.
func (p planner) Rollouts(k cluster.JobKey) []cluster.GroupRollout {
	return scheduler.Rollouts(p.server.Store().Snapshot().WorkView(), k)
}

// Consistent waits until the state contains every acknowledged write.
func (r reader) Consistent(ctx context.Context) error {
	return server.Classify(r.server.Consistent(ctx))
}
