package world

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// World is one cluster in one goroutine. It is not safe for concurrent use.
type World struct {
	options Options
	now     time.Time
	streams streams
	// ties are the streams of the ties of each kind of event.
	ties  [KindCount]*rand.Rand
	queue queue
	slots []*slot

	log     raftLog
	clients *fleet
	ids     ids
	faults  faults

	servers []*server
	// leader is what runs on the server that leads; never nil.
	leader *leadership
	// deposed are leaderships that do not know that they have ended.
	deposed   []*leadership
	terms     int
	elections int
	steps     int
	asked     int // steps that onStep was asked about
	// racing says that what is asked for now comes between plan and apply of a write.
	racing bool
	hash   hash

	// observed is the index of the last entry that the observers were shown.
	observed uint64
	// history are the states after the last entries, the newest last.
	history []*statestore.Snapshot

	observers []func(shims.Applied)
	replicas  []func(server int, a shims.Applied)
	onElect   []func(server int)
	onEnd     []func(term int)
	onRestore []func(taken, restored *statestore.Snapshot)
	onPropose []func(Proposal)
	onAnswer  []func(term, n int, a shims.Answer)
	onDrainer []func(DrainerStep)
	fate      func(Write) Fate
	onStep    func(step int) error
	onQuiet   func() error
}

// DrainerStep is one step of a drainer.
type DrainerStep struct {
	Server int // from 0
	// Term counts the leaderships of the world, from 1.
	Term int
	// Woken says that it was woken, and not only due.
	Woken bool
	// At is the server's time, WakeAt what the step returned.
	At, WakeAt time.Time
	// View is the state that it looked at last, or nil if it did not look. Looks is
	// how many it looked at.
	View  *statestore.Snapshot
	Looks int
}

// ErrTooManySteps says that a world runs in circles.
var ErrTooManySteps = errors.New("too many steps")

// New returns a world without nodes, whose first server leads.
func New(o Options) (*World, error) {
	w := &World{options: o.withDefaults(), now: Epoch, streams: newStreams(o.Seed)}
	for k := range KindCount {
		w.ties[k] = Stream(o.Seed, "tie/"+k.String())
	}
	w.log.world, w.faults.world = w, w
	w.start()
	var err error
	if w.clients, err = newFleet(w); err != nil {
		return nil, fmt.Errorf("simulating clients: %w", err)
	}
	w.add(Log, &w.log)
	if err := w.lead(w.servers[0]); err != nil {
		return nil, err
	}
	w.add(Clients, w.clients)
	return w, nil
}

// start starts the servers.
func (w *World) start() {
	var shared *machine
	for i := range w.options.Servers {
		s := &server{number: i, machine: shared}
		if s.machine == nil {
			s.machine = newMachine(func(a shims.Applied) { w.observe(i, a) })
		}
		if w.options.Views {
			shared = s.machine
		}
		w.servers = append(w.servers, s)
	}
}

// Now is the world's time.
func (w *World) Now() time.Time { return w.now }

// Servers is how many servers there are.
func (w *World) Servers() int { return len(w.servers) }

// Entries is how many entries were committed, raft's own included.
func (w *World) Entries() int { return len(w.log.entries) }

// Steps is how many steps were taken.
func (w *World) Steps() int { return w.steps }

// Hash is the hash of every step so far and of every entry: equal for equal
// scripts and seeds on every machine.
func (w *World) Hash() uint64 { return uint64(w.hash) }

// Truth is the newest state that any server has had: a new leader may have yet to
// catch up with it.
func (w *World) Truth() *statestore.Snapshot {
	newest := w.servers[0].machine
	for _, s := range w.servers[1:] {
		if s.machine.applied > newest.applied {
			newest = s.machine
		}
	}
	return newest.state()
}

// State is the leader's newest state.
func (w *World) State() *statestore.Snapshot { return w.leader.server.state() }

// Leader is the server that leads, from 0, and Term the number of its term.
func (w *World) Leader() int { return w.leader.server.number }

// Term counts the leaderships so far.
func (w *World) Term() int { return w.terms }

// Settled reports whether the leader's drainer has nothing to do, and nothing it
// proposed is under way: what it says now is said at a quiet point.
func (w *World) Settled() bool {
	l := w.leader
	if !l.caughtUp || l.server.behind != nil || w.now.Before(l.established) || w.now.Before(l.server.pausedUntil) {
		return false
	}
	if len(l.drains.woken) > 0 || !l.drains.wokenAt.IsZero() {
		return false
	}
	for _, p := range w.log.queue {
		if p.Source == FromDrainer {
			return false
		}
	}
	return true
}

// Explain is what the leader's drainer says of a draining node; false if the node
// does not drain.
func (w *World) Explain(id cluster.NodeID) (drainer.Report, bool) {
	return w.leader.drainer.Explain(id, w.Clock())
}

// Applied is one entry that was applied.
type Applied = shims.Applied

// Writes is how many writes the source has proposed, barriers included, since
// OnWrite was last called.
func (w *World) Writes(s Source) int { return w.log.count[s] }

// WakeDrainer has the leader's drainer stepped for nothing.
func (w *World) WakeDrainer() { w.leader.drains.wake() }

// OnApply calls f for each entry that is applied, once, in the order of the log.
func (w *World) OnApply(f func(shims.Applied)) { w.observers = append(w.observers, f) }

