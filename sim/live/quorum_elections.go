package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// do has something done to servers.
func (q *quorum) do(errand func() error) {
	q.errands.add(func() {
		if err := errand(); err != nil {
			q.fail(err)
		}
	})
}

// depose ends the leader's term, in the way that raft has for it. What it has in flight
// survives when it hands over. It may be lost when it crashes, and it believes that it
// leads while it is cut off.
func (q *quorum) depose(e world.Election) error {
	old := q.leader(q.over)
	switch {
	case old == nil:
		return nil // the play is over
	case e.Believes > 0:
		q.connect(old)
		q.await(old)
		sleep(q.over, e.Believes)
		q.connect(nil)
		return nil
	case e.Lost:
		return q.crash(old)
	}
	return q.handOver(old, e.Next)
}

// handOver has the leader hand over to another, which is the one of that number if it
// is not the leader itself.
func (q *quorum) handOver(old *member, next int) error {
	transfer := func(r *raft.Raft) error { return r.LeadershipTransfer().Error() }
	if next >= 0 && q.members[next%quorumSize] != old {
		to := q.members[next%quorumSize].voter
		transfer = func(r *raft.Raft) error { return r.LeadershipTransferToServer(to.ID, to.Address).Error() }
	}
	for q.over.Err() == nil && q.leader(q.over) == old {
		_ = transfer(q.runs(old).Raft()) // or it has lost it otherwise
		sleep(q.over, lookAgain)
	}
	return nil
}

// crash has a member's process die without a word, and run again when another leads.
func (q *quorum) crash(m *member) error {
	s := q.runs(m)
	q.mu.Lock()
	m.server, m.transport = nil, nil
	q.mu.Unlock()
	q.connect(nil)
	if err := s.Shutdown(); err != nil {
		return fmt.Errorf("killing %s: %w", m.voter.ID, err)
	}
	q.await(m)
	return q.boot(m)
}

// await waits until another than a member leads.
func (q *quorum) await(other *member) {
	for q.over.Err() == nil {
		for _, m := range q.members {
			if s := q.runs(m); m != other && s != nil && s.Leads() {
				return
			}
		}
		sleep(q.over, lookAgain)
	}
}

// restore has the leader take a snapshot, die, and begin from it again.
func (q *quorum) restore() error {
	m := q.leader(q.over)
	if m == nil {
		return nil // the play is over
	}
	if err := q.runs(m).Raft().Snapshot().Error(); err != nil && !errors.Is(err, raft.ErrNothingNewToSnapshot) {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	return q.crash(m)
}

// races is false: nothing comes between plan and apply on purpose.
func (q *quorum) races() bool { return false }

// calm does nothing: what is done to these servers ends by itself.
func (q *quorum) calm([]int) error { return nil }

// errContract is the error of what can be done by the contract alone; [Unplayable] says
// so before.
var errContract = errors.New("not with real raft")

func (q *quorum) before(scenario.EntryKind, func() error) error { return errContract }
func (q *quorum) place(func(*statestore.Txn) error) error       { return errContract }
func (q *quorum) flap() error                                   { return errContract }
func (q *quorum) pause(int, time.Duration) error                { return errContract }
func (q *quorum) forget() error                                 { return errContract }
