package drainer

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/time/rate"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/alarm"
)

// Term is the drainer of one leadership term: everything it decides, and nothing
// that waits. [NodeDrainer] runs one on a goroutine of its own; a simulator or a
// test steps one by hand, with the same schedule.
//
// A term knows nothing but its state: a new one for the same state reaches the
// same end (G7).
type Term struct {
	config  NodeDrainerConfig
	logger  hclog.Logger
	state   StateReader
	feed    Feed
	wake    chan<- struct{}
	done    chan struct{} // closed by Close
	poked   atomic.Bool   // a component asked for a step
	tracker tracker

	mu sync.Mutex // held by Step, Close and Explain; guards what follows
	// The components, stepped in this order; never nil.
	nodeWatcher DrainingNodeWatcher
	notifier    DrainDeadlineNotifier
	jobWatcher  DrainingJobWatcher

	writer  *writer
	limiter *rate.Limiter
	closed  bool
	// abandoned says that the store was replaced: the term has nothing to
	// decide from any more.
	abandoned bool

	// changes are those not looked at yet.
	changes Changes
	// notBefore is when the limiter lets the state be looked at, or zero.
	notBefore time.Time
	// stepped is when the term was last stepped.
	stepped time.Time
	// wakeAt is when the next step is wanted although nothing changed, or zero.
	wakeAt time.Time
	// again says that something was posted to a component that has had its turn.
	again bool
	// unheard says that groups were told of in this step to which the job watcher has to
	// listen before anything is written, deferred that the last step wrote nothing for that.
	unheard, deferred bool

	nodes map[cluster.NodeID]*drainingNode
	// dirty are the nodes to plan in this step.
	dirty map[cluster.NodeID]bool
	// gathered are those to plan when nothing is in flight.
	gathered map[cluster.NodeID]bool
	// alarms are when nodes are to be planned anew although nothing changed.
	alarms alarm.Heap[cluster.NodeID]
	// waiting are the nodes whose drain waits for a job's replacements.
	waiting map[cluster.JobKey]map[cluster.NodeID]bool
	// ready are the nodes with marks or a completion to write.
	ready map[cluster.NodeID]bool
	// request is the job watcher's newest wish, or nil before the first.
	request *DrainRequest
	// wanted is since when each mark has been planned or in flight.
	wanted map[cluster.AllocID]time.Time
	// withdrawn says that some of them may not be wanted any more.
	withdrawn bool
}

// NewTerm begins a term over the state. After each change of what it looks at,
// and each answer to one of its writes, it sends to wake without blocking: the
// owner then calls Step. Close ends it.
func NewTerm(c NodeDrainerConfig, state StateReader, wake chan<- struct{}) (*Term, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	if state == nil {
		return nil, errors.New("a term needs a state to read")
	}
	t := &Term{
		config:   c,
		logger:   c.Logger.Named("drain"),
		state:    state,
		wake:     wake,
		done:     make(chan struct{}),
		tracker:  tracker{tracked: map[cluster.NodeID]cluster.Revision{}},
		writer:   newWriter(c),
		limiter:  rate.NewLimiter(rate.Limit(c.StateQueriesPerSecond), c.queryBurst()),
		changes:  Changes{All: true},
		nodes:    map[cluster.NodeID]*drainingNode{},
		dirty:    map[cluster.NodeID]bool{},
		gathered: map[cluster.NodeID]bool{},
		waiting:  map[cluster.JobKey]map[cluster.NodeID]bool{},
		ready:    map[cluster.NodeID]bool{},
		wanted:   map[cluster.AllocID]time.Time{},
	}
	t.feed = state.Subscribe(wake)
	env := t.env()
	t.nodeWatcher = c.NodeWatcher(env, &t.tracker)
	t.jobWatcher = c.JobWatcher(env)
	t.notifier = c.DeadlineNotifier(env)
	if t.nodeWatcher == nil || t.jobWatcher == nil || t.notifier == nil {
		t.Close()
		return nil, errors.New("NodeDrainerConfig: a factory built nothing")
	}
	return t, nil
}

func (t *Term) env() Env {
	return Env{
		Logger: t.logger, State: t.state, Feed: t.feed, Wake: t.poke, Done: t.done,
		Policy: t.config.Policy, MarksAhead: t.config.MaxInFlight * t.config.MaxIDsPerEntry, DeadlineCoalesce: t.config.DeadlineCoalesce,
		RetryBase: t.config.RetryBase, RetryMax: t.config.RetryMax,
	}
}

// Close ends the term: nothing is written from then on, and answers to what is
// in flight are forgotten. It waits for a running Step, which never blocks.
func (t *Term) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	t.feed.Close()
	close(t.done)
}

// poke asks for a step on behalf of a component.
func (t *Term) poke() {
	t.poked.Store(true)
	t.rouse()
}

func (t *Term) rouse() {
	select {
	case t.wake <- struct{}{}:
	default: // a wake-up is there already
	}
}

// reply is the Reply of a write.
func (t *Term) reply(e *entry) Reply {
	return func(a Answer) {
		t.writer.inbox.post(answered{entry: e, answer: a})
		t.rouse()
	}
}

