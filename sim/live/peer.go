package live

import (
	"runtime"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// peer is one server: a state machine of its own and a drainer, which is enabled
// while the server leads. Only the leader applies as the log grows. The others fall
// behind, and catch up when one of them leads and has something committed: until then
// a new leader sees an old state, as in raft.
type peer struct {
	*contract
	number int // from 0
	// fsm belongs to the log's goroutine but for its store. applied is how many
	// entries of the log it has applied; the log's goroutine's too.
	fsm     *shims.FSM
	applied int
	// cut says that it stands still for good; the log's goroutine's.
	cut     bool
	drainer *drainer.NodeDrainer
	// leads is the leadership that the server believes in, or nil; guarded by the
	// contract's mu.
	leads *leadership

	view view
}

// newPeer returns a server with an empty state.
func (l *contract) newPeer(number int, config drainer.NodeDrainerConfig) (*peer, error) {
	s := &peer{contract: l, number: number}
	s.fsm = shims.NewFSM(shims.FSMConfig{OnApply: s.tell})
	config.Raft = shims.NewDrainerApplier(proposals{s, world.FromDrainer})
	config.NewEvalID = l.ids.eval
	var err error
	s.drainer, err = drainer.NewNodeDrainer(config)
	return s, err
}

func (s *peer) store() *statestore.Store { return s.fsm.Store() }

// apply applies one entry. It returns the response, nil if it is no message.
func (s *peer) apply(index uint64, e entry) (shims.Response, error) {
	switch {
	case e.place != nil:
		return nil, s.write(index, e.place)
	case e.data != nil:
		return s.fsm.ApplyEntry(index, e.data)
	}
	return nil, nil
}

// write writes what no message of the log could.
func (s *peer) write(index uint64, place func(*statestore.Txn) error) error {
	before := s.store().Snapshot()
	txn := s.store().Begin(index)
	defer txn.Abort()
	if err := place(txn); err != nil {
		return err
	}
	txn.Commit()
	s.tell(shims.Applied{Index: index, Response: shims.Skipped{}, Before: before, After: s.store().Snapshot()})
	return nil
}

// tell tells of an entry that the server has applied. Whoever hears of it looks at the
// truth, which has to show it by then.
func (s *peer) tell(a shims.Applied) {
	s.outrun()
	s.observe(a)
}

// outrun notes that no server has applied more, if that is so.
func (s *peer) outrun() {
	if s.applied >= s.newest.Load().applied {
		s.newest.Store(s)
	}
}

// state is the newest state that the server sees.
func (s *peer) state() *statestore.Snapshot {
	if frozen := s.view.frozen(); frozen != nil {
		return frozen
	}
	return s.store().Snapshot()
}

// freeze has the server see nothing new for a while.
func (s *peer) freeze(d time.Duration) {
	if d > 0 && s.view.freeze(s.store().Snapshot(), time.Now().Add(d)) {
		time.AfterFunc(d, s.thaw)
	}
}

// thaw has the server look again, if it has waited for long enough.
func (s *peer) thaw() {
	if s.view.frozen() == nil {
		s.view.open()
	}
}

// pause has the server's process stand still, as far as others can see: it sees nothing
// new, hears no answer, and what it proposes does not leave. Its goroutines cannot be
// stopped, and its timers fire.
func (s *peer) pause(d time.Duration) {
	s.view.pause(time.Now().Add(d))
	s.freeze(d)
}

// awake is a time, or when the server's process runs again if that is later.
func (s *peer) awake(at time.Time) time.Time { return later(at, s.view.paused()) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// view is what keeps a server from seeing what there is.
type view struct {
	mu sync.Mutex
	// held is the state that is seen until the time until; nil is the newest. Guarded
	// by mu, as the rest.
	held  *statestore.Snapshot
	until time.Time
	// pausedUntil is until when the process stands still, or long past.
	pausedUntil time.Time
	// rouse are called when there is something to see again, and never block.
	rouse []func()
}

// frozen is the state that is seen, or nil if it is the newest.
func (v *view) frozen() *statestore.Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !time.Now().Before(v.until) {
		v.held = nil
	}
	return v.held
}

// freeze has a state be seen until a time, unless one is that long already.
func (v *view) freeze(state *statestore.Snapshot, until time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !until.After(v.until) {
		return false
	}
	if v.held == nil {
		v.held = state
	}
	v.until = until
	return true
}

func (v *view) pause(until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pausedUntil = later(v.pausedUntil, until)
}

func (v *view) paused() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.pausedUntil
}

// clear has everything be seen and the process run, for those who subscribe from now
// on.
func (v *view) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.held, v.until, v.pausedUntil, v.rouse = nil, time.Time{}, time.Time{}, nil
}

// end has everything be seen and the process run at once.
func (v *view) end() {
	v.mu.Lock()
	v.held, v.until, v.pausedUntil = nil, time.Time{}, time.Time{}
	v.mu.Unlock()
	v.open()
}

// subscribe adds what to call when there is something to see again.
func (v *view) subscribe(rouse func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.rouse = append(v.rouse, rouse)
}

// open has everybody look again.
func (v *view) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, rouse := range v.rouse {
		rouse()
	}
}

// reader is how a server's drainer reads its state, with faults between.
type reader struct {
	drainer.StateReader
	server *peer
}

// Snapshot returns what the server sees. It gives way to others then: what they wake the
// drainer for while it steps must not be lost.
func (r reader) Snapshot() rules.View {
	s := r.server
	if delay, strikes := s.faults.strike(scenario.LeaderPaused, target{}); strikes {
		s.pause(delay)
	}
	if delay, strikes := s.faults.strike(scenario.ViewStale, target{}); strikes {
		s.freeze(delay)
	}
	view := r.StateReader.Snapshot()
	if frozen := s.view.frozen(); frozen != nil {
		view = frozen
	}
	runtime.Gosched() // for others to do something in the middle of the step
	return view
}

// Subscribe returns a feed whose wake-ups travel.
func (r reader) Subscribe(wake chan<- struct{}) drainer.Feed {
	f := &feed{server: r.server, woken: make(chan struct{}, 1), closed: make(chan struct{})}
	f.Feed = r.StateReader.Subscribe(f.woken)
	r.server.view.subscribe(func() { send(f.woken) })
	go f.forward(wake)
	return f
}
