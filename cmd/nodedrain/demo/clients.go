package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// clients are the simulated clients of all nodes.
type clients struct {
	fleet *simclient.Fleet
	// reports waits for the batch in flight.
	reports sync.WaitGroup
	// group takes the reports, and ctx ends the wait for it; start sets both.
	group *server.Group
	ctx   context.Context
	end   context.CancelFunc
	ended sync.WaitGroup
}

// newClients returns clients that do not run yet.
func (r *run) newClients() (*clients, error) {
	c := &clients{end: func() {}}
	options := simclient.Options{
		Snapshot: func() simclient.State { return r.newest().Store().Snapshot().WorkView() },
		Applier:  c,
		Seed:     r.config.Seed,
		MinStart: r.scale.real(simclient.DefaultMinStart),
		MaxStart: r.scale.real(simclient.DefaultMaxStart),
		CopyTime: r.scale.real(simclient.DefaultCopyTime),
	}
	options.Behave = func(a *cluster.Allocation, rng *rand.Rand) simclient.Behaviour {
		b := options.Draw(a, rng)
		b.Run = r.scale.real(r.cluster.RunTime[a.JobKey()])
		return b
	}
	fleet, err := simclient.New(options)
	if err != nil {
		return nil, fmt.Errorf("simulating clients: %w", err)
	}
	c.fleet = fleet
	return c, nil
}

// start starts the clients.
func (c *clients) start(ctx context.Context, g *server.Group) {
	c.group = g
	c.ctx, c.end = context.WithCancel(ctx)
	c.ended.Go(func() { c.fleet.Run(c.ctx) })
}

// stop ends the clients, if they run, and waits for them.
func (c *clients) stop() {
	c.end()
	c.ended.Wait()
	c.reports.Wait()
}

// Report sends reports to the leader. The fleet has one batch in flight, so there is one
// goroutine at most.
func (c *clients) Report(reports []cluster.AllocReport, reply func(applied bool)) (queued bool) {
	c.reports.Go(func() {
		err := c.group.Do(c.ctx, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().ReportAllocs(ctx, reports)
			return err
		})
		reply(err == nil)
	})
	return true
}

// notice reports to the clients which nodes an entry may have changed.
func (c *clients) notice(e witness.Entry) {
	nodes := e.Touched.Nodes
	for _, id := range e.Touched.Allocs {
		if a := e.After.Alloc(id); a != nil {
			nodes = append(nodes, a.NodeID)
		} else if a := e.Before.Alloc(id); a != nil {
			nodes = append(nodes, a.NodeID)
		}
	}
	c.fleet.Changed(nodes...)
}
