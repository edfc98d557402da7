package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// The files of a directory.
const (
	tokensFile = "tokens"
	tokenFile  = "token"
	serverLog  = "server.log"
	clientsLog = "clients.log"
	runFolder  = "run"
)

const (
	// pollInterval is the time between two reads of the state.
	pollInterval = 50 * time.Millisecond
	// startWait is how long the nodes, and then the jobs, may take to run.
	startWait = 30 * time.Second
	// forceWait bounds the end of tasks that get no grace.
	forceWait = 15 * time.Second
)

// Cluster is a running cluster. Build it with [Start] and end it with [Cluster.Stop].
type Cluster struct {
	config Config
	dir    *dir
	limits []string
	logs   []*os.File
	logger *slog.Logger // of the clients
	server *agent.Agent // or nil
	// nodeToken is the token of the clients.
	nodeToken access.Secret
	nodes     []*node.Node

	// end ends the clients. Each sends to failed when it has ended.
	end     context.CancelFunc
	running sync.WaitGroup
	failed  chan error
}

// Start ends what a killed process has left in the directory, and starts a cluster. It returns when the
// example jobs run.
func Start(ctx context.Context, c Config) (*Cluster, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := openDir(c.Dir)
	if err != nil {
		return nil, err
	}
	one := &Cluster{config: c, dir: d, end: func() {}, failed: make(chan error, c.Nodes), logger: slog.New(slog.DiscardHandler)}
	if err := checkAddress(c.Addr); err != nil {
		return nil, errors.Join(err, d.leave())
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
	if err := c.destroyAll(ctx, true); err != nil {
		return fmt.Errorf("ending the rest of an earlier process: %w", err)
	}
	if err := c.startServer(ctx); err != nil {
		return err
	}
	if err := c.startClients(ctx); err != nil {
		return err
	}
	if err := c.awaitNodes(ctx); err != nil {
		return err
	}
	jobs, err := c.exampleJobs()
	if err != nil {
		return err
	}
	for _, j := range jobs {
		if _, err := c.server.Backend().Writer.RegisterJob(ctx, j, cluster.JobRegistration{}); err != nil {
			return fmt.Errorf("registering job %s: %w", j.ID, err)
		}
	}
	return c.await(ctx, "the example jobs do not run", func() (left string) {
		if running, all := len(c.tasks()), wanted(jobs); running != all {
			left = fmt.Sprintf("the example jobs, %d of %s run", running, cli.Count(all, "task"))
		}
		return left
	})
}

// startServer creates tokens and starts the server.
func (c *Cluster) startServer(ctx context.Context) error {
	secret, token, err := access.Generate("dev", access.Write)
	if err != nil {
		return err
	}
	nodeSecret, nodeToken, err := access.Generate("nodes", access.Node)
	if err != nil {
		return err
	}
	c.nodeToken = nodeSecret
	for name, text := range map[string]string{tokensFile: token.Line() + "\n" + nodeToken.Line(), tokenFile: secret.Reveal()} {
		// A file of an earlier process keeps its mode: only a new file certainly has 0600.
		if err := os.Remove(c.dir.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(c.dir.file(name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	log, err := c.openLog(serverLog)
	if err != nil {
		return err
	}
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: log})
	tokens, err := access.Open(c.dir.file(tokensFile), logger.Named("access"))
	if err != nil {
		return err
	}
	settings := agent.Config{Logger: logger, HTTPAddr: c.config.Addr, Access: tokens}.InMemory()
	settings.API.Build, settings.API.Region = c.config.Version, agent.DefaultRegion
	if c.server, err = agent.New(settings); err != nil {
		return err
	}
	defer c.waiting(func() string { return "the server" })()
	return c.server.Ready(ctx)
}

// openLog opens an empty log. Stop closes it.
func (c *Cluster) openLog(name string) (*os.File, error) {
	log, err := os.OpenFile(c.dir.file(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		c.logs = append(c.logs, log)
	}
	return log, err
}

// await reads the state until nothing is left of what it waits for. left may be called by another goroutine, too.
func (c *Cluster) await(ctx context.Context, otherwise string, left func() string) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	defer c.waiting(left)()
	ticks := time.NewTicker(pollInterval)
	defer ticks.Stop()
	for left() != "" {
		select {
		case <-ticks.C:
		case err := <-c.failed:
			return fmt.Errorf("%s: a client has ended: %w", otherwise, err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
		}
	}
	return nil
}

// waiting prints what the cluster waits for until the caller calls end.
func (c *Cluster) waiting(what func() string) (end func()) {
	return cli.StartWaiting(func(line string) { fmt.Fprintln(c.config.Progress, line) }, what).End
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

// Stop ends the cluster and removes its directory. Tasks get their kill timeout until the context ends,
// and no time after that.
func (c *Cluster) Stop(ctx context.Context) error {
	errs := []error{c.endClients()}
	if c.server != nil {
		end := c.waiting(func() string { return "the end of the server" })
		errs = append(errs, c.server.Stop())
		end()
	}
	left := c.destroyAll(ctx, false)
	if left != nil && ctx.Err() != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceWait)
		defer cancel()
		left = c.destroyAll(hard, true)
	}
	errs = append(errs, left)
	for _, log := range c.logs {
		errs = append(errs, log.Close())
	}
	if left != nil {
		errs = append(errs, c.dir.close()) // the next start continues
	} else {
		errs = append(errs, c.dir.remove())
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
