package world

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/setting"
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
	added int // slots

	log     raftLog
	clients *fleet
	ids     ids
	faults  faults
	// requests makes what operators ask for; never nil.
	requests *setting.Requests

	servers []*server
	// leader is what runs on the server that leads; never nil.
	leader *leadership
	// deposed are leaderships that do not know that they have ended.
	deposed []*leadership
	terms   int
	steps   int
	// kind is that of the step that was taken last, cause the step that asked for it.
	kind  Kind
	cause int
	asked int // steps that onStep was asked about
	// racing counts the writes between whose plan and apply comes what is asked for
	// now: more than one only during an election.
	racing int
	// broken is why the world cannot go on, or nil.
	broken error
	hash   hash
	spent  spent

	// observed is the index of the last entry that the observers were shown.
	observed uint64
	// history are the states after the last entries, the newest last.
	history []*statestore.Snapshot

	observers []func(shims.Applied)
	replicas  []func(server int, a shims.Applied)
	onElect   []func(server int)
	onEnd     []func(term int)
	onClock   []func(term int, ahead time.Duration)
	onRestore []func(taken, restored *statestore.Snapshot)
	onPropose []func(Proposal)
	onAnswer  []func(term, n int, a shims.Answer)
	onDrainer []func(DrainerStep)
	fate      func(Write) Fate
	onStep    func(step int) error
	onQuiet   func() error
	onStill   func() error
}

// New returns a world without nodes, whose first server leads.
func New(o Options) (*World, error) {
	w := &World{options: o.withDefaults(), now: Epoch, streams: newStreams(o.Seed)}
	for k := range KindCount {
		w.ties[k] = Stream(o.Seed, "tie/"+k.String())
	}
	w.log.world = w
	w.requests = w.newRequests()
	w.faults.evals = map[cluster.EvalID]bool{}
	w.startServers()
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

// Now is the world's time.
func (w *World) Now() time.Time { return w.now }

// Servers is how many servers there are.
func (w *World) Servers() int { return len(w.servers) }

// Entries is how many entries were committed, raft's own included.
func (w *World) Entries() int { return len(w.log.entries) }

// Steps is how many steps were taken.
func (w *World) Steps() int { return w.steps }

// Step is of which kind the step was that was taken last, and in which step what it does
// was asked for: where the write that it settles was proposed, where the drainer that it
// steps was woken or said until when it waits. Zero is before the first step.
func (w *World) Step() (k Kind, cause int) { return w.kind, w.cause }

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

// State is the state that the leader's drainer sees: its server's newest, unless a
// fault keeps it from that.
func (w *World) State() *statestore.Snapshot { return w.leader.sight.state() }

// Leader is the server that leads, from 0, and Term the number of its term.
func (w *World) Leader() int { return w.leader.server.number }

// Term counts the leaderships so far.
func (w *World) Term() int { return w.terms }

// Explain is the leader's report of a draining node. The error wraps
// [rules.ErrNotDraining].
func (w *World) Explain(id cluster.NodeID) (rules.Report, error) {
	return w.leader.drainer.Explain(id, w.Clock())
}

// Writes is how many writes the source has proposed, barriers included, since
// OnWrite was last called.
func (w *World) Writes(s Source) int { return w.log.count[s] }

// WakeDrainer has the leader's drainer stepped for nothing.
func (w *World) WakeDrainer() { w.leader.drains.wake() }