// Step decides and writes what is to be done now. It returns when it wants to be
// called at the latest; zero is not before a wake-up. It may be called sooner,
// and for nothing. It never blocks.
func (t *Term) Step(now time.Time) (wakeAt time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.abandoned {
		return time.Time{}
	}
	t.watchClock(now)
	answers := t.writer.inbox.take()
	for _, a := range answers {
		t.settle(a, now)
	}
	t.changes.merge(t.feed.Take())
	if t.changes.Abandoned {
		t.abandoned = true
		t.logger.Warn("the state store was replaced, deciding nothing until the next term")
		return time.Time{}
	}
	if ready, at := t.writer.confirm(now, t.reply(nil)); !ready {
		return at
	}
	poked := t.poked.Swap(false)
	if len(answers) == 0 && t.changes.Empty() && !poked && !t.due(now) {
		return t.wakeAt
	}
	look, at := t.look(now)
	if look.View == nil {
		t.wakeAt = at
		return at
	}
	t.wakeAt = t.decide(look)
	return t.wakeAt
}

// watchClock looks everywhere when the clock was set back: what was to be done
// at a time, or not before one, would wait for that much longer.
func (t *Term) watchClock(now time.Time) {
	if now.Before(t.stepped) {
		t.logger.Warn("the clock was set back", "by", t.stepped.Sub(now))
		t.notBefore = time.Time{}
		t.changes = Changes{All: true}
	}
	t.stepped = now
}

func (t *Term) due(now time.Time) bool { return !t.wakeAt.IsZero() && !now.Before(t.wakeAt) }

// look takes a snapshot, if the limiter allows and the state shows all that was
// answered; otherwise it says when to try again.
func (t *Term) look(now time.Time) (Look, time.Time) {
	if t.notBefore.IsZero() {
		t.notBefore = now.Add(t.limiter.ReserveN(now, 1).DelayFrom(now))
	}
	if now.Before(t.notBefore) {
		return Look{}, t.notBefore
	}
	t.notBefore = time.Time{}
	view := t.state.Snapshot()
	if view.Index() < t.writer.minIndex {
		return Look{}, now.Add(t.config.RetryBase)
	}
	look := Look{Now: now, View: view, Changes: t.changes, InFlight: t.writer.sends(), findings: newFindings(len(t.changes.Nodes) + len(t.changes.Hosts))}
	t.changes = Changes{}
	return look, time.Time{}
}

// decide steps the components, plans the nodes and writes what is wanted.
func (t *Term) decide(look Look) (wakeAt time.Time) {
	t.again, t.unheard = false, false
	wakeAt = t.nodeWatcher.Step(look)
	t.track(look)
	wakeAt = earliest(wakeAt, t.notifier.Step(look))
	t.ring(look)
	wakeAt = earliest(wakeAt, t.jobWatcher.Step(look))
	t.receive(look)
	t.seePluginsTurns(look)
	t.planNodes(look)
	t.undate()
	if t.deferred = t.unheard && !t.deferred; t.deferred { // once: each step may find more
		return look.Now
	}
	wakeAt = earliest(wakeAt, t.submit(look))
	wakeAt = earliest(wakeAt, t.alarms.First())
	if t.again || t.unheard {
		return look.Now
	}
	return wakeAt
}

// settle takes in one answer and tells those who wished for the write.
func (t *Term) settle(a answered, now time.Time) {
	t.writer.settle(a, now)
	if a.entry == nil {
		if a.answer.Outcome != Applied {
			t.logger.Warn("barrier failed", "outcome", a.answer.Outcome, "error", a.answer.Err, "attempt", t.writer.asked.count)
		}
		return
	}
	if a.answer.Outcome != Applied {
		t.logger.Warn("raft write failed", "outcome", a.answer.Outcome, "error", a.answer.Err,
			"marks", len(a.entry.wishes), "completions", len(a.entry.completions), "attempt", t.writer.failed.count)
	}
	for _, r := range a.answer.Refused {
		t.logger.Debug("refused when applied", "node", r.Node, "alloc", r.Alloc, "why", r.Why)
	}
	reply := DrainReply{Answer: a.answer, At: now}
	refused := refusals(a.answer)
	for _, w := range a.entry.wishes {
		switch {
		case w.withNode:
			t.answerNode(w.mark.Node, w.mark.Alloc, a.answer, refused[Refusal{Alloc: w.mark.Alloc}], now)
		case w.reevaluate:
			reply.Reevaluated = append(reply.Reevaluated, w.mark.Group)
		default:
			reply.Marks = append(reply.Marks, w.mark)
		}
	}
	// What was written is wanted no longer, but for what was refused and is wanted
	// still, under another class perhaps; and what was not may have ceased to be wanted
	// while it was on its way.
	t.withdrawn = true
	for _, c := range a.entry.completions {
		t.answerNode(c.Node, "", a.answer, refused[Refusal{Node: c.Node}], now)
	}
	t.forgetAnswered(reply)
	if a.entry.reply != nil && len(reply.Marks)+len(reply.Reevaluated) > 0 {
		a.entry.reply(reply)
	}
}

// refusals indexes what was refused: by allocation, or of completions by node.
func refusals(a Answer) map[Refusal]bool {
	refused := make(map[Refusal]bool, len(a.Refused))
	for _, r := range a.Refused {
		if r.Alloc != "" {
			refused[Refusal{Alloc: r.Alloc}] = true
		} else {
			refused[Refusal{Node: r.Node}] = true
		}
	}
	return refused
}

// answerNode has a node planned anew after an answer to a mark of it, or to its
// completion if the id is empty.
func (t *Term) answerNode(node cluster.NodeID, id cluster.AllocID, a Answer, refused bool, now time.Time) {
	if n := t.nodes[node]; n != nil {
		t.dirty[node] = true
		n.answered(id, a, refused, t.writer.backoff, now)
	}
}
