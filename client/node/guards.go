package node

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/guard"
	"github.com/seed-f9cf0b39/nodedrain/client/internal/bootclock"
	"github.com/seed-f9cf0b39/nodedrain/client/watchdog"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

const (
	// watchdogDir is the folder of the watchdog in the data directory.
	watchdogDir = "watchdog"
	// watchdogStart is how long a watchdog may take to start.
	watchdogStart = 10 * time.Second
	// watchdogRetry is the wait after a watchdog did not start, or ended soon.
	watchdogRetry = time.Second
)

// guards keeps a watchdog beside the client while the node has an allocation that must stop without
// servers. Only the goroutine of keep uses the watchdog, and that of Open before.
type guards struct {
	options   watchdog.Options // without contact and guards
	holdLimit time.Duration
	logger    *slog.Logger
	// stopped passes a note of the watchdog to the core.
	stopped func(guard.Stopped)
	// changes has no capacity: keep has taken a change when its send returns.
	changes chan guardChange
	// heartbeat has capacity 1. It holds a value if contact has changed.
	heartbeat chan struct{}

	mu      sync.Mutex
	contact guard.Contact // guarded by mu

	// all are the guards of the node, also while no watchdog runs.
	all map[cluster.AllocID]guard.Guard
	dog *watchdog.Process // or nil
	// started is when dog was started.
	started time.Time
}

// guardChange guards an allocation, or ends its guard if it has no tasks.
type guardChange struct {
	guard guard.Guard
	// done has capacity 1. It receives nil when a watchdog guards the allocation.
	done chan error
}

// newGuards returns the guards of the node's records. contact is the last contact of an earlier
// client in this boot, or zero.
func newGuards(o Options, dir string, groups cgroup.Hierarchies, contact guard.Contact, records []*client.Record, logger *slog.Logger) *guards {
	g := &guards{
		options: watchdog.Options{Program: o.Program, Dir: dir, Groups: groups}, holdLimit: holdLimit(o.Config), logger: logger,
		changes: make(chan guardChange), heartbeat: make(chan struct{}, 1), contact: cmp.Or(contact, guard.Contact{Sent: bootclock.Now()}),
		all: make(map[cluster.AllocID]guard.Guard),
	}
	for _, r := range records {
		if one, guarded := g.of(r.Alloc); guarded && !r.Ended {
			g.all[r.Alloc.ID] = one
		}
	}
	return g
}

// of returns the guard of an allocation. No allocation has one on a machine without control groups,
// because a watchdog could not stop it.
func (g *guards) of(alloc *cluster.Allocation) (guard.Guard, bool) {
	if g.options.Groups.Kind() == "none" {
		return guard.Guard{}, false
	}
	one, guarded := guard.Of(alloc, g.holdLimit)
	for i, t := range one.Tasks {
		one.Tasks[i].Group = groupName(alloc.ID, t.Name)
	}
	return one, guarded
}

// put returns when a watchdog guards the allocation, or none is needed. Its tasks must not start
// before that.
func (g *guards) put(ctx context.Context, alloc *cluster.Allocation) error {
	one, guarded := g.of(alloc)
	if !guarded {
		return nil
	}
	return g.change(ctx, one)
}

// remove ends the guard of an allocation that has ended, and removes its note.
func (g *guards) remove(ctx context.Context, alloc *cluster.Allocation) error {
	if _, guarded := g.of(alloc); !guarded {
		return nil
	}
	return errors.Join(g.change(ctx, guard.Guard{Alloc: alloc.ID}), watchdog.Forget(g.options.Dir, alloc.ID))
}

