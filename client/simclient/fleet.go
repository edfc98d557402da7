package simclient

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
)

// Fleet is the clients of all nodes of a cluster. A step reads the nodes that have changed; only the
// first step reads all nodes.
//
// Only [Fleet.Run] or a simulator calls Step. Changed, ChangedAll and Woken are safe for
// concurrent use.
type Fleet struct {
	options Options
	inbox   inbox.Inbox[message]
	// woken has capacity 1. A send to it never blocks.
	woken chan struct{}

	// The following fields belong to Step.

	// clients are the clients with tasks, by node.
	clients map[cluster.NodeID]*client
	// due holds when each client has something to do.
	due alarm.Heap[cluster.NodeID]
	// waiting holds, by node, the nodes whose replacements wait for a predecessor there. A
	// node may occur twice.
	waiting map[cluster.NodeID][]cluster.NodeID
	outbox  outbox

	// now is the time of the last step.
	now time.Time
	// newest is the index of the newest state so far.
	newest uint64
	// unread are the nodes that may have changed since they were read. A node may occur twice.
	// allUnread adds all nodes.
	unread    []cluster.NodeID
	allUnread bool
	// flight is the batch in flight, or nil.
	flight *batch
	// failures counts the consecutive batches that were not applied. No batch is sent
	// before retryAt.
	failures int
	retryAt  time.Time
}

// message is a message to a fleet: nodes that may have changed, or the answer to a batch.
type message struct {
	nodes []cluster.NodeID
	// all adds all nodes.
	all bool
	// answered is the batch with an answer, or nil.
	answered *batch
	applied  bool
}

// New returns a fleet that has done nothing yet. The error names an invalid option.
func New(o Options) (*Fleet, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("simclient: %w", err)
	}
	return &Fleet{
		options:   o,
		woken:     make(chan struct{}, 1),
		clients:   make(map[cluster.NodeID]*client),
		waiting:   make(map[cluster.NodeID][]cluster.NodeID),
		allUnread: true,
	}, nil
}

// Changed makes the next step read nodes. Call it when the state shows a write to a node, or to an
// allocation that is or was on it, by anyone but the fleet, and when a node becomes unreachable
// without a write: the fleet does not detect these by itself. It never blocks, and a needless call
// is harmless.
func (f *Fleet) Changed(nodes ...cluster.NodeID) {
	if len(nodes) > 0 {
		f.post(message{nodes: nodes})
	}
}

// ChangedAll makes the next step read all nodes, for example after the restore of a snapshot. It
// never blocks.
func (f *Fleet) ChangedAll() { f.post(message{all: true}) }

// post adds a message, and wakes the fleet.
func (f *Fleet) post(m message) {
	f.inbox.Post(m)
	select {
	case f.woken <- struct{}{}:
	default: // a wake-up is pending
	}
}

// Woken receives a value when a step is required before the time that the last step returned.
// It is for callers that do not use Run.
func (f *Fleet) Woken() <-chan struct{} { return f.woken }

// clockCheck is how often a waiting fleet reads the wall clock: timers are monotonic, the
// times in the state are not.
const clockCheck = 30 * time.Second

// Run steps the fleet until the context ends. It owns no other goroutine, and
// does not wait for a batch in flight.
func (f *Fleet) Run(ctx context.Context) {
	timer := time.NewTimer(clockCheck)
	defer timer.Stop()
	for ctx.Err() == nil {
		now := time.Now().Round(0)
		wait := clockCheck
		if wakeAt := f.Step(now); !wakeAt.IsZero() {
			wait = min(wait, wakeAt.Sub(now))
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-f.woken:
		case <-timer.C:
		}
	}
}

// Step does what is due now. It returns when it must be called again at the latest, without
// a wake-up; zero is never. An earlier or needless call is harmless. It never blocks.
func (f *Fleet) Step(now time.Time) (wakeAt time.Time) {
	if now.Before(f.now) {
		f.rewind(now.Sub(f.now))
	}
	f.now = now
	for _, m := range f.inbox.Take() {
		f.allUnread = f.allUnread || m.all
		f.unread = append(f.unread, m.nodes...)
		f.settle(m, now)
	}
	if state := f.options.Snapshot(); state.Index() >= f.newest {
		f.newest = state.Index()
		for _, v := range f.visits(state, now) {
			f.step(state, v, now)
		}
		wakeAt = f.due.First()
	} else { // an older state: a newer one will be back
		wakeAt = now.Add(retryBase)
	}
	return alarm.Earliest(wakeAt, f.send(now))
}

