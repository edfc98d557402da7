package world

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// RaftLog is one log that keeps raft's contract without raft. It applies proposed writes at a
// later step, in order, or fails them in one of raft's ways.
type RaftLog struct {
	world *World
	// entries are the committed entries. entries[i] has the index i+1. State machines do not
	// apply the entries of barriers.
	entries []logEntry
	// queue holds the proposed writes, in the order in which the log applies them.
	queue []*proposal
	// hooks run right before the log applies a write.
	hooks []hook
	// fate is the function of OnWrite, or nil.
	fate func(Write) Fate
	// count counts the proposed writes of each source.
	count [sourceCount]int
	// hookDepth is the number of hooks that run now, one inside the other.
	hookDepth int
	// successor is the next leader while an election commits the writes that the old
	// leader had in flight. Otherwise it is nil.
	successor *server
}

// logEntry is one committed entry: a message, a direct write, or a barrier.
type logEntry struct {
	Entry
	data []byte
	// write is a direct write to the state, for changes that no message makes; or nil.
	write func(*statestore.Txn) error
}

// Entry describes the origin of a committed entry.
type Entry struct {
	// Term is the term of the leader that first had the entry in its log.
	Term int
	// Proposed: the entry was proposed as a [Write], with Source and N. Other
	// entries belong to the setup, or a hook committed them.
	Proposed bool
	Source   Source
	N        int
	// Step is the step that proposed the entry.
	Step int
}

// Len is the number of committed entries, barriers included.
func (l *RaftLog) Len() int { return len(l.entries) }

// Entries yields every committed entry with its index, in order.
func (l *RaftLog) Entries() iter.Seq2[uint64, Entry] {
	return func(yield func(uint64, Entry) bool) {
		for i, e := range l.entries {
			if !yield(uint64(i+1), e.Entry) {
				return
			}
		}
	}
}

// Entry returns the committed entry of an index. The index must be in the log.
func (l *RaftLog) Entry(index uint64) Entry { return l.entries[index-1].Entry }

// Writes counts the writes that a source has proposed since the last call of OnWrite.
// Barriers count.
func (l *RaftLog) Writes(s Source) int { return l.count[s] }

// OnWrite sets the function that decides the fate of every write from now on, and resets
// the counts of writes. Faults may still strike a write for which it returns [Apply].
func (l *RaftLog) OnWrite(f func(Write) Fate) {
	l.fate = f
	l.count = [sourceCount]int{}
}

// hook is a function to run once, right before the first write that matches.
type hook struct {
	matches func(shims.Message) bool
	do      func() error
}

// Before calls a function once, right before the log applies the first write that matches. The
// writer has then planned the write, without the changes of the function. The log
// commits the function's own writes at once.
func (l *RaftLog) Before(matches func(shims.Message) bool, do func() error) {
	l.hooks = append(l.hooks, hook{matches, do})
}

// propose queues a write and reports whether the log has accepted it.
func (l *RaftLog) propose(from *leadership, s Source, m shims.Message, reply func(shims.Answer)) bool {
	w := l.world
	leader := w.Servers.leader
	p := &proposal{Write: Write{Source: s, N: l.count[s], Message: m}, step: w.steps, from: from, leader: leader, reply: reply}
	l.count[s]++
	if m != nil {
		var err error
		if p.data, err = shims.Encode(m); err != nil {
			p.fate = Reject
		}
	}
	if from != nil && from.deposed {
		from.unanswered = append(from.unanswered, p)
		p.notify(true)
		return true
	}
	var late time.Duration
	if p.fate == Apply {
		p.fate, late = l.decide(p)
	}
	if p.fate == NoRoom {
		p.notify(false)
		return false
	}
	p.leaves = leader.server.afterPause(w.now)
	p.due = l.due(s, p.leaves)
	l.queue = append(l.queue, p.late(late)...)
	p.notify(true)
	return true
}

// due draws the apply time of a write that leaves its server's process at a time.
func (l *RaftLog) due(s Source, leaves time.Time) time.Time {
	return leaves.Add(l.world.chance.draw("commit/"+s.String(), l.world.options.Commit))
}

// nextStep returns when the first write of the queue is due. The log keeps its order, and a
// paused leader writes nothing.
func (l *RaftLog) nextStep(time.Time) time.Time {
	if len(l.queue) == 0 {
		return time.Time{}
	}
	return l.world.Servers.leader.server.afterPause(l.queue[0].due)
}