func (g *guards) change(ctx context.Context, one guard.Guard) error {
	c := guardChange{guard: one, done: make(chan error, 1)}
	select {
	case g.changes <- c:
		return <-c.done // keep answers within the limits of a start
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// answered takes an answered heartbeat, and returns the contact before. It does not wait.
func (g *guards) answered(contact guard.Contact) (previous guard.Contact) {
	g.mu.Lock()
	previous = g.contact
	if contact.Sent > g.contact.Sent {
		g.contact = contact
	}
	g.mu.Unlock()
	select {
	case g.heartbeat <- struct{}{}:
	default: // keep sends the newest time
	}
	return previous
}

// mayStart returns an error if a task of the allocation must not start, because no server has answered for
// too long. The client calls it when the control group of the task exists. A client that was frozen before
// the call gets the error, and one that is frozen after the call finds that its watchdog has removed the
// group. So no task starts after the time at which the servers rely on its end.
func (g *guards) mayStart(alloc *cluster.Allocation) error {
	one, guarded := g.of(alloc)
	if contact := g.newest(); guarded && bootclock.Now() >= contact.StopAt(one.After) {
		return errors.New(contact.Reason(one.After))
	}
	return nil
}

// ended passes the note of the watchdog to the core before the end of a task: the watchdog has killed
// the task while this client was frozen.
func (g *guards) ended(alloc cluster.AllocID) {
	note, err := watchdog.Note(g.options.Dir, alloc)
	switch {
	case err != nil:
		g.logger.Warn("the client cannot read why the watchdog has stopped an allocation", "alloc", alloc, "error", err)
	case note != nil:
		g.stopped(*note)
	}
}

func (g *guards) newest() guard.Contact {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.contact
}

// take replaces the watchdog of an earlier client. It must return before the notes of that watchdog
// are read, and before the client sends a heartbeat: afterwards the old watchdog would count from a
// heartbeat that is too old.
func (g *guards) take(ctx context.Context) {
	if len(g.all) == 0 || g.start(ctx) != nil {
		if err := watchdog.End(g.options.Dir); err != nil {
			g.logger.Error("the watchdog of an earlier client may stop tasks too early", "error", err)
		}
	}
}

// keep keeps a watchdog while there is something to guard, until the context ends. The watchdog
// then continues without the client.
func (g *guards) keep(ctx context.Context) {
	defer g.release()
	var retry <-chan time.Time // or nil if no start is planned
	for {
		var ended <-chan struct{}
		if g.dog != nil {
			ended, retry = g.dog.Ended(), nil
		} else if len(g.all) > 0 && retry == nil {
			retry = time.After(watchdogRetry)
		}
		select {
		case <-ctx.Done():
			return
		case c := <-g.changes:
			c.done <- g.apply(ctx, c.guard)
		case <-g.heartbeat:
			g.send(func(p *watchdog.Process) error { return p.Contact(g.newest()) })
		case <-ended:
			g.logger.Error("the watchdog has ended; the client starts another", "pid", g.dog.ID.PID)
			g.release()
			if time.Since(g.started) > watchdogRetry {
				_ = g.start(ctx) // it has logged the error
			}
		case <-retry:
			retry = nil
			if len(g.all) > 0 {
				_ = g.start(ctx) // it has logged the error
			}
		}
	}
}

// release lets the watchdog continue without the client.
func (g *guards) release() {
	if g.dog != nil {
		_ = g.dog.Release() // it closes a pipe
		g.dog = nil
	}
}

// apply applies a change.
func (g *guards) apply(ctx context.Context, one guard.Guard) error {
	if len(one.Tasks) == 0 {
		delete(g.all, one.Alloc)
		if len(g.all) == 0 && g.dog != nil {
			err := g.dog.Stop()
			g.dog = nil
			return err
		}
		g.send(func(p *watchdog.Process) error { return p.Remove(one.Alloc) })
		return nil
	}
	g.all[one.Alloc] = one
	g.send(func(p *watchdog.Process) error { return p.Put(one) })
	if g.dog == nil {
		return g.start(ctx)
	}
	return nil
}

// send sends a message to the watchdog, if one runs. After an error it is replaced.
func (g *guards) send(message func(*watchdog.Process) error) {
	if g.dog == nil {
		return
	}
	if err := message(g.dog); err != nil {
		g.logger.Error("the watchdog reads no messages; the client replaces it", "pid", g.dog.ID.PID, "error", err)
		if err := g.dog.Stop(); err != nil {
			g.logger.Error("a watchdog could not be stopped", "error", err)
		}
		g.dog = nil
	}
}

// start starts a watchdog with all guards. It logs an error. A client that stops meanwhile waits
// for the start, because the watchdog must continue without it.
func (g *guards) start(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), watchdogStart)
	defer cancel()
	o := g.options
	o.Contact = g.newest()
	for _, id := range slices.Sorted(maps.Keys(g.all)) {
		o.Guards = append(o.Guards, g.all[id])
	}
	g.started = time.Now()
	if g.dog, err = watchdog.Start(ctx, o); err != nil {
		g.logger.Error("the watchdog did not start; the client retries, and tasks with stop_on_client_after wait for it", "error", err)
		return err
	}
	g.logger.Info("a watchdog has started", "pid", g.dog.ID.PID, "allocs", len(o.Guards))
	return nil
}
