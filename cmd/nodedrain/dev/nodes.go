package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
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

// Nodes are clients that run tasks as processes, in one directory. Build them with [OpenNodes] and end
// them with [Nodes.Stop].
type Nodes struct {
	config Config
	dir    *dir
	limits []string
	log    *os.File // of the clients, or nil
	logger *slog.Logger
	nodes  []*node.Node

	// end ends the clients. Each posts to failed when it has ended.
	end     context.CancelFunc
	running sync.WaitGroup
	failed  chan error
}

// OpenNodes takes a directory, and ends what a killed process has left in it. It starts no client. Addr
// of the configuration is not used.
func OpenNodes(ctx context.Context, c Config) (*Nodes, error) {
	n, err := newNodes(c)
	if err != nil {
		return nil, err
	}
	if err := n.prepare(ctx); err != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceWait)
		defer cancel()
		return nil, errors.Join(err, n.Stop(stopped))
	}
	return n, nil
}

// newNodes takes a directory.
func newNodes(c Config) (*Nodes, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	d, err := openDir(c.Dir, c.Command)
	if err != nil {
		return nil, err
	}
	return &Nodes{config: c, dir: d, end: func() {}, failed: make(chan error, c.Nodes), logger: slog.New(slog.DiscardHandler)}, nil
}

// prepare makes the directory ready for clients.
func (n *Nodes) prepare(ctx context.Context) (err error) {
	if err := n.destroyAll(ctx, true); err != nil {
		return fmt.Errorf("ending what another process has left: %w", err)
	}
	if err := n.chooseLimits(); err != nil {
		return err
	}
	if n.log, err = n.openLog(clientsLog); err != nil {
		return err
	}
	n.logger = slog.New(slog.NewTextHandler(n.log, nil))
	return nil
}

// chooseLimits notes what this machine does not allow.
func (n *Nodes) chooseLimits() error {
	groups, err := cgroup.Find("/")
	if err != nil {
		return err
	}
	if !groups.Usable() {
		n.limits = append(n.limits, "This user cannot create control groups here: tasks have no limits of CPU and memory, and only their driver can kill them.")
	}
	if os.Geteuid() != 0 {
		n.limits = append(n.limits, "This user is not root: tasks run as this user.")
		return nil
	}
	if closed := stranger(n.dir.path); n.config.User != "" && closed != "" {
		n.limits = append(n.limits, fmt.Sprintf("Tasks run as root: user %s cannot pass the folder %s.", n.config.User, closed))
		n.config.User = ""
	} else if n.config.User == "" {
		n.limits = append(n.limits, fmt.Sprintf("Tasks run as root: this machine has no user with the id %s.", DefaultUser))
	}
	return nil
}

// openLog opens an empty log.
func (n *Nodes) openLog(name string) (*os.File, error) {
	return os.OpenFile(n.dir.file(name), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
}

// User is the user of example tasks, or empty if they run as the user of this process.
func (n *Nodes) User() string { return n.config.User }

// Begin starts the clients. The function says which servers a client has.
func (n *Nodes) Begin(ctx context.Context, servers func(*node.Options)) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	n.end = end
	for i := range n.config.Nodes {
		o := n.options(NodeName(i))
		servers(&o)
		one, err := node.Open(ctx, o)
		if err != nil {
			return fmt.Errorf("starting %s: %w", o.Config.Name, err)
		}
		n.nodes = append(n.nodes, one)
		n.running.Go(func() { n.failed <- one.Run(life) })
	}
	return nil
}

// NodeName is the name of a node by its index.
func NodeName(i int) string { return nodePrefix + strconv.Itoa(i+1) }

// AwaitReady waits until the servers know the nodes, and their driver is healthy. The error says what
// the driver lacks.
func (n *Nodes) AwaitReady(ctx context.Context, state func() *statestore.Snapshot) error {
	lacks := ""
	err := n.await(ctx, "the nodes are not ready", func() bool {
		s := state()
		for _, one := range n.nodes {
			row := s.Node(one.ID())
			if row == nil || row.Drivers[rawExec] == nil {
				return false
			}
			if d := row.Drivers[rawExec]; !d.Healthy {
				lacks = d.HealthDescription
				return false
			}
		}
		return true
	})
	if err != nil && lacks != "" {
		return fmt.Errorf("%s cannot run here: %s: %w", rawExec, lacks, err)
	}
	return err
}

// options returns what a node is opened with, except its servers.
func (n *Nodes) options(name string) node.Options {
	run := n.dir.file(runFolder + "/" + name)
	if len(run) > config.MaxRunDir {
		run = "" // the client chooses one
	}
	return node.Options{
		Config: &config.Config{
			Name: name, Datacenter: config.DefaultDatacenter, Region: config.DefaultRegion, Pool: cluster.DefaultNodePool, Class: "dev",
			DataDir: n.dir.file(name), RunDir: run,
			Resources: cluster.Resources{CPU: 4000, MemoryMB: 4096, DiskMB: 10 << 10},
			Limits:    config.Limits{MaxKillTimeout: time.Minute, MaxAllocs: config.DefaultMaxAllocs, DriverCalls: config.DefaultDriverCalls},
			Plugins:   map[string]config.Plugin{rawExec: {Name: rawExec, Enabled: true}},
		},
		Program: n.config.Program, LogKeeper: n.config.LogKeeper, Version: n.config.Version,
		GroupsOptional: true, Logger: n.logger.With("name", name),
	}
}

// await looks at the state until a condition holds.
func (n *Nodes) await(ctx context.Context, otherwise string, holds func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	ticks := time.NewTicker(look)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-ticks.C:
		case err := <-n.failed:
			return fmt.Errorf("%s: a client has ended: %w", otherwise, err)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", otherwise, context.Cause(ctx))
		}
	}
	return nil
}

// endClients ends the clients. Their tasks run on.
func (n *Nodes) endClients() error {
	n.end()
	n.running.Wait()
	var errs []error
	for _, one := range n.nodes {
		errs = append(errs, one.Close())
	}
	n.nodes = nil
	return errors.Join(errs...)
}

// Stop ends clients and tasks, and removes the directory. Tasks get their grace until the context ends,
// and none after that.
func (n *Nodes) Stop(ctx context.Context) error {
	err := n.endClients()
	left := n.destroyAll(ctx, false)
	if left != nil && ctx.Err() != nil {
		hard, cancel := context.WithTimeout(context.WithoutCancel(ctx), forceWait)
		defer cancel()
		left = n.destroyAll(hard, true)
	}
	return errors.Join(err, n.release(left))
}

// Kill does the same as Stop, and gives tasks no grace.
func (n *Nodes) Kill(ctx context.Context) error {
	err := n.endClients()
	return errors.Join(err, n.release(n.destroyAll(ctx, true)))
}

// release removes the directory if nothing is left in it, and releases it.
func (n *Nodes) release(left error) error {
	errs := []error{left}
	if n.log != nil {
		errs = append(errs, n.log.Close())
	}
	if left != nil {
		return errors.Join(append(errs, n.dir.close())...) // the next start goes on
	}
	return errors.Join(append(errs, n.dir.remove())...)
}

// destroyAll destroys all nodes that have a directory.
func (n *Nodes) destroyAll(ctx context.Context, force bool) error {
	names, err := n.dir.nodes()
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	var running sync.WaitGroup
	for i, name := range names {
		running.Go(func() { errs[i] = node.Destroy(ctx, n.options(name), force) })
	}
	running.Wait()
	return errors.Join(errs...)
}