// OnWrite has f decide the fate of every write from now on, and counts the writes
// of each source from zero again. Where f says that a write is applied, faults that
// are armed may still strike it.
func (w *World) OnWrite(f func(Write) Fate) {
	w.fate = f
	w.log.count = [sourceCount]int{}
}

// Before has something done once, between plan and apply: just before the first
// write that match accepts is applied. What is done commits; see [World.Commit].
func (w *World) Before(match func(shims.Message) bool, do func() error) {
	w.log.hooks = append(w.log.hooks, hook{match, do})
}

// OnStep calls f before every step, with the number of the step. f may have the
// world elect, or change it otherwise.
func (w *World) OnStep(f func(step int) error) { w.onStep = f }

// OnQuiet calls f whenever nobody has anything to do before the time moves on.
func (w *World) OnQuiet(f func() error) { w.onQuiet = f }

// OnReplica calls f for each entry that a server applies, whoever was first.
func (w *World) OnReplica(f func(server int, a shims.Applied)) { w.replicas = append(w.replicas, f) }

// OnElect calls f whenever a server begins to lead, from now on.
func (w *World) OnElect(f func(server int)) { w.onElect = append(w.onElect, f) }

// OnEnd calls f whenever a term has ended and its drainer knows.
func (w *World) OnEnd(f func(term int)) { w.onEnd = append(w.onEnd, f) }

// OnRestore calls f with the state of which a snapshot was taken and the one that was
// restored from it.
func (w *World) OnRestore(f func(taken, restored *statestore.Snapshot)) {
	w.onRestore = append(w.onRestore, f)
}

// OnPropose calls f for every write that a drainer proposes.
func (w *World) OnPropose(f func(Proposal)) { w.onPropose = append(w.onPropose, f) }

// OnAnswer calls f when a drainer is told of a write of its term what became of it.
func (w *World) OnAnswer(f func(term, n int, a shims.Answer)) { w.onAnswer = append(w.onAnswer, f) }

// OnDrainer calls f after every step of a drainer.
func (w *World) OnDrainer(f func(DrainerStep)) { w.onDrainer = append(w.onDrainer, f) }

// historyLength is how many states a server may be behind that begins to lead.
const historyLength = 8

// observe is told of every entry that a server applies.
func (w *World) observe(server int, a shims.Applied) {
	for _, f := range w.replicas {
		f(server, a)
	}
	w.clients.applied(a)
	w.leader.schedules.wake()
	if a.Index <= w.observed {
		return // a server catches up
	}
	w.observed = a.Index
	if len(w.history) == historyLength {
		w.history = append(w.history[:0], w.history[1:]...)
	}
	w.history = append(w.history, a.After)
	for _, f := range w.observers {
		f(a)
	}
}

// At has something done at a time, which must not have passed. What is to be done
// at one time is done in the order in which it was asked for, if there is no seed.
func (w *World) At(at time.Time, do func() error) {
	w.queue.push(&event{at: at, tie: w.tie(Scripted), kind: Scripted, do: do})
}

// Run steps until nobody has anything to do any more, or would have only after
// the limit, which it reports as idle being false. The time is the limit then.
func (w *World) Run(limit time.Time) (idle bool, err error) {
	for {
		w.queueSlots()
		e := w.queue.next()
		if e == nil || e.at.After(w.now) {
			if err := w.quiet(); err != nil {
				return false, w.located(err)
			}
			if w.queueSlots(); w.queue.next() != e {
				continue // somebody was roused
			}
		}
		switch {
		case e == nil:
			return true, nil
		case e.at.After(limit):
			w.now = limit
			return false, nil
		}
		w.now = later(w.now, e.at)
		if err := w.step(e); err != nil {
			return false, w.located(err)
		}
	}
}

func (w *World) located(err error) error {
	return fmt.Errorf("at %s, step %d: %w", w.now.Sub(Epoch), w.steps, err)
}

// quiet is called before the time moves on.
func (w *World) quiet() error {
	if w.onQuiet == nil {
		return nil
	}
	return w.onQuiet()
}

// step has happen what is next.
func (w *World) step(e *event) error {
	if w.onStep != nil && w.asked <= w.steps {
		w.asked = w.steps + 1 // once for each, whatever comes of it
		if err := w.onStep(w.steps); err != nil {
			return err
		}
		if w.queueSlots(); w.queue.next() != e {
			return nil // something else is next now
		}
	}
	if w.steps++; w.steps > w.options.MaxSteps {
		return ErrTooManySteps
	}
	w.queue.pop()
	w.hash.add(uint64(w.now.Sub(Epoch)), uint64(e.kind), uint64(w.log.length()))
	if e.slot == nil {
		return e.do()
	}
	e.slot.at = time.Time{}
	return e.slot.actor.step()
}

// ids makes ids that sort in the order in which they were made.
type ids struct{ allocs, evals, drains, undos int }

func (i *ids) alloc() cluster.AllocID {
	i.allocs++
	return cluster.AllocID(fmt.Sprintf("a%06d", i.allocs))
}

func (i *ids) eval() cluster.EvalID {
	i.evals++
	return cluster.EvalID(fmt.Sprintf("e%06d", i.evals))
}

func (i *ids) drain() cluster.DrainID {
	i.drains++
	return cluster.DrainID(fmt.Sprintf("d%06d", i.drains))
}
