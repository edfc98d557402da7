package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/simclient"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/alarm"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Question is what to play: which nodes to drain, how, and from when.
type Question struct {
	// Nodes are the nodes, each once. Their drains begin in this order.
	Nodes []cluster.NodeID
	// Spec is the strategy of each drain.
	Spec cluster.DrainSpec
	// At is the time at which the drains begin, never zero.
	At time.Time
	// Running plays the drains that run in the state and are not paused. Then there are no Nodes and no Spec.
	Running bool
	// OneByOne begins the drain of a node when the one before it has ended. Otherwise all begin at once.
	OneByOne bool
}

// Settings say how a play is done. The zero value uses the defaults.
type Settings struct {
	// Drainer is the configuration of the leader's drainer: its policy and its limits. The play
	// replaces Raft, NewEvalID, OnStep and Logger.
	Drainer drainer.NodeDrainerConfig
	// Seed is the seed of the times of clients. Plays with the same seed are equal.
	Seed uint64
	// Typical lets the clients take the median of the observed times. Then all seeds play the same.
	Typical bool
	// Scheduler makes the scheduler of the play. Nil is package scheduler.
	Scheduler NewScheduler
	// Elsewhere states that the store is of [LoadElsewhere].
	Elsewhere bool
	// MaxEntries bounds the entries of a play. Zero is [DefaultMaxEntries].
	MaxEntries int
	// MaxTime bounds the virtual time of a play. Zero is [DefaultMaxTime].
	MaxTime time.Duration
}

// Defaults of [Settings].
const (
	DefaultMaxEntries = 2_000_000
	DefaultMaxTime    = 7 * 24 * time.Hour
)

// maxSettling is how long a play goes on after its last drain, until the groups that it moved are as
// healthy as before.
const maxSettling = time.Hour

// maxIdle bounds the steps of a play at one virtual time that apply no entry. A play needs a few: those that follow
// an entry, and answers of barriers.
const maxIdle = 10_000

// play is one play. One goroutine owns it.
type play struct {
	question Question
	settings Settings
	fsm      *shims.FSM
	log      *log
	now      time.Time
	// limit is the end of the virtual time.
	limit time.Time
	tally *tally
	times times

	drainer     *drainer.Term
	drainerWake chan struct{}
	drainerAt   time.Time

	scheduler      Scheduler
	schedulerAwake bool
	schedulerAt    time.Time

	clients   *simclient.Fleet
	clientsAt time.Time

	// begun counts the nodes whose drain has begun.
	begun int
}

// Play drains a copy of the store in virtual time, and returns what came of it. It does not change the
// store, starts no goroutine and reads no clock. It ends early with the error of the context. Other
// errors mean that the question cannot be played: they wrap [statestore.ErrNodeNotFound] or
// [ErrQuestion]. A play that stands still ends with [ErrStandstill].
func Play(ctx context.Context, store *statestore.Store, q Question, s Settings) (*Result, error) {
	if err := q.check(store.Snapshot()); err != nil {
		return nil, err
	}
	p, err := newPlay(store.Fork(), q, s)
	if err != nil {
		return nil, fmt.Errorf("preparing a play: %w", err)
	}
	defer p.drainer.Close()
	if err := p.run(ctx); err != nil {
		return nil, err
	}
	return p.tally.result(p), nil
}

// ErrStandstill means that a step is due again and again, and does nothing. The scheduler of the play is wrong.
var ErrStandstill = errors.New("play stands still")

// ErrQuestion means that a question has no answer. Change the question.
var ErrQuestion = errors.New("question cannot be played")

func (q Question) check(state *statestore.Snapshot) error {
	if q.At.IsZero() {
		return fmt.Errorf("%w: it has no time", ErrQuestion)
	}
	if q.Running && len(q.Nodes) > 0 {
		return fmt.Errorf("%w: it names nodes beside the running drains", ErrQuestion)
	}
	if !q.Running && len(q.Nodes) == 0 {
		return fmt.Errorf("%w: it names no node", ErrQuestion)
	}
	seen := make(map[cluster.NodeID]bool, len(q.Nodes))
	for _, id := range q.Nodes {
		if seen[id] {
			return fmt.Errorf("%w: it names node %s twice", ErrQuestion, id)
		}
		seen[id] = true
		if state.Node(id) == nil {
			return fmt.Errorf("%w: %s", statestore.ErrNodeNotFound, id)
		}
	}
	return nil
}

// resumes reports whether the play begins with the end of the pause of all drains, because the drains of the question would
// not move under it. Forced drains do.
func (q Question) resumes(state *statestore.Snapshot) bool {
	return !q.Running && q.Spec.Deadline >= 0 && state.DrainView().DrainPause() != nil
}

