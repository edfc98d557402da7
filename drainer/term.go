package drainer

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Term is the drainer of one leadership term. It makes all decisions and never waits. [NodeDrainer]
// steps it on a goroutine. A simulator or a test calls Step itself.
//
// A term depends on nothing but its state: a new term over the same state reaches the same end
// (G7).
type Term struct {
	config NodeDrainerConfig
	wake   chan<- struct{}
	done   chan struct{} // closed by Close
	poked  atomic.Bool   // a component requested a step

	mu          sync.Mutex // held by Step, Close and Explain; guards the fields below
	nodeWatcher DrainingNodeWatcher
	tracker     tracker
	nodes       drainingNodes // holds the other components
	reader      limitedReader
	outbox      outbox
	closed      bool
	// abandoned means that the store was replaced. The term then decides nothing.
	abandoned bool
	// stale means that a step must read the state again. hasRead means that a step has read it.
	stale, hasRead bool
	// stepped is the time of the last step. wakeAt is the time of the next step if nothing
	// happens before, or zero.
	stepped, wakeAt time.Time
}

// NewTerm begins a term over the state. The term sends to wake, without blocking, after each change
// that concerns it and after each answer to a write. Then the owner calls Step. Close ends the
// term.
func NewTerm(c NodeDrainerConfig, state StateReader, wake chan<- struct{}) (*Term, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if isNil(state) {
		return nil, errors.New("a term needs a state to read: it is nil, or a nil pointer")
	}
	t := &Term{config: c, wake: wake, done: make(chan struct{}), stale: true}
	t.tracker.tracked = map[cluster.NodeID]cluster.Revision{}
	t.reader = limitedReader{
		state: state, feed: state.Subscribe(wake), policy: c.Policy, retry: c.Retry.Base, changes: Changes{All: true},
		limiter: rate.NewLimiter(rate.Limit(c.StateQueriesPerSecond), c.queryBurst()),
	}
	t.outbox = outbox{logger: c.Logger, config: c, wake: t.sendWake, behind: true}
	env := Env{
		Logger: c.Logger, State: state, Feed: t.reader.feed, Wake: t.poke, Done: t.done,
		Policy: c.Policy, MarksAhead: c.MaxInFlight * c.MaxIDsPerEntry, DeadlineCoalesce: c.DeadlineCoalesce, Retry: c.Retry,
	}
	t.nodeWatcher = c.NodeWatcher(env, &t.tracker)
	t.nodes = drainingNodes{
		logger: c.Logger, feed: t.reader.feed, jobs: c.JobWatcher(env), notifier: c.DeadlineNotifier(env),
		marksAhead: env.MarksAhead, byID: map[cluster.NodeID]*drainingNode{}, waiting: map[cluster.JobKey][]cluster.NodeID{},
	}
	if isNil(t.nodeWatcher) || isNil(t.nodes.jobs) || isNil(t.nodes.notifier) {
		t.Close()
		return nil, errors.New("NodeDrainerConfig: a factory returned nil")
	}
	return t, nil
}

// Close ends the term. After it the term writes nothing and ignores the answers to writes in
// flight. Close waits for a running Step, which never blocks.
func (t *Term) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.reader.feed.Close()
	close(t.done)
}

// poke requests a step for a component.
func (t *Term) poke() {
	t.poked.Store(true)
	t.sendWake()
}

func (t *Term) sendWake() {
	select {
	case t.wake <- struct{}{}:
	default: // a wake-up is there already
	}
}

// Step decides and writes. It returns the latest time for the next step; zero means that the term
// waits for a wake-up. It may be called sooner, and without a reason. It never blocks.
func (t *Term) Step(now time.Time) (wakeAt time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.abandoned {
		return time.Time{}
	}
	t.checkClock(now)
	t.settle(now)
	t.reader.note()
	if t.abandoned = t.reader.changes.Abandoned; t.abandoned {
		t.config.Logger.Warn("the state store was replaced: the drainer does nothing until the next term")
		return time.Time{}
	}
	poked, due := t.poked.Swap(false), !t.wakeAt.IsZero() && !now.Before(t.wakeAt)
	t.stale = t.stale || poked || due || !t.reader.changes.Empty()
	ready, at := t.outbox.ready(now)
	if !t.stale {
		return t.next(at)
	}
	if !ready {
		t.reader.deferred = t.reader.deferred || !t.reader.changes.Empty()
		return at
	}
	reading, at := t.reader.read(now, t.outbox.shown)
	if reading.View == nil {
		return at
	}
	t.stale = false
	if !t.hasRead {
		t.hasRead = true
		t.noteSurge(reading.View)
	}
	t.wakeAt = t.plan(reading)
	_, at = t.outbox.ready(now)
	return t.next(at)
}

