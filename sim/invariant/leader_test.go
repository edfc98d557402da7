package invariant_test

import (
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// leader is a history with a drainer that proposes writes and takes steps.
type leader struct{ history }

// leading is a fixture with three nodes, a job of three allocations with max_parallel 1, and a
// drainer that leads in term 1 after its barrier.
func leading(t *testing.T, o invariant.Options) *fixture {
	s := web(t, o, 3, 1)
	s.lead(1)
	return s
}

// lead begins a term.
func (s *leader) lead(term int) {
	s.j.Began(s.now, 0, term)
	s.barrier(term, 0)
	s.step(term, false)
	s.j.Answered(s.now, term, 0, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
	s.read(term)
}

// barrier proposes a barrier.
func (s *leader) barrier(term, n int) { s.j.Proposed(s.now, invariant.Write{Term: term, N: n}) }

// propose proposes a write of 100 bytes.
func (s *leader) propose(term, n int, m shims.Message) {
	s.j.Proposed(s.now, invariant.Write{Term: term, N: n, Message: m, Bytes: 100})
}

// answer reports the outcome of a write that was not applied.
func (s *leader) answer(term, n int, o raftwrite.Outcome) {
	s.j.Answered(s.now, term, n, shims.Answer{Outcome: o})
}

// write proposes a write in a step, applies it, and delivers the answer in another step.
func (s *leader) write(term, n int, m shims.Message) {
	s.propose(term, n, m)
	s.read(term)
	r := s.apply(m)
	s.j.Answered(s.now, term, n, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
	s.read(term)
}

// step is a step after an event. The drainer may read at the newest state.
func (s *leader) step(term int, reads bool) { s.stepUntil(term, reads, time.Time{}) }

func (s *leader) read(term int) { s.step(term, true) }

// readAt is a step with a read at the newest state, at a time on the drainer's clock.
func (s *leader) readAt(term int, clock time.Time) {
	s.j.Stepped(s.now, invariant.Step{Term: term, Clock: clock, Woken: true, View: s.state(), Queries: 1})
}

// stepUntil is a step that sets the time of the next one.
func (s *leader) stepUntil(term int, reads bool, wakeAt time.Time) {
	st := invariant.Step{Term: term, Clock: s.now, Woken: true, WakeAt: wakeAt}
	if reads {
		st.View, st.Queries = s.state(), 1
	}
	s.j.Stepped(s.now, st)
}

// due is a step without an event.
func (s *leader) due(term int) {
	s.j.Stepped(s.now, invariant.Step{Term: term, Clock: s.now, View: s.state(), Queries: 1})
}

// fixed is a constant [invariant.Truth].
type fixed struct {
	held  bool
	ended cluster.AllocID
}

func (f fixed) Held() bool                    { return f.held }
func (f fixed) Ended(id cluster.AllocID) bool { return id == f.ended }

// explain returns the reports of a fresh drainer on all draining nodes.
func (s *leader) explain() (reports []rules.Report) {
	for n := range s.state().DrainView().DrainingNodes() {
		r, _ := rules.Explain(s.state().DrainView(), rules.TermState{WriteTime: oneSecond}, n.ID, s.now, rules.Policy{})
		reports = append(reports, r)
	}
	return reports
}

// quiet judges a quiet point with correct reports and these changes.
func (s *leader) quiet(change ...func(q *invariant.Quiet)) {
	q := invariant.Quiet{Term: 1, Clock: s.now, State: s.state(), Reports: s.explain(), Truth: fixed{}}
	for _, c := range change {
		c(&q)
	}
	s.j.Quiet(s.now, q)
}

// still judges the end of a silence.
func (s *leader) still(change ...func(q *invariant.Quiet)) {
	q := invariant.Quiet{Term: 1, Clock: s.now, State: s.state(), Truth: fixed{}}
	for _, c := range change {
		c(&q)
	}
	s.j.Still(s.now, q)
}

func held(q *invariant.Quiet) { q.Truth = fixed{held: true} }

// oneSecond is the time that a write takes.
func oneSecond() time.Duration { return time.Second }
