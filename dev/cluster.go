package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/access"
	"github.com/seed-f9cf0b39/nodedrain/agent"
	"github.com/seed-f9cf0b39/nodedrain/client/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

const (
	rawExec    = "raw_exec"
	nodePrefix = "node-"
	// The files of a directory.
	tokensFile = "tokens"
	tokenFile  = "token"
	serverLog  = "server.log"
	clientsLog = "clients.log"
	runFolder  = "run"
)

const (
	// look is the time between two looks at the state.
	look = 50 * time.Millisecond
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
	files  []*os.File
	logger *slog.Logger
	server *agent.Dev
	// registers is the token of the clients.
	registers access.Secret
	nodes     []*node.Node

	// end ends the clients. Each posts to failed when it has ended.
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
	if err := c.destroyNodes(ctx, true); err != nil {
		return fmt.Errorf("ending what another process has left: %w", err)
	}
	if err := c.chooseLimits(); err != nil {
		return err
	}
	if err := c.openLogs(); err != nil {
		return err
	}
	if err := c.startServer(ctx); err != nil {
		return err
	}
	if err := c.startNodes(ctx); err != nil {
		return err
	}
	jobs, err := exampleJobs(c.config.User)
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

// chooseLimits notes what this machine does not allow.
func (c *Cluster) chooseLimits() error {
	groups, err := cgroup.Find("/")
	if err != nil {
		return err
	}
	if !groups.Usable() {
		c.limits = append(c.limits, "This user can make no control groups here: tasks have no limits of CPU and memory, and only their driver can kill them.")
	}
	if os.Geteuid() != 0 {
		c.limits = append(c.limits, "This user is not root: tasks run as this user.")
		return nil
	}
	if closed := stranger(c.dir.path); c.config.User != "" && closed != "" {
		c.limits = append(c.limits, fmt.Sprintf("Tasks run as root: user %s cannot pass the folder %s.", c.config.User, closed))
		c.config.User = ""
	} else if c.config.User == "" {
		c.limits = append(c.limits, fmt.Sprintf("Tasks run as root: this machine has no user with the id %s.", DefaultUser))
	}
	return nil
}

// openLogs opens the logs of server and clients.
func (c *Cluster) openLogs() error {
	for _, name := range []string{serverLog, clientsLog} {
		f, err := os.OpenFile(c.dir.file(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		c.files = append(c.files, f)
	}
	c.logger = slog.New(slog.NewTextHandler(c.files[1], nil))
	return nil
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
		// A file of an earlier process keeps its mode: only a new one has 0600 surely.
		if err := os.Remove(c.dir.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(c.dir.file(name), []byte(text+"\n"), 0o600); err != nil {
			return err
		}
	}
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Info, Output: c.files[0]})
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

// startNodes starts the clients, and waits until the servers know them and their drivers.
func (c *Cluster) startNodes(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	for i := range c.config.Nodes {
		o := c.options(nodePrefix + strconv.Itoa(i+1))
		o.Config.Servers = config.Servers{Addresses: []string{c.URL()}, Token: c.registers.Reveal()}
		n, err := node.Open(ctx, o)
		if err != nil {
			return fmt.Errorf("starting %s: %w", o.Config.Name, err)
		}
		c.nodes = append(c.nodes, n)
		c.running.Go(func() { c.failed <- n.Run(life) })
	}
	return c.await(ctx, "the nodes are not ready", func() bool {
		state := c.server.Server().Store().Snapshot()
		for _, n := range c.nodes {
			row := state.Node(n.ID())
			if row == nil || row.Drivers[rawExec] == nil || !row.Drivers[rawExec].Healthy {
				return false
			}
		}
		return true
	})
}

// options returns what a node is opened with, except its servers.
func (c *Cluster) options(name string) node.Options {
	run := c.dir.file(runFolder + "/" + name)
	if len(run) > config.MaxRunDir {
		run = "" // the client chooses one
	}
	return node.Options{
		Config: &config.Config{
			Name: name, Datacenter: config.DefaultDatacenter, Region: config.DefaultRegion, Pool: cluster.DefaultNodePool, Class: "dev",
			DataDir: c.dir.file(name), RunDir: run,
			Resources: cluster.Resources{CPU: 4000, MemoryMB: 4096, DiskMB: 10 << 10},
			Limits:    config.Limits{MaxKillTimeout: time.Minute, DriverCalls: config.DefaultDriverCalls},
			Plugins:   map[string]config.Plugin{rawExec: {Name: rawExec, Enabled: true}},
		},
		Program: c.config.Program, LogKeeper: c.config.LogKeeper, Version: c.config.Version,
		GroupsOptional: true, Logger: c.logger.With("name", name),
	}
}

// await looks at the state until a condition holds.
func (c *Cluster) await(ctx context.Context, otherwise string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-ticks.C:
		case err := <-c.failed:
			return fmt.Errorf("%s: a client has ended: %w", otherwise, err)
		case <-ctx.Done():
			return fmt.Errorf("%s; the logs %s and %s say more: %w", otherwise, c.dir.file(serverLog), c.dir.file(clientsLog), context.Cause(ctx))
		}
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
	c.end()
	c.running.Wait()
	var errs []error
	for _, n := range c.nodes {
		errs = append(errs, n.Close())
	}
	if c.server != nil {
		errs = append(errs, c.server.Stop())
	}
	err := c.destroyNodes(ctx, false)
	if err != nil && ctx.Err() != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceWait)
		defer cancel()
		err = c.destroyNodes(hard, true)
	}
	errs = append(errs, err)
	for _, f := range c.files {
		errs = append(errs, f.Close())
	}
	if err != nil {
		return errors.Join(append(errs, c.dir.close())...) // the next start goes on
	}
	return errors.Join(append(errs, c.dir.remove())...)
}

// destroyNodes destroys all nodes that have a directory.
func (c *Cluster) destroyNodes(ctx context.Context, force bool) error {
	names, err := c.dir.nodes()
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() { errs[i] = node.Destroy(ctx, c.options(name), force) })
	}
	running.Wait()
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