// step applies or fails the first write of the queue.
func (l *RaftLog) step() error {
	if len(l.queue) == 0 || l.world.now.Before(l.nextStep(l.world.now)) {
		return nil
	}
	p := l.queue[0]
	l.world.cause = p.step
	if p.deposes && p.from == l.world.Servers.leader {
		return l.world.Servers.loseLeader(scenario.LeaderLoseMidBatch)
	}
	if p.applies() {
		if err := l.runHooks(p.Message); err != nil {
			return err
		}
		if len(l.queue) == 0 || l.queue[0] != p {
			return nil // a hook deposed the leader, and the election has handled the write
		}
	}
	l.queue = l.queue[1:]
	if p.Source != FromDrainer {
		l.world.counts.endStreak()
	}
	answer, err := l.applyFate(p)
	if err != nil {
		return err
	}
	p.answer(answer)
	return nil
}

// applyFate commits or fails a write by its fate, and returns the answer.
func (l *RaftLog) applyFate(p *proposal) (shims.Answer, error) {
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

// runHooks runs the hooks and the faults that come between the plan of a message and its apply.
// A barrier has none; its message is nil.
func (l *RaftLog) runHooks(m shims.Message) error {
	if m == nil {
		return nil
	}
	var due []hook
	l.hooks = slices.DeleteFunc(l.hooks, func(h hook) bool {
		if !h.matches(m) {
			return false
		}
		due = append(due, h)
		return true
	})
	l.hookDepth++
	for _, h := range due {
		if err := h.do(); err != nil {
			return err
		}
	}
	l.hookDepth--
	return l.failGroupMember(m)
}

// commit appends a message. The leader applies the log up to it.
func (l *RaftLog) commit(m shims.Message) (shims.Answer, error) {
	data, err := shims.Encode(m)
	if err != nil {
		return shims.Answer{Outcome: raftwrite.Rejected, Err: err}, nil
	}
	return l.commitEntry(logEntry{data: data, Entry: Entry{Term: l.world.Term()}})
}

// commitEntry appends an entry. The leader applies the log up to it; during an election
// the next leader does.
func (l *RaftLog) commitEntry(e logEntry) (shims.Answer, error) {
	l.add(e)
	s := l.world.Servers.leader.server
	if l.successor != nil {
		s = l.successor
	}
	response, err := s.replica.catchUp(l.entries)
	if err != nil {
		return shims.Answer{}, fmt.Errorf("applying entry %d: %w", len(l.entries), err)
	}
	if l.successor == nil {
		l.world.Servers.leader.catchUp()
	}
	if e.data == nil {
		return shims.Answer{Outcome: raftwrite.Applied, Index: s.replica.state().Index()}, nil
	}
	return shims.Answer{Outcome: raftwrite.Applied, Index: uint64(len(l.entries)), Response: response}, nil
}

func (l *RaftLog) add(e logEntry) {
	l.entries = append(l.entries, e)
	l.world.hash.add(uint64(e.Term))
	l.world.hash.bytes(e.data)
}

// handOver handles the writes that a deposed leader had in flight. It commits the first of them
// before any entry of the next leader. The others are lost, and so are the writes that have not
// left the leader's process. Unanswered requests of clients and operators stay in the queue, as
// if they were sent to the next leader.
func (l *RaftLog) handOver(old *leadership, e Election, next *server) error {
	survive := math.MaxInt
	if e.Lost {
		survive = e.Kept
	}
	queue := l.queue
	l.queue, l.successor = nil, next
	defer func() { l.successor = nil }()
	var kept []*proposal
	for _, p := range queue {
		if p.from == nil && !p.answered {
			p.due = sooner(p.due, l.due(p.Source, l.world.now))
			kept = append(kept, p)
			continue
		}
		if survive > 0 && p.inLog(l.world.now) {
			survive--
			if err := l.inherit(p); err != nil {
				return err
			}
		}
		if p.from != nil {
			old.unanswered = append(old.unanswered, p)
		}
	}
	l.queue = append(kept, l.queue...)
	return nil
}

// inherit commits a write of the old leader. The next leader applies it together with its own
// first entry.
func (l *RaftLog) inherit(p *proposal) error {
	if p.Message == nil {
		return nil
	}
	if err := l.runHooks(p.Message); err != nil {
		return err
	}
	l.add(logEntry{data: p.data, Entry: p.entry()})
	if l.world.options.Views {
		// The shared replica always has the newest state.
		if _, err := l.successor.replica.catchUp(l.entries); err != nil {
			return fmt.Errorf("applying entry %d: %w", len(l.entries), err)
		}
	}
	return nil
}

// inFlight counts the leader's own writes that are in its log and not committed.
func (l *RaftLog) inFlight() int {
	n := 0
	for _, p := range l.queue {
		if (p.from != nil || p.answered) && p.inLog(l.world.now) {
			n++
		}
	}
	return n
}

// holds reports whether a message is in the queue. It is false for nil.
func (l *RaftLog) holds(m shims.Message) bool {
	return m != nil && slices.ContainsFunc(l.queue, func(p *proposal) bool { return p.Message == m })
}

// endDelays removes the delays that faults have added to the queued writes.
func (l *RaftLog) endDelays() {
	for _, p := range l.queue {
		p.due = sooner(p.due, l.due(p.Source, l.world.now))
		p.deposes = false
	}
}

// decide returns the fate of a write, and its delay if the fate is late.
func (l *RaftLog) decide(p *proposal) (fate Fate, late time.Duration) {
	if l.fate != nil {
		if f := l.fate(p.Write); f != Apply {
			return f, l.lateDelay(f, 0)
		}
	}
	faults := l.world.Faults
	if len(faults.armed) == 0 {
		return Apply, 0
	}
	subject := target{Words: p.Words()}
	for _, f := range [...]struct {
		name scenario.FaultName
		fate Fate
	}{
		{scenario.ApplyFull, NoRoom},
		{scenario.ApplyReject, Reject},
		{scenario.ApplyAmbiguousApplied, UnknownApplied},
		{scenario.ApplyAmbiguousLate, UnknownLate},
		{scenario.ApplyAmbiguousLost, UnknownLost},
		{scenario.ApplySlow, Slow},
	} {
		if delay, strikes := faults.strike(f.name, subject); strikes {
			return f.fate, l.lateDelay(f.fate, delay)
		}
	}
	if p.Source == FromDrainer && p.Message != nil {
		if delay, strikes := faults.strike(scenario.LeaderLoseMidBatch, target{}); strikes {
			p.deposes = true
			l.world.Servers.loseLeaderIn(delay, scenario.LeaderLoseMidBatch)
		}
	}
	return Apply, 0
}

// lateDelay returns the delay of a late write: the fault's, or a drawn one if the fault has none.
func (l *RaftLog) lateDelay(f Fate, delay time.Duration) time.Duration {
	if delay > 0 || !f.Late() {
		return delay
	}
	return l.world.chance.draw("late", l.world.options.Late)
}

// failGroupMember makes one allocation of a marked group fail, if a fault strikes. The FSM then
// refuses a mark that the failure makes invalid.
func (l *RaftLog) failGroupMember(m shims.Message) error {
	w := l.world
	entry, is := m.(*shims.AllocUpdateDesiredTransition)
	if !is || !w.Faults.armedAny(scenario.ApplyPartialRefuse) {
		return nil
	}
	var groups []cluster.GroupKey // the marks are ordered by group
	for _, mark := range entry.Marks.Marks {
		groups = append(groups, mark.Group)
	}
	for _, group := range slices.Compact(groups) {
		victim := victim(w.Truth(), group, entry.Marks.Marks)
		if victim == nil {
			continue
		}
		if _, strikes := w.Faults.strike(scenario.ApplyPartialRefuse, target{Group: &group}); strikes {
			return w.Setup.Commit(w.Operator.Requests.Exit(victim, cluster.ClientFailed))
		}
	}
	return nil
}

// victim returns the running allocation of a group whose failure is most likely to make a mark
// invalid, or nil if none runs. Its first choice is a healthy allocation that stays, because its
// failure reduces the group's budget. Its second choice is any allocation that stays, and its
// last choice is one that the entry marks.
func victim(state *statestore.Snapshot, group cluster.GroupKey, marks []rules.Mark) *cluster.Allocation {
	marked := map[cluster.AllocID]bool{}
	for _, m := range marks {
		marked[m.Alloc] = true
	}
	var best *cluster.Allocation
	least := 3
	for a := range state.DrainView().GroupAllocs(group) {
		if a.DesiredStatus != cluster.DesiredRun || a.ClientStatus != cluster.ClientRunning {
			continue
		}
		rank := 1
		switch {
		case marked[a.ID]:
			rank = 2
		case a.JudgedHealthy() && !a.Leaving() && state.Node(a.NodeID).Reachable():
			rank = 0
		}
		if rank < least {
			best, least = a, rank
		}
		if least == 0 {
			break
		}
	}
	return best
}