// Lives yields the allocations on a node that have tasks at a time of the last step or later: those
// that have started and have not ended, also if the servers have no live row of them. It leaves out
// those that cannot be killed. It is for judges, and not safe for concurrent use with Step.
func (f *Fleet) Lives(node cluster.NodeID, now time.Time) iter.Seq[cluster.AllocID] {
	return func(yield func(cluster.AllocID) bool) {
		c := f.clients[node]
		if c == nil {
			return
		}
		for _, t := range c.order {
			unkillable := t.stopping && t.ends.IsZero()
			if passed(t.runs, now) && !passed(t.ends, now) && !unkillable && !yield(t.alloc.ID) {
				return
			}
		}
	}
}

// rewind moves all future times back by as much as the clock was set back, so that no wait
// becomes longer.
func (f *Fleet) rewind(by time.Duration) {
	for _, c := range f.clients { //lint:order each client by itself
		c.rewind(by)
	}
	f.due.Shift(by)
	f.retryAt = moved(f.retryAt, by)
}

// settle processes the answer to a batch.
func (f *Fleet) settle(m message, now time.Time) {
	if m.answered == nil || m.answered != f.flight {
		return // there is none, or it is a second answer of the applier
	}
	f.flight = nil
	if m.applied {
		f.failures = 0
	} else {
		f.failed(m.answered, now)
	}
	for _, l := range m.answered.lines {
		f.unread = append(f.unread, l.node)
	}
}

// failed queues the reports of a batch again.
func (f *Fleet) failed(b *batch, now time.Time) {
	f.retryAt = now.Add(min(retryBase<<min(f.failures, maxDoublings), retryMax))
	f.failures++
	for _, l := range b.lines {
		if c := f.clients[l.node]; c != nil && c.tasks[l.alloc] != nil {
			c.tasks[l.alloc].acknowledged = condition{}
			f.outbox.add(c)
		}
	}
}

// visit is a node to step. changed: its rows may have changed since they were read.
type visit struct {
	node    cluster.NodeID
	changed bool
}

// visits returns the nodes to step, sorted, each once: those that have changed or had a report answered, those
// that wait for these, and those that are due.
func (f *Fleet) visits(state State, now time.Time) (visits []visit) {
	nodes := f.unread
	if f.allUnread {
		for n := range state.Nodes() {
			nodes = append(nodes, n.ID)
		}
		//lint:order the visits are sorted below
		for id := range f.clients {
			nodes = append(nodes, id)
		}
	}
	f.unread, f.allUnread = nil, false
	for _, id := range nodes {
		visits = append(visits, visit{id, true})
		for _, waiting := range f.waiting[id] {
			visits = append(visits, visit{node: waiting})
		}
		delete(f.waiting, id)
	}
	for _, id := range f.due.Pop(now) {
		visits = append(visits, visit{node: id})
	}
	slices.SortFunc(visits, func(a, b visit) int {
		if order := cmp.Compare(a.node, b.node); order != 0 || a.changed == b.changed {
			return order
		}
		if a.changed {
			return -1
		}
		return 1
	})
	return slices.CompactFunc(visits, func(a, b visit) bool { return a.node == b.node })
}

func (f *Fleet) step(state State, v visit, now time.Time) {
	id, c := v.node, f.clients[v.node]
	if c == nil {
		c = &client{node: id, tasks: make(map[cluster.AllocID]*task)}
		f.clients[id] = c
	}
	if v.changed {
		c.read(&f.options, state, now)
	}
	result := c.step(state, now)
	f.due.Wake(id, result.next)
	if result.unreported {
		f.outbox.add(c)
	}
	for _, at := range result.waitsFor {
		if !slices.Contains(f.waiting[at], id) {
			f.waiting[at] = append(f.waiting[at], id)
		}
	}
	if len(c.tasks) == 0 {
		delete(f.clients, id)
	}
}

// send sends a batch of reports, unless another is in flight. It returns when to call it
// again.
func (f *Fleet) send(now time.Time) (wakeAt time.Time) {
	if f.flight != nil || len(f.outbox.clients) == 0 {
		return time.Time{}
	}
	if now.Before(f.retryAt) {
		return f.retryAt
	}
	b, reports := f.outbox.fill(maxBatch, now)
	if len(reports) == 0 {
		return time.Time{}
	}
	f.flight = b
	reply := func(applied bool) { f.post(message{answered: b, applied: applied}) }
	if f.options.Applier.Report(reports, reply) {
		return time.Time{}
	}
	f.flight = nil
	f.failed(b, now)
	return f.retryAt
}
