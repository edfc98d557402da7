package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// depose ends the leader's term in one of three ways. The leader transfers its leadership, and
// its writes in flight survive. Or it crashes, and they may be lost. Or it is cut off, and
// believes for some time that it still leads.
func (s *servers) depose(e scenario.Elect) error {
	old := s.leader(s.over)
	if old == nil {
		return nil // the play is over
	}
	if delay, strikes := s.faults.strike(scenario.LeaderTwo, target{}); strikes {
		e.Believes = max(e.Believes, delay)
	}
	switch {
	case e.Believes > 0:
		s.isolate(old, true)
		s.awaitAnother(old)
		sleep(s.over, e.Believes)
		s.isolate(old, false)
		return nil
	case e.Lost:
		return s.crash(old)
	}
	s.handOver(old, e.Server)
	return nil
}

// handOver makes the leader transfer its leadership: to the member of the given number, from 1,
// or to any member if the number is zero or the leader's own.
func (s *servers) handOver(old *member, number int) {
	transfer := func(r *raft.Raft) error { return r.LeadershipTransfer().Error() }
	if number > 0 && s.member(number) != old {
		to := s.member(number).voter
		transfer = func(r *raft.Raft) error { return r.LeadershipTransferToServer(to.ID, to.Address).Error() }
	}
	for s.over.Err() == nil && s.leader(s.over) == old {
		_ = transfer(s.process(old).Raft()) // the loop retries
		sleep(s.over, pollInterval)
	}
}

// member returns the member of a number, from 1.
func (s *servers) member(number int) *member { return s.members[(number-1)%memberCount] }

// crash kills a member's process, and starts it again when another member leads.
func (s *servers) crash(m *member) error {
	process := s.process(m)
	s.mu.Lock()
	m.server, m.transport = nil, nil
	s.mu.Unlock()
	s.connect()
	if err := process.Shutdown(); err != nil {
		return fmt.Errorf("killing %s: %w", m.voter.ID, err)
	}
	s.awaitAnother(m)
	return s.boot(m)
}

// awaitAnother waits until another member leads.
func (s *servers) awaitAnother(old *member) {
	for s.over.Err() == nil {
		for _, m := range s.members {
			if p := s.process(m); m != old && p != nil && p.Leads() {
				return
			}
		}
		sleep(s.over, pollInterval)
	}
}

// restore makes the leader take a snapshot, crash, and restart from it.
func (s *servers) restore() error {
	m := s.leader(s.over)
	if m == nil {
		return nil // the play is over
	}
	if err := s.process(m).Raft().Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	return s.crash(m)
}

// pause cuts a server off for a duration. Servers count from 1; zero is the leader.
func (s *servers) pause(number int, d time.Duration) {
	m := s.leader(s.over)
	if m == nil {
		return // the play is over
	}
	if number > 0 {
		m = s.member(number)
	}
	s.isolate(m, true)
	time.AfterFunc(d, func() { s.isolate(m, false) })
}

// flap ends the new term after a delay, if a fault strikes.
func (s *servers) flap() {
	if delay, strikes := s.faults.strike(scenario.LeaderFlap, target{}); strikes {
		s.deposeLater(delay)
	}
}

// loseLeaderMidBatch ends the term while the drainer's batch is being applied, if the entry
// is the drainer's and a fault strikes.
func (p *player) loseLeaderMidBatch(a shims.Applied) {
	switch a.Message.(type) {
	case *shims.AllocUpdateDesiredTransition, *shims.NodesDrainComplete:
		if delay, strikes := p.faults.strike(scenario.LeaderLoseMidBatch, target{}); strikes {
			p.servers.deposeLater(delay)
		}
	}
}

// deposeLater ends the term after a delay, unless the faults have ended by then. It draws
// whether the leader crashes or transfers its leadership.
func (s *servers) deposeLater(d time.Duration) {
	lost := s.random.below("survive", 2) == 1
	s.laterUnlessFaultsEnded(d, func() error { return s.depose(scenario.Elect{Lost: lost}) })
}
