package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// Cluster is a running cluster. Build it with [Start] and end it with [Cluster.Stop].
type Cluster struct {
	*Nodes
	logs   *os.File // of the server, or nil
	server *agent.Dev
	// registers is the token of the clients.
	registers access.Secret
}

// Start ends what a killed process has left in the directory, and starts a cluster. It returns when the
// example jobs run.
func Start(ctx context.Context, c Config) (*Cluster, error) {
	nodes, err := newNodes(c)
	if err != nil {
		return nil, err
	}
	one := &Cluster{Nodes: nodes}
	if err := checkAddress(one.config.Addr); err != nil {
		return nil, errors.Join(err, one.dir.leave())
	}
	if err := one.begin(ctx); err != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceWait)
		defer cancel()
		return nil, errors.Join(err, one.Stop(stopped))
	}
	return one, nil
}

// begin starts everything.
func (c *Cluster) begin(ctx context.Context) error {
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.startServer(ctx); err != nil {
		return err
	}
	err := c.Begin(ctx, func(o *node.Options) {
		o.Config.Servers = config.Servers{Addresses: []string{c.URL()}, Token: c.registers.Reveal()}
	})
	if err != nil {
		return err
	}
	if err := c.AwaitReady(ctx, c.server.Server().Store().Snapshot); err != nil {
		return err
	}
	jobs, err := exampleJobs(c.User())
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if _, err := c.server.Backend().Writer.RegisterJob(ctx, j, nil); err != nil {
			return fmt.Errorf("registering job %s: %w", j.ID, err)
		}
	}
	return c.await(ctx, "the example jobs do not run", func() bool { return len(c.tasks()) == wanted(jobs) })
}

// startServer makes fresh tokens and starts the server.
func (c *Cluster) startServer(ctx context.Context) error {
	secret, token, err := access.Generate("dev", access.Write)
	if err != nil {
		return err
	}
	registers, nodeToken, err := access.Generate("nodes", access.Node)
	if err != nil {
		return err
	}
	c.registers = registers
	for name, text := range map[string]string{tokensFile: token.Line() + "\n" + nodeToken.Line(), tokenFile: secret.Reveal()} {
		// A file of an earlier process keeps its mode: only a new file certainly has 0600.
		if err := os.Remove(c.dir.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(c.dir.file(name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	logs, err := c.openLog(serverLog)
	if err != nil {
		return err
	}
	c.logs = logs
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: logs})
	tokens, err := access.Open(c.dir.file(tokensFile), logger.Named("access"))
	if err != nil {
		return err
	}
	settings := agent.Config{Logger: logger, HTTPAddr: c.config.Addr, ServerAddr: "127.0.0.1:0", Access: tokens}
	settings.API.Build, settings.API.Region = c.config.Version, agent.DefaultRegion
	c.server, err = agent.NewDev(ctx, agent.DevConfig{Agent: settings, Clients: -1, NoJobs: true})
	if err != nil {
		return err
	}
	return nil
}

// Wait returns when the context ends, or when a part of the cluster has failed.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-c.server.Failed():
		return fmt.Errorf("the server has failed: %w", c.server.Err())
	case err := <-c.failed:
		return fmt.Errorf("a client has ended: %w", err)
	}
}

// Stop ends the cluster and removes its directory. Tasks get their grace until the context ends, and
// none after that.
func (c *Cluster) Stop(ctx context.Context) error {
	errs := []error{c.endClients()}
	if c.server != nil {
		errs = append(errs, c.server.Stop())
	}
	errs = append(errs, c.Nodes.Stop(ctx))
	if c.logs != nil {
		errs = append(errs, c.logs.Close())
	}
	return errors.Join(errs...)
}

// checkAddress refuses an address at which a process listens.
func checkAddress(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("%w%s; end that process, or give this one another -addr", err, listening(address))
	}
	return listener.Close()
}
