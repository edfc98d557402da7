package world

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// raftLog is raft's contract without raft: one log, in which what is proposed is
// applied at a later step, in order, or fails in one of the ways that raft has.
type raftLog struct {
	world *World
	// entries are what was committed, entries[i] having index i+1. Barriers have
	// entries that no state machine sees.
	entries []logEntry
	// queue are the writes under way, in the order in which they are settled.
	queue []*proposal
	// hooks are what is to be done just before a write is applied.
	hooks []hook
	// count counts the writes of each source.
	count [sourceCount]int
	// heir is who leads next while an election settles what the old leader had in
	// flight, or nil.
	heir *server
}

// logEntry is one committed entry: a message, or what a world begins with, or
// neither if it is raft's own.
type logEntry struct {
	Entry
	data []byte
	// begin writes what no message of the log could; or nil.
	begin func(*statestore.Txn) error
}

// Entry says of a committed entry whose it is.
type Entry struct {
	// Term is that of the leader in whose log it was first.
	Term int
	// Proposed says that it was: otherwise the world began with it, or it came between
	// plan and apply of another. Source and N are then the [Write]'s.
	Proposed bool
	Source   Source
	N        int
	// Step is the step in which it was proposed.
	Step int
}

// Log yields every committed entry with its index, in order.
func (w *World) Log() iter.Seq2[uint64, Entry] {
	return func(yield func(uint64, Entry) bool) {
		for i, e := range w.log.entries {
			if !yield(uint64(i+1), e.Entry) {
				return
			}
		}
	}
}

// Entry returns the committed entry of an index. The index is one of the log.
func (w *World) Entry(index uint64) Entry { return w.log.entries[index-1].Entry }

// propose queues a write and reports whether it was taken.
func (l *raftLog) propose(from *leadership, s Source, m shims.Message, reply func(shims.Answer)) bool {
	w := l.world
	p := &proposal{Write: Write{Source: s, N: l.count[s], Message: m}, step: w.steps, from: from, leader: w.leader, reply: reply}
	l.count[s]++
	if m != nil {
		var err error
		if p.data, err = shims.Encode(m); err != nil {
			p.fate = Reject
		}
	}
	if from != nil && from.deposed {
		from.limbo = append(from.limbo, p)
		p.tell(true)
		return true
	}
	var late time.Duration
	if p.fate == Apply {
		p.fate, late = w.decide(p)
	}
	if p.fate == NoRoom {
		p.tell(false)
		return false
	}
	p.leaves = w.leader.server.awake(w.now)
	p.due = l.due(s, p.leaves)
	l.queue = append(l.queue, p.late(late)...)
	p.tell(true)
	return true
}

// due draws when a write is applied that leaves at a time.
func (l *raftLog) due(s Source, leaves time.Time) time.Time {
	return leaves.Add(l.world.draw("commit/"+s.String(), l.world.options.Commit))
}

// wants is when the first write of the queue is due: the log keeps its order, and
// nothing is written while the leader stands still.
func (l *raftLog) wants(time.Time) time.Time {
	if len(l.queue) == 0 {
		return time.Time{}
	}
	return l.world.leader.server.awake(l.queue[0].due)
}

// step settles the first write of the queue.
func (l *raftLog) step() error {
	if len(l.queue) == 0 || l.world.now.Before(l.wants(l.world.now)) {
		return nil
	}
	p := l.queue[0]
	l.world.cause = p.step
	if p.deposes && p.from == l.world.leader {
		return l.world.loseLeader(scenario.LeaderLoseMidBatch)
	}
	if p.applies() {
		if err := l.race(p.Message); err != nil {
			return err
		}
		if len(l.queue) == 0 || l.queue[0] != p {
			return nil // its leader was deposed meanwhile, and it settled with that
		}
	}
	l.queue = l.queue[1:]
	if p.Source != FromDrainer {
		l.world.spent.outside()
	}
	answer, err := l.settle(p)
	if err != nil {
		return err
	}
	p.answer(answer)
	return nil
}

// settle has become of a write what is to become of it.
func (l *raftLog) settle(p *proposal) (shims.Answer, error) {
	switch p.fate {
	case Reject:
		return rejected(), nil
	case UnknownLost:
		return unknown(), nil
	}
	answer, err := l.commitEntry(logEntry{data: p.data, Entry: p.entry()})
	if p.fate == UnknownApplied {
		answer = unknown()
	}
	return answer, err
}

// commit appends a message and has the leader apply what it has not.
func (l *raftLog) commit(m shims.Message) (shims.Answer, error) {
	data, err := shims.Encode(m)
	if err != nil {
		return shims.Answer{Outcome: raftwrite.Rejected, Err: err}, nil
	}
	return l.commitEntry(logEntry{data: data, Entry: Entry{Term: l.world.terms}})
}

// commitEntry appends an entry and has the leader apply what it has not; or the next
// leader, while there is an election.
func (l *raftLog) commitEntry(e logEntry) (shims.Answer, error) {
	l.add(e)
	s := l.world.leader.server
	if l.heir != nil {
		s = l.heir
	}
	response, err := s.machine.catchUp(l.entries)
	if err != nil {
		return shims.Answer{}, fmt.Errorf("applying entry %d: %w", len(l.entries), err)
	}
	if l.heir == nil {
		l.world.leader.catchUp()
	}
	if e.data == nil {
		return shims.Answer{Outcome: raftwrite.Applied, Index: s.machine.state().Index()}, nil
	}
	return shims.Answer{Outcome: raftwrite.Applied, Index: uint64(len(l.entries)), Response: response}, nil
}

// add adds a committed entry.
func (l *raftLog) add(e logEntry) {
	l.entries = append(l.entries, e)
	l.world.hash.add(uint64(e.Term))
	l.world.hash.bytes(e.data)
}

// inFlight counts the leader's own writes that are in its log.
func (l *raftLog) inFlight() int {
	n := 0
	for _, p := range l.queue {
		if (p.from != nil || p.answered) && p.inLog(l.world.now) {
			n++
		}
	}
	return n
}

// holds reports whether a message is under way.
func (l *raftLog) holds(m shims.Message) bool {
	return m != nil && slices.ContainsFunc(l.queue, func(p *proposal) bool { return p.Message == m })
}

func (l *raftLog) length() int { return len(l.entries) }