func newPlay(copied *statestore.Store, q Question, s Settings) (*play, error) {
	p := &play{question: q, settings: s, now: q.At, drainerWake: make(chan struct{}, 1), schedulerAwake: true}
	if p.settings.MaxEntries == 0 {
		p.settings.MaxEntries = DefaultMaxEntries
	}
	if p.settings.MaxTime == 0 {
		p.settings.MaxTime = DefaultMaxTime
	}
	p.limit = q.At.Add(p.settings.MaxTime)
	p.fsm = shims.NewFSMOver(copied, shims.FSMConfig{OnApply: p.applied})
	p.log = &log{fsm: p.fsm, index: copied.Snapshot().Index(), answered: func() { p.schedulerAwake = true }}
	p.times = times{state: copied.Snapshot(), began: q.At, typical: s.Typical}
	p.tally = newTally(copied.Snapshot(), q, p.times)
	p.times.unit = unitOf(p.tally.allocs)

	if q.resumes(copied.Snapshot()) {
		p.log.Propose(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{At: q.At}}, func(shims.Answer) {})
	}

	ids := new(names)
	c := s.Drainer
	c.Raft, c.NewEvalID, c.OnStep, c.Logger = shims.NewDrainerApplier(p.log), ids.eval, nil, nil
	var err error
	if p.drainer, err = drainer.NewTerm(c, copied.Reader(), p.drainerWake); err != nil {
		return nil, err
	}
	p.drainerAt, p.clientsAt = q.At, q.At // a term begins with a step, and so do clients
	if s.Scheduler == nil {
		s.Scheduler = reference
	}
	view := func() scheduler.View { return copied.Snapshot().WorkView() }
	if p.scheduler, err = s.Scheduler(view, shims.NewSchedulerApplier(p.log), scheduler.IDs{Alloc: ids.alloc, Eval: ids.eval}); err != nil {
		return nil, err
	}
	p.clients, err = newClients(p, copied, s.Seed, ids)
	return p, err
}

// maxInFlight is how many plans the scheduler of a play makes from one state. A scheduler reads all nodes for each state,
// and the log of a play applies the plans at once, so a play makes many from one state.
const maxInFlight = 256

// reference makes the scheduler of the servers.
func reference(view func() scheduler.View, applier scheduler.Applier, ids scheduler.IDs) (Scheduler, error) {
	return scheduler.New(scheduler.Config{Snapshot: view, Applier: applier, IDs: ids, MaxInFlight: maxInFlight})
}

// run plays until everything has ended, or a limit.
func (p *play) run(ctx context.Context) error {
	idle, entries := 0, 0 // idle counts the steps since the last entry or the last change of the time
	for steps := 0; ; steps++ {
		if steps%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if p.log.entries >= p.settings.MaxEntries {
			p.tally.cut = true
			return nil
		}
		if p.work() {
			if idle++; p.log.entries != entries {
				idle, entries = 0, p.log.entries
			}
			if idle > maxIdle {
				return fmt.Errorf("%w: %d steps at %s wrote nothing, and another one is due", ErrStandstill, maxIdle, p.now.Format(time.RFC3339))
			}
			continue
		}
		if p.over() {
			return nil
		}
		next := alarm.Earliest(alarm.Earliest(p.drainerAt, p.schedulerAt), p.clientsAt)
		switch {
		case next.IsZero():
			return nil // nothing will change
		case next.After(p.limit):
			p.tally.cut = true
			return nil
		case next.After(p.now):
			p.now, idle = next, 0
		}
	}
}

// work does one thing that is due now, and reports whether there was one.
func (p *play) work() bool {
	switch {
	case p.begin():
	case p.log.apply():
	case len(p.drainerWake) > 0 || due(p.drainerAt, p.now):
		select {
		case <-p.drainerWake:
		default:
		}
		p.drainerAt = p.drainer.Step(p.now)
	case p.schedulerAwake || due(p.schedulerAt, p.now):
		p.schedulerAwake = false
		p.schedulerAt = p.scheduler.Step(p.now)
	case len(p.clients.Woken()) > 0 || due(p.clientsAt, p.now):
		select {
		case <-p.clients.Woken():
		default:
		}
		p.clientsAt = p.clients.Step(p.now)
	default:
		return false
	}
	return true
}

// due reports whether a time has come; zero never does.
func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// begin begins the next drain, and reports whether one was due.
func (p *play) begin() bool {
	if p.begun == len(p.question.Nodes) || p.question.OneByOne && (p.tally.running > 0 || len(p.log.queue) > 0) {
		return false
	}
	id, spec := p.question.Nodes[p.begun], p.question.Spec
	p.begun++
	p.log.Propose(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: id, Spec: &spec, Drain: cluster.DrainID("plan-" + string(id)), At: p.now,
	}}, func(shims.Answer) {})
	return true
}

// applied wakes everything that an entry concerns.
func (p *play) applied(a shims.Applied) {
	p.schedulerAwake = true
	shims.ChangedNodes(a, p.clients.Changed)
	p.tally.entry(a, p.now)
}

// over reports whether the drains have ended, and the groups that they moved are as healthy as before.
func (p *play) over() bool {
	if p.begun < len(p.question.Nodes) || p.tally.running > 0 {
		return false
	}
	return p.question.Running || p.tally.recovered() || p.now.After(p.tally.lastEnd.Add(maxSettling))
}
