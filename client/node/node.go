package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/disks"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/client/presence"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
)

// Node is the client of one node. It owns its data directory until Close.
type Node struct {
	home   *home
	core   *client.Core
	shell  *shell
	trust  *trust
	reach  *reach
	bootID string
	// accepted is the session with which the servers accepted this client before it started, or nil. Run
	// serves it.
	accepted *session.NodeEnd
	logger   *slog.Logger
	// contactFailures logs failures to write the last contact to the disk.
	contactFailures failureLog
	// end cancels the shell's effects.
	end context.CancelFunc
	// closers release the resources of Open, in reverse order.
	closers []func() error
}

// ID returns the id of the node. It never changes.
func (n *Node) ID() cluster.NodeID { return n.home.identity.ID }

// Run runs the client until the context ends, in the calling goroutine and in goroutines that have
// ended when it returns. Tasks and plugins continue to run, for the next client. Run may be called
// once.
func (n *Node) Run(ctx context.Context) error {
	ring, err := bootclock.NewAlarm()
	if err != nil {
		return err
	}
	defer ring.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	running.Go(func() { n.shell.guards.keep(ctx) })
	running.Go(func() { n.shell.contact.keepAlive(ctx) })
	running.Go(func() { n.reach.keep(ctx, n.shell.contact.registered) })
	running.Go(func() {
		n.awaitTrust(ctx)
		n.shell.contact.listen(ctx)
	})
	running.Go(func() { n.keepTrust(ctx) })
	err = n.loop(ctx, ring)
	stop()
	n.end()
	running.Wait()
	n.shell.running.Wait()
	n.shell.data.Close()
	n.shell.drivers.detach()
	n.shell.devices.detach()
	n.shell.tasks.logs.close()
	return err
}

// loop waits for events and calls the core's steps.
func (n *Node) loop(ctx context.Context, ring *bootclock.Alarm) error {
	for {
		if err := ring.Set(n.core.Step(now())); err != nil {
			return fmt.Errorf("setting a timer: %w", err)
		}
		n.logger.Debug("the core has made a step")
		select {
		case <-ctx.Done():
			return nil
		case <-n.core.Woken():
		case <-ring.Rings():
		}
	}
}

// awaitTrust checks whether raw_exec may be used, until the servers answer. Before that the core
// must not get allocations, because failed starts would use up their restarts.
func (n *Node) awaitTrust(ctx context.Context) {
	var backoff presence.Backoff
	random := newRandom()
	for ctx.Err() == nil {
		err := n.trust.check(ctx, rawExec)
		if !errors.Is(err, errUnknownServers) {
			return
		}
		sleep(ctx, backoff.Next(maxChangesRetry, random))
	}
}

// keepTrust checks repeatedly, until the context ends. It is needed because the driver may start no
// task for a long time, and only starts check.
func (n *Node) keepTrust(ctx context.Context) {
	for ctx.Err() == nil {
		sleep(ctx, trustInterval)
		_ = n.trust.check(ctx, rawExec) // it has logged the answer
	}
}

// answered passes an answered heartbeat to the core and to the watchdog, and writes it to the disk for
// the next client.
func (n *Node) answered(contact guard.Contact) {
	n.core.Contact(n.shell.guards.answered(contact), contact)
	if err := n.home.noteContact(func(c *lastContact) { c.BootID, c.Sent, c.TTL = n.bootID, contact.Sent, contact.TTL }); err == nil {
		n.contactFailures.over()
	} else if n.contactFailures.isNew(err) {
		n.logger.Warn("the file of the last contact was not written", "error", err)
	}
}

// receive passes an answer of the servers to the core. It writes a new cluster version to the disk: the next
// client needs it before its first answer.
func (n *Node) receive(w client.Changes) {
	if w.Version != 0 && w.Version != n.home.clusterVersion() {
		if err := n.home.noteContact(func(c *lastContact) { c.ClusterVersion = w.Version }); err != nil {
			n.logger.Warn("the cluster version was not written to the disk", "error", err)
		}
	}
	n.core.Servers(w)
}

// Close releases the data directory. Call it after Run has returned, or without a call of Run.
func (n *Node) Close() error {
	n.end()
	var errs []error
	for _, release := range slices.Backward(n.closers) {
		errs = append(errs, release())
	}
	return errors.Join(errs...)
}

// events passes events of plugins to the core. It exists because the plugins are created before the
// core.
type events struct{ pluginEvents }

// now reads the node's clocks.
func now() client.Time { return client.Time{Boot: bootclock.Now(), Wall: time.Now().Round(0)} }

// nodeapiOptions returns the options of the handler that answers the servers' requests.
func (n *Node) nodeapiOptions() nodeapi.Options {
	return nodeapi.Options{
		Logger:  n.logger,
		Dirs:    n.shell.tasks.dirs,
		Roster:  n.shell.roster,
		Tasks:   n.operators(),
		Checks:  &checkList{n.operators(), n.shell.tasks},
		Devices: n.shell.devices.stats,
		Storage: &controllers{n.shell.storage},
		Data:    &disks.Source{Core: n.core, Folders: n.shell.tasks.dirs, Tasks: n.shell.tasks.tasksOf, Kept: n.shell.roster.keptData},
		Host: func(ctx context.Context) (*hoststats.Sample, error) {
			return hoststats.Take(ctx, hoststats.Options{DataDir: n.home.path})
		},
	}
}
