package simclient

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
)

// Fleet is the clients of all nodes of a cluster. The cost of a step depends on what is due
// or has changed, not on the number of nodes; only the first step reads all nodes. For a due
// task or an answered report the fleet does not read the other allocations of its node.
//
// Only [Fleet.Run] or a simulator calls Step. Changed, ChangedAll and Woken are safe for
// concurrent use.
type Fleet struct {
	options Options
	inbox   inbox

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
	// seen is the index of the newest state so far.
	seen uint64
	// unread is the mail about changes that were not read from a state yet.
	unread mail
	// flight is the batch in flight, or nil.
	flight *batch
	// failures counts the consecutive batches that were not applied. No batch is made
	// before retryAt.
	failures int
	retryAt  time.Time
}

// New returns a fleet that has done nothing yet. Options that cannot work are
// refused, with the field named.
func New(o Options) (*Fleet, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("simclient: %w", err)
	}
	return &Fleet{
		options: o,
		inbox:   inbox{woken: make(chan struct{}, 1)},
		clients: make(map[cluster.NodeID]*client),
		waiting: make(map[cluster.NodeID][]cluster.NodeID),
		unread:  mail{all: true},
	}, nil
}

// Changed says that nodes or their allocations have changed. Call it when the state shows a
// write to the node, or to an allocation that is or was on it, by anyone but the fleet, and
// when a node becomes unreachable without a write: the fleet does not notice these by itself.
// It never blocks, and a needless call is harmless.
func (f *Fleet) Changed(nodes ...cluster.NodeID) {
	if len(nodes) > 0 {
		f.inbox.post(func(m *mail) { m.changed = append(m.changed, nodes...) })
	}
}

// ChangedAll says that anything may have changed, as after the restore of a
// snapshot. It never blocks.
func (f *Fleet) ChangedAll() { f.inbox.post(func(m *mail) { m.all = true }) }

// Woken receives a value when a step is wanted before the time that the last step returned.
// It is for callers that do not use Run.
func (f *Fleet) Woken() <-chan struct{} { return f.inbox.woken }

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
		case <-f.inbox.woken:
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
	f.open(now)
	if state := f.options.Snapshot(); state.Index() >= f.seen {
		f.seen = state.Index()
		for _, v := range f.visits(state, now) {
			f.step(state, v, now)
		}
		wakeAt = f.due.First()
	} else { // an older state: a newer one will be back
		wakeAt = now.Add(f.options.RetryBase)
	}
	return earliest(wakeAt, f.send(now))
}

// rewind moves all future times back by as much as the clock was set back, so that no wait
// gets longer.
func (f *Fleet) rewind(by time.Duration) {
	for _, c := range f.clients { //lint:order each client by itself
		c.rewind(by)
	}
	f.due.Shift(by)
	f.retryAt = moved(f.retryAt, by)
}

// open takes in the mail.
func (f *Fleet) open(now time.Time) {
	m := f.inbox.take()
	f.unread.all = f.unread.all || m.all
	f.unread.changed = append(f.unread.changed, m.changed...)
	for _, a := range m.answers {
		f.settle(a, now)
	}
}

// settle takes in the answer to a batch.
func (f *Fleet) settle(a answer, now time.Time) {
	if a.batch != f.flight {
		return // a second answer of the applier
	}
	f.flight = nil
	if a.applied {
		f.failures = 0
	} else {
		f.failed(a.batch, now)
	}
	for _, l := range a.batch.lines {
		if c := f.clients[l.node]; c != nil && c.mayChangeLate {
			c.mayChangeLate = !a.applied
			f.unread.changed = append(f.unread.changed, l.node)
		}
	}
	f.unread.settled = append(f.unread.settled, a.batch.lines...)
}

// failed queues the reports of a batch again.
func (f *Fleet) failed(b *batch, now time.Time) {
	f.failures++
	f.retryAt = now.Add(f.options.retryAfter(f.failures))
	for _, l := range b.lines {
		if c := f.clients[l.node]; c != nil && c.tasks[l.alloc] != nil {
			c.tasks[l.alloc].acked = condition{}
			c.mayChangeLate = true
			f.outbox.add(c)
		}
	}
}

// visit is the step of one client.
type visit struct {
	node cluster.NodeID
	// readAll says that anything on the node may have changed. Otherwise settled are the
	// allocations whose reports were answered, and the others have not changed.
	readAll bool
	settled []cluster.AllocID
}

// visits returns the clients to step, ordered by node: of nodes that changed or had a report
// answered, of nodes that wait for these, and of nodes that are due.
func (f *Fleet) visits(state State, now time.Time) []visit {
	changed := f.unread.changed
	if f.unread.all {
		for n := range state.Nodes() {
			changed = append(changed, n.ID)
		}
		for id := range f.clients {
			changed = append(changed, id)
		}
	}
	slices.Sort(changed)
	visits := make([]visit, 0, len(changed)+len(f.unread.settled))
	for _, id := range slices.Compact(changed) {
		visits = append(visits, visit{node: id, readAll: true})
	}
	for _, l := range f.unread.settled {
		visits = append(visits, visit{node: l.node, settled: []cluster.AllocID{l.alloc}})
	}
	f.unread = mail{}
	for _, v := range visits {
		for _, id := range f.waiting[v.node] {
			visits = append(visits, visit{node: id})
		}
		delete(f.waiting, v.node)
	}
	for _, id := range f.due.Pop(now) {
		visits = append(visits, visit{node: id})
	}
	return merged(visits)
}

// merged joins the visits to each node into one, and orders them.
func merged(visits []visit) []visit {
	slices.SortStableFunc(visits, func(a, b visit) int { return cmp.Compare(a.node, b.node) })
	each := visits[:0]
	for _, v := range visits {
		if last := len(each) - 1; last >= 0 && each[last].node == v.node {
			each[last].readAll = each[last].readAll || v.readAll
			each[last].settled = append(each[last].settled, v.settled...)
		} else {
			each = append(each, v)
		}
	}
	return each
}

// step steps the client of one node.
func (f *Fleet) step(state State, v visit, now time.Time) {
	id := v.node
	c := f.clients[id]
	if c == nil {
		c = &client{node: id, tasks: make(map[cluster.AllocID]*task)}
		f.clients[id] = c
		v.readAll = true
	}
	v.readAll = v.readAll || c.mayChangeLate
	result := c.step(&f.options, state, v, now)
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
	b, reports := f.outbox.fill(f.options.MaxBatch, now)
	if len(reports) == 0 {
		return time.Time{}
	}
	f.flight = b
	if f.options.Applier.Report(reports, f.reply(b)) {
		return time.Time{}
	}
	f.flight = nil
	f.failed(b, now)
	return f.retryAt
}

// reply is the reply of a batch.
func (f *Fleet) reply(b *batch) func(applied bool) {
	return func(applied bool) {
		f.inbox.post(func(m *mail) { m.answers = append(m.answers, answer{batch: b, applied: applied}) })
	}
}
