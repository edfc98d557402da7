package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/node"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

const (
	rawExec    = "raw_exec"
	mock       = "mock"
	nodePrefix = "node-"
)

// driver is the driver of all tasks.
func (c *Cluster) driver() string {
	if c.config.Simulated {
		return mock
	}
	return rawExec
}

// startClients starts the clients of all nodes.
func (c *Cluster) startClients(ctx context.Context) error {
	log, err := c.openLog(clientsLog)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c.end = end
	if err := c.chooseLimits(); err != nil {
		return err
	}
	c.logger = slog.New(slog.NewTextHandler(log, nil))
	for i := range c.config.Nodes {
		o := c.options(nodePrefix+strconv.Itoa(i+1), c.driver())
		// The nodes share one machine.
		o.Config.MinDynamicPort = cluster.DefaultMinDynamicPort + i*portsOfNode%(cluster.MaxPort-cluster.DefaultMinDynamicPort-portsOfNode)
		o.Config.MaxDynamicPort = o.Config.MinDynamicPort + portsOfNode - 1
		for core := range cluster.MaxCores {
			if core%c.config.Nodes != i {
				o.Config.ReservedCores = append(o.Config.ReservedCores, core)
			}
		}
		o.Config.Servers = config.Servers{Addresses: []string{c.URL()}, Token: c.nodeToken.Reveal()}
		end := c.waiting(func() string { return "the start of " + o.Config.Name })
		one, err := node.Open(ctx, o)
		end()
		if err != nil {
			return fmt.Errorf("starting %s: %w", o.Config.Name, err)
		}
		c.nodes = append(c.nodes, one)
		c.running.Go(func() { c.failed <- one.Run(life) })
	}
	return nil
}

// chooseLimits notes what this machine does not allow.
func (c *Cluster) chooseLimits() error {
	if c.config.Simulated {
		c.config.User = ""
		return nil
	}
	groups, err := cgroup.Find("/")
	if err != nil {
		return err
	}
	if !groups.Usable() {
		c.limits = append(c.limits, "This user cannot create control groups here: tasks have no limits of CPU and memory, and only their driver can kill them.")
	}
	if os.Geteuid() != 0 {
		c.limits = append(c.limits, "This user is not root: tasks run as this user.")
		return nil
	}
	if closed := closedFolder(c.dir.path); c.config.User != "" && closed != "" {
		c.limits = append(c.limits, fmt.Sprintf("Tasks run as root: user %s cannot pass the folder %s.", c.config.User, closed))
		c.config.User = ""
	} else if c.config.User == "" {
		c.limits = append(c.limits, fmt.Sprintf("Tasks run as root: this machine has no user with the id %s.", DefaultUser))
	}
	return nil
}

// awaitNodes waits until the servers have the nodes, and their driver is healthy. The error
// contains the reason of an unhealthy driver.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	err := c.await(ctx, "the nodes are not ready", func() (left string) {
		node, reason := c.unready()
		if reason != "" {
			node += ": " + reason
		}
		return node
	})
	if _, reason := c.unready(); err != nil && reason != "" {
		return fmt.Errorf("%s cannot run here: %s: %w", c.driver(), reason, err)
	}
	return err
}

// unready returns the first node that the servers do not have, or whose driver is not healthy, with the reason if the
// driver has one. It is empty if all are ready.
func (c *Cluster) unready() (node, reason string) {
	s := c.server.Server().Store().Snapshot()
	for i, one := range c.nodes {
		name := nodePrefix + strconv.Itoa(i+1)
		row := s.Node(one.ID())
		if row == nil || row.Drivers[c.driver()] == nil {
			return name, ""
		}
		if d := row.Drivers[c.driver()]; !d.Healthy {
			return name, d.HealthDescription
		}
	}
	return "", ""
}

// portsOfNode is the number of dynamic ports of a node.
const portsOfNode = 1000

// options returns the options of a client, except its servers.
func (c *Cluster) options(name string, drivers ...string) node.Options {
	plugins := make(map[string]config.Plugin)
	for _, driver := range drivers {
		plugins[driver] = config.Plugin{Name: driver, Enabled: true}
	}
	run := c.dir.file(runFolder + "/" + name)
	if len(run) > config.MaxRunDir {
		run = "" // the client chooses one
	}
	return node.Options{
		Config: &config.Config{
			Name: name, Datacenter: config.DefaultDatacenter, Region: config.DefaultRegion, Pool: cluster.DefaultNodePool, Class: "dev",
			DataDir: c.dir.file(name), RunDir: run,
			Resources:        cluster.Resources{CPU: 4000, MemoryMB: 4096, DiskMB: 10 << 10},
			NetworkInterface: "lo",
			Limits:           config.Limits{MaxKillTimeout: time.Minute, MaxAllocs: config.DefaultMaxAllocs, DriverCalls: config.DefaultDriverCalls},
			Plugins:          plugins,
		},
		LogKeeper: c.config.LogKeeper, Version: c.config.Version,
		GroupsOptional: true, Logger: c.logger.With("name", name),
	}
}

// endClients ends the clients. Their tasks continue to run.
func (c *Cluster) endClients() error {
	c.end()
	defer c.waiting(func() string { return "the end of the clients" })()
	c.running.Wait()
	var errs []error
	for _, one := range c.nodes {
		errs = append(errs, one.Close())
	}
	c.nodes = nil
	return errors.Join(errs...)
}

// destroyAll destroys all nodes that have a directory. Those of an earlier process may have tasks of
// either driver.
func (c *Cluster) destroyAll(ctx context.Context, force bool) error {
	names, err := c.dir.nodes()
	if err != nil {
		return err
	}
	errs := make([]error, len(names))
	var running sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(len(names)))
	defer c.waiting(func() string { return "the end of the tasks of " + cli.Count(int(left.Load()), "node") })()
	for i, name := range names {
		running.Go(func() {
			errs[i] = node.Destroy(ctx, c.options(name, rawExec, mock), node.Removal{NoGrace: force, KeptData: true})
			left.Add(-1)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
