package drainer

import (
	"errors"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// fate is the outcome of one raft write.
type fate uint8

const (
	applied  fate = iota
	rejected      // not applied, and the answer is rejected
	lost          // not applied, and the answer is unknown
	vanished      // applied, and the answer is unknown
	full          // not queued
	refused       // applied, and every item refused
	hidden        // answered as applied, and the state does not show it

	// The fates below break the contract of a RaftApplier.

	twice           // applied and answered twice
	fullAndAnswered // not queued, but answered
)

// fakeWrite is one write that was queued: marks, completions, or a barrier if
// both are nil.
type fakeWrite struct {
	marks       *rules.Marks
	completions *rules.Completions
	fate        fate
	reply       Reply
}

// fakeRaft is a RaftApplier with a script. A queued write waits until the method answer applies and
// answers it.
type fakeRaft struct {
	state *memory
	kick  chan struct{} // capacity 1; receives a value for each queued write; or nil
	// ahead is how much the index of an answer is above that of its entry, or of the state. Above zero
	// it breaks the contract of a RaftApplier.
	ahead uint64

	mu             sync.Mutex
	script         []fate      // guarded by mu; of the next writes, then all are applied
	barriers       []fate      // guarded by mu; of the next barriers
	always         fate        // guarded by mu; of writes beyond the script
	writes         []fakeWrite // guarded by mu; all queued writes except barriers
	queuedBarriers int         // guarded by mu; how many barriers were queued
	waiting        []fakeWrite // guarded by mu; not answered yet
	room           int         // guarded by mu; how many may wait; zero is no bound
	inFlight       int         // guarded by mu; the most that ever waited
}

var _ RaftApplier = (*fakeRaft)(nil)

var errFake = errors.New("no quorum")

func (r *fakeRaft) AllocUpdateDesiredTransition(m *rules.Marks, reply Reply) bool {
	return r.queue(fakeWrite{marks: m, reply: reply})
}

func (r *fakeRaft) NodesDrainComplete(c *rules.Completions, reply Reply) bool {
	return r.queue(fakeWrite{completions: c, reply: reply})
}

func (r *fakeRaft) Barrier(reply Reply) bool { return r.queue(fakeWrite{reply: reply}) }

func (w fakeWrite) isBarrier() bool { return w.marks == nil && w.completions == nil }

func (r *fakeRaft) queue(w fakeWrite) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room > 0 && len(r.waiting) >= r.room {
		return false
	}
	script := &r.script
	if w.isBarrier() {
		script = &r.barriers
	} else {
		w.fate = r.always
	}
	if len(*script) > 0 {
		w.fate, *script = (*script)[0], (*script)[1:]
	}
	switch w.fate {
	case full:
		return false
	case fullAndAnswered:
		w.reply(Answer{Outcome: raftwrite.Rejected, Err: errFake})
		return false
	}
	if w.isBarrier() {
		r.queuedBarriers++
	} else {
		r.writes = append(r.writes, w)
	}
	r.waiting = append(r.waiting, w)
	r.inFlight = max(r.inFlight, len(r.waiting))
	select {
	case r.kick <- struct{}{}:
	default:
	}
	return true
}

// answer applies and answers the oldest write, and reports whether there was one.
func (r *fakeRaft) answer() bool {
	r.mu.Lock()
	if len(r.waiting) == 0 {
		r.mu.Unlock()
		return false
	}
	w := r.waiting[0]
	r.waiting = r.waiting[1:]
	r.mu.Unlock()
	answer := r.result(w)
	if answer.Outcome == raftwrite.Applied {
		answer.Index += r.ahead
	}
	w.reply(answer)
	if w.fate == twice {
		w.reply(answer)
	}
	return true
}

// result applies a write if that is its fate, and returns its answer.
func (r *fakeRaft) result(w fakeWrite) Answer {
	switch w.fate {
	case rejected:
		return Answer{Outcome: raftwrite.Rejected, Err: errFake}
	case lost:
		return Answer{Outcome: raftwrite.Unknown, Err: errFake}
	case vanished:
		r.apply(w)
		return Answer{Outcome: raftwrite.Unknown, Err: errFake}
	case refused:
		a := Answer{Outcome: raftwrite.Applied, Index: r.state.commit(func(*fixture.Cluster) {})}
		if w.marks != nil {
			for _, m := range w.marks.Marks {
				a.Response = append(a.Response, rules.Refusal{Alloc: m.Alloc, Node: m.Node, Why: "a step of the script"})
			}
		}
		if w.completions != nil {
			for _, c := range w.completions.Completions {
				a.Response = append(a.Response, rules.Refusal{Node: c.Node, Why: "a step of the script"})
			}
		}
		return a
	case hidden:
		return Answer{Outcome: raftwrite.Applied, Index: r.state.commit(func(*fixture.Cluster) {})}
	}
	return r.apply(w)
}

// apply applies the entry as an FSM does.
func (r *fakeRaft) apply(w fakeWrite) (a Answer) {
	a.Outcome = raftwrite.Applied
	switch {
	case w.marks != nil:
		a.Index = r.state.commit(func(t *fixture.Cluster) {
			accepted, evals, refused := rules.Recheck(t, w.marks)
			for _, m := range accepted {
				t.Mark(m.Alloc, m.Drain, m.Class, w.marks.At)
				t.Node(m.Node).Drain.Marked[m.Class]++
			}
			for _, e := range evals {
				e = e.Copy()
				e.CreateIndex, e.ModifyIndex = t.LastIndex, t.LastIndex
				t.Evals = append(t.Evals, e)
			}
			a.Response = refused
		})
	case w.completions != nil:
		a.Index = r.state.commit(func(t *fixture.Cluster) {
			ended, refused := rules.RecheckCompletions(t, w.completions)
			for _, e := range ended {
				t.Node(e.Node).Drain = nil
			}
			a.Response = refused
		})
	default:
		a.Index = r.state.now().Index()
	}
	return a
}

// written are the writes queued so far.
func (r *fakeRaft) written() []fakeWrite {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.writes)
}

func (r *fakeRaft) barriersQueued() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queuedBarriers
}

// marked are the allocations of a write's marks.
func (w fakeWrite) marked() (ids []cluster.AllocID) {
	if w.marks != nil {
		for _, m := range w.marks.Marks {
			ids = append(ids, m.Alloc)
		}
	}
	return ids
}