// noteSurge logs at the begin of a term that max_surge has no effect: each drain would stop first, without
// a word.
func (t *Term) noteSurge(v rules.View) {
	if beside, can := v.(rules.SurgeView); !can || !beside.PlacesBeside() {
		t.config.Logger.Info("max_surge has no effect: the state does not show that its scheduler places a replacement " +
			"beside the allocation that it replaces (rules.SurgeView)")
	}
}

// next is the time of the next step if nothing happens before. The outbox's time matters only
// while it has something to write or waits for an answer.
func (t *Term) next(outboxAt time.Time) time.Time {
	if t.outbox.behind || t.outbox.round.inFlight > 0 {
		return earliest(outboxAt, t.wakeAt)
	}
	return t.wakeAt
}

// checkClock makes the next read complete when the clock was set back. Otherwise every wait would
// be longer by that amount.
func (t *Term) checkClock(now time.Time) {
	if now.Before(t.stepped) {
		t.config.Logger.Warn("the clock was set back", "by", t.stepped.Sub(now))
		t.reader.readAll()
	}
	t.stepped = now
}

// plan steps the components, plans the nodes and begins the wanted writes. The plan of a node
// depends on no plan of a group, and names the groups to plan again. So nodes come first, and one
// pass is enough.
func (t *Term) plan(reading Reading) (wakeAt time.Time) {
	wakeAt = t.nodeWatcher.Step(reading)
	t.nodes.notifier.Step(reading)
	t.nodes.track(t.tracker.posts.Take(), reading.View)
	t.nodes.noteChanges(reading)
	select {
	case ids := <-t.nodes.notifier.NextBatch():
		t.nodes.deadlinesPassed(ids)
	default:
	}
	planned := t.nodes.plan(reading)
	wakeAt = earliest(wakeAt, t.nodes.jobs.Step(reading))
	t.nodes.noteForeign(reading.Now)
	wakeAt = earliest(wakeAt, t.write(reading, t.receive(planned)))
	wakeAt = earliest(wakeAt, t.nodes.notifier.Step(reading)) // for the deadlines that were added
	if t.nodes.agenda.Pending() {
		return reading.Now
	}
	return earliest(wakeAt, t.nodes.agenda.First())
}

// receive returns the job watcher's request, or an empty one. It makes nodes due that allocations
// have left, except nodes that this step has planned.
func (t *Term) receive(planned []cluster.NodeID) (request *DrainRequest) {
	request = &DrainRequest{}
	select {
	case request = <-t.nodes.jobs.Drain():
	default:
	}
	select {
	case moved := <-t.nodes.jobs.Migrated():
		t.config.Logger.Debug("allocations left draining nodes", "nodes", moved)
		t.nodes.makeDue(slices.DeleteFunc(moved, func(id cluster.NodeID) bool {
			_, is := slices.BinarySearch(planned, id)
			return is
		}))
	default:
	}
	return request
}

// write begins a round of writes if there is something to write. It returns when to retry, or zero.
func (t *Term) write(reading Reading, request *DrainRequest) time.Time {
	w := writes{reevaluate: request.Reevaluate}
	w.marks, w.completions = t.nodes.writes()
	for _, m := range request.Marks {
		if !rules.PlannedWithNode(m.Class) { // a watcher of an embedder may name them
			w.marks = append(w.marks, m)
		}
	}
	slices.SortFunc(w.marks, rules.Mark.Compare)
	return t.outbox.begin(w, reading, request.Reply)
}

// settle passes the answers to the nodes and the job watcher.
func (t *Term) settle(now time.Time) {
	for _, a := range t.outbox.settle(now) {
		t.stale = true
		for _, r := range a.answer.Response {
			t.config.Logger.Debug("the state machine refused an item", "node", r.Node, "alloc", r.Alloc, "why", r.Why)
		}
		t.nodes.answered(a, t.config.Retry, now)
		a.entry.answerRequest(a.answer, now)
	}
}

// refusedMarks returns the refused marks of an applied entry, by allocation.
func refusedMarks(a Answer) map[cluster.AllocID]bool {
	refused := make(map[cluster.AllocID]bool, len(a.Response))
	for _, r := range a.Response {
		if r.Alloc != "" {
			refused[r.Alloc] = true
		}
	}
	return refused
}
