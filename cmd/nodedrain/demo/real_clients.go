package demo

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/dev"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// realStopWait bounds the end of real clients and their tasks.
const realStopWait = 30 * time.Second

// realClients run the tasks of all nodes as processes.
type realClients struct {
	nodes *dev.Nodes
	state func() *statestore.Snapshot
}

// openRealClients takes the directory of this user's demonstration, and ends what a killed one has left
// in it.
func (r *run) openRealClients(ctx context.Context) (*realClients, error) {
	nodes, err := dev.OpenNodes(ctx, dev.Config{
		Dir:   filepath.Join(os.TempDir(), "nodedrain-demo-"+strconv.Itoa(os.Geteuid())),
		Nodes: r.config.Nodes, LogKeeper: r.config.LogKeeper, Command: "nodedrain demo -real", Version: r.config.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("tasks cannot be real: %w", err)
	}
	r.cluster.runAs(nodes.User())
	for _, limit := range nodes.Limits() {
		r.event("%s", limit)
	}
	return &realClients{nodes: nodes, state: func() *statestore.Snapshot { return r.newest().Store().Snapshot() }}, nil
}

// notice implements [fleet]: real clients look at the state.
func (*realClients) notice(witness.Entry) {}

// start implements [fleet].
func (c *realClients) start(ctx context.Context, g *server.Group) error {
	// Drivers need a newer version than the first of a cluster.
	err := g.Do(ctx, func(ctx context.Context, leader *server.Server) error {
		_, err := leader.Requests().RaiseVersion(ctx, cluster.MaxVersion)
		return err
	})
	if err != nil {
		return fmt.Errorf("raising the cluster version: %w", err)
	}
	err = c.nodes.Begin(ctx, func(o *node.Options) { o.Servers = &realServers{group: g, state: c.state} })
	if err == nil {
		err = c.nodes.AwaitReady(ctx, c.state)
	}
	if err != nil {
		return fmt.Errorf("tasks cannot be real: %w", err)
	}
	return nil
}

// stop implements [fleet]. The tasks that are left get no grace: no user needs them.
func (c *realClients) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), realStopWait)
	defer cancel()
	if err := c.nodes.Kill(ctx); err != nil {
		return fmt.Errorf("ending real tasks: %w", err)
	}
	return nil
}
