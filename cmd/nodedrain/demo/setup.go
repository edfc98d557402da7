package demo

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// cluster loads or generates the cluster.
func (c *Config) cluster() (*Cluster, error) {
	if c.Dir == "" {
		return Generate(c.Nodes, c.Deadline, c.Seed), nil
	}
	trace, err := openb.Load(c.Dir)
	if err != nil {
		return nil, err
	}
	if len(trace.Machines) < 2 {
		return nil, fmt.Errorf("%s lists %d machines, and a drain needs at least 2", c.Dir, len(trace.Machines))
	}
	return Trace(trace, c.Dir), nil
}

// register registers nodes, then jobs.
func (r *run) register(ctx context.Context) error {
	for _, n := range r.cluster.Nodes {
		err := r.group.Do(ctx, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterNode(ctx, n)
			return err
		})
		if err != nil {
			return fmt.Errorf("registering %s: %w", n.Name, err)
		}
	}
	for _, j := range r.cluster.Jobs {
		scaled := r.scale.job(j)
		err := r.group.Do(ctx, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterJob(ctx, scaled, cluster.JobRegistration{})
			return err
		})
		if err != nil {
			return fmt.Errorf("registering job %s: %w", j.ID, err)
		}
	}
	return nil
}

// settle waits until every allocation that fits runs, and every service allocation is
// healthy.
func (r *run) settle(ctx context.Context) error {
	for shown := time.Now(); ; {
		if leader := r.group.Leader(); leader != nil {
			snap := leader.Store().Snapshot()
			if settled(snap, len(r.cluster.Jobs)) {
				r.noteUnplaced(snap)
				return nil
			}
			if time.Since(shown) >= quiet {
				shown = time.Now()
				r.event("%s", starting(snap))
			}
		}
		if !cli.Pause(ctx, lookInterval) {
			return fmt.Errorf("waiting for the cluster to run: %w", context.Cause(ctx))
		}
	}
}

// settled reports whether all jobs are registered, no evaluation is pending, every live
// allocation runs, and every live service allocation is healthy.
func settled(s *statestore.Snapshot, jobs int) bool {
	for range s.WorkView().PendingEvals() {
		return false
	}
	for range s.Jobs() {
		jobs--
	}
	if jobs > 0 {
		return false
	}
	for a := range s.Allocs() {
		if a.Terminal() {
			continue
		}
		if a.ClientStatus != cluster.ClientRunning || a.JobType() == cluster.JobService && !a.JudgedHealthy() {
			return false
		}
	}
	return true
}

// starting says how many allocations the cluster has placed and started.
func starting(s *statestore.Snapshot) string {
	placed, running, healthy := 0, 0, 0
	for a := range s.Allocs() {
		placed++
		if a.ClientStatus == cluster.ClientRunning {
			running++
		}
		if a.JudgedHealthy() {
			healthy++
		}
	}
	return fmt.Sprintf("the cluster starts: %d allocations placed, %d running, %d of these healthy", placed, running, healthy)
}

// noteUnplaced notes, by group, the allocations that no node has capacity for.
func (r *run) noteUnplaced(s *statestore.Snapshot) {
	c := &r.summary.Cluster
	c.Wanted = r.cluster.Allocations()
	c.Placed, c.Unplaced = c.Wanted, []UnplacedSummary{}
	for e := range s.WorkView().BlockedEvals() {
		for _, name := range slices.Sorted(maps.Keys(e.Queued)) {
			group := cluster.GroupKey{Job: e.JobKey(), Name: name}
			c.Unplaced = append(c.Unplaced, UnplacedSummary{Group: group.String(), Count: e.Queued[name]})
			if !r.cluster.everyNode(e.JobKey()) {
				c.Placed -= e.Queued[name]
			}
		}
	}
	slices.SortStableFunc(c.Unplaced, func(a, b UnplacedSummary) int { return cmp.Compare(a.Group, b.Group) })
}
