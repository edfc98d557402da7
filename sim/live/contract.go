package live

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var _ servers = (*contract)(nil)

// newContract returns servers that have no state.
func newContract(p *player, config drainer.NodeDrainerConfig) (*contract, error) {
	l := &contract{player: p, wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{})}
	for i := range max(1, p.scenario.Cluster.Servers) {
		s, err := l.newPeer(i, config)
		if err != nil {
			return nil, fmt.Errorf("server %d: %w", i+1, err)
		}
		l.members = append(l.members, s)
	}
	l.newest.Store(l.members[0])
	return l, nil
}

// start writes what the scenario begins with, has the first server lead, and starts the
// log's goroutine.
func (l *contract) start() error {
	b := l.begin()
	for _, write := range b.writes {
		l.entries = append(l.entries, entry{place: write})
	}
	first := l.members[0]
	if _, err := l.applyAll(first); err != nil {
		return err
	}
	if err := l.lead(first); err != nil {
		return err
	}
	for _, j := range b.register {
		if err := l.put(l.requests.Register(j)); err != nil {
			return err
		}
	}
	go l.run()
	return nil
}

// propose asks whoever leads for a write.
func (l *contract) propose(s world.Source, m shims.Message, reply func(shims.Answer)) (taken bool) {
	if s != world.FromOperator || !l.racing {
		return l.take(nil, &proposal{source: s, message: m, reply: reply})
	}
	if err := l.put(m); err != nil {
		reply(rejected(err))
	}
	return true
}

// truth is the newest state that any server has.
func (l *contract) truth() *statestore.Snapshot { return l.newest.Load().store().Snapshot() }

// observe is told of every entry that a server applies.
func (l *contract) observe(a shims.Applied) {
	l.clients.notice(a)
	if l.leader != nil {
		l.leader.wake()
	}
	if a.Index > l.observed { // the others are those of a server that catches up
		l.observed = a.Index
		l.applied(a)
	}
}

// before has something done between plan and apply.
func (l *contract) before(kind scenario.EntryKind, do func() error) error {
	l.hooks = append(l.hooks, hook{func(m shims.Message) bool { return world.EntryKindOf(m) == kind }, do})
	return nil
}

func (l *contract) races() bool { return l.racing }

// place writes what no message could.
func (l *contract) place(write func(*statestore.Txn) error) error {
	l.entries = append(l.entries, entry{place: write})
	if l.leader == nil { // between two terms: the next leader applies it
		return nil
	}
	_, err := l.applyAll(l.leader.server)
	return err
}

func (l *contract) pause(number int, d time.Duration) error {
	if l.leader == nil {
		return nil // between two terms nobody stands still for long
	}
	s := l.leader.server
	if number > 0 {
		s = l.members[(number-1)%len(l.members)]
	}
	s.pause(d)
	return nil
}

// restore replaces the leader's store by one restored from a snapshot of it, and begins
// the term anew, as a server does.
func (l *contract) restore() error {
	led := l.leader
	if led == nil {
		return nil // a term begins anyway
	}
	s := led.server
	var snapshot bytes.Buffer
	if err := s.store().Snapshot().Persist(&snapshot); err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	if err := s.fsm.Restore(io.NopCloser(&snapshot)); err != nil {
		return err
	}
	l.clients.fleet.ChangedAll()
	led.over = true
	_ = s.drainer.SetEnabled(false, nil) // what is disabled cannot fail
	led.stop()
	return l.lead(s)
}

// forget enables the leader's drainer anew over the same state.
func (l *contract) forget() error {
	if l.leader == nil {
		return nil // a term begins anyway
	}
	return l.leader.enable()
}

// calm has every server run and see that is not cut off, and tells the deposed. If one
// that is cut off leads another takes over, and it never hears of that.
func (l *contract) calm(cut []int) error {
	for _, number := range cut {
		s := l.members[number-1]
		s.cut = true
		s.pause(scenario.Never)
	}
	for _, s := range l.members {
		if !s.cut {
			s.view.end()
		}
	}
	for _, led := range slices.Clone(l.deposed) {
		if !led.server.cut {
			led.stepDown()
		}
	}
	if l.leader == nil || !l.leader.server.cut {
		return nil
	}
	return l.depose(world.Election{Next: -1, Lost: true, Believes: scenario.Never})
}

// end ends the log's goroutine and then everything else, and has all servers apply the
// whole log.
func (l *contract) end() (*statestore.Snapshot, error) {
	close(l.stop)
	<-l.stopped
	for _, led := range append(slices.Clone(l.deposed), l.leader) {
		led.stepDown()
	}
	errs := []error{l.err}
	var want []byte
	for i, s := range l.members {
		if _, err := l.applyAll(s); err != nil {
			return nil, errors.Join(append(errs, err)...)
		}
		var got bytes.Buffer
		errs = append(errs, s.store().Snapshot().Dump(&got))
		if i == 0 {
			want = got.Bytes()
		} else if !bytes.Equal(want, got.Bytes()) {
			errs = append(errs, fmt.Errorf("server %d has another state than server 1", i+1))
		}
	}
	return l.truth(), errors.Join(errs...)
}
