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

// leader is a drainer that proposes writes and takes steps before a judge.
type leader struct{ history }

// leading is a stage with three nodes and a job of three, limit one, and a drainer
// that leads in term 1 behind its barrier.
func leading(t *testing.T, o invariant.Options) *stage {
	s := web(t, o, 3, 1)
	s.lead(1)
	return s
}

// lead begins a term.
func (s *leader) lead(term int) {
	s.j.Began(s.now, 0, term)
	s.ask(term, 0)
	s.step(term, false)
	s.j.Answered(s.now, term, 0, shims.Answer{Outcome: raftwrite.Applied, Index: s.index})
	s.look(term)
}

// ask proposes a barrier.
func (s *leader) ask(term, n int) { s.j.Proposed(s.now, invariant.Write{Term: term, N: n}) }

// propose proposes a write of a reasonable size.
func (s *leader) propose(term, n int, m shims.Message) {
	s.j.Proposed(s.now, invariant.Write{Term: term, N: n, Message: m, Bytes: 100})
}

// answer says what became of a write that was not applied.
func (s *leader) answer(term, n int, o raftwrite.Outcome) {
	s.j.Answered(s.now, term, n, shims.Answer{Outcome: o})
}

// write proposes a write in a step, has it applied and says so in another.
func (s *leader) write(term, n int, m shims.Message) {
	s.propose(term, n, m)
	s.look(term)
	r := s.apply(m)
	s.j.Answered(s.now, term, n, shims.Answer{Outcome: raftwrite.Applied, Index: s.index, Response: r})
	s.look(term)
}

// step is a step after a wake-up, in which the drainer may have looked
// at the newest state.
func (s *leader) step(term int, looks bool) { s.stepUntil(term, looks, time.Time{}) }

func (s *leader) look(term int) { s.step(term, true) }

// lookAt is a step in which the drainer looks at the newest state and its clock shows that
// time.
func (s *leader) lookAt(term int, clock time.Time) {
	s.j.Stepped(s.now, invariant.Step{Term: term, Clock: clock, Woken: true, View: s.state(), Looks: 1})
}

// stepUntil is a step that names the time of the next.
func (s *leader) stepUntil(term int, looks bool, wakeAt time.Time) {
	st := invariant.Step{Term: term, Clock: s.now, Woken: true, WakeAt: wakeAt}
	if looks {
		st.View, st.Looks = s.state(), 1
	}
	s.j.Stepped(s.now, st)
}

// due is a step that no event asked for.
func (s *leader) due(term int) {
	s.j.Stepped(s.now, invariant.Step{Term: term, Clock: s.now, View: s.state(), Looks: 1})
}

// known is what the world knows.
type known struct {
	held  bool
	ended cluster.AllocID
}

func (w known) Held() bool                    { return w.held }
func (w known) Ended(id cluster.AllocID) bool { return id == w.ended }

// explain is what a drainer that knows nothing of itself says of all that drains.
func (s *leader) explain() (reports []rules.Report) {
	for n := range s.state().DrainingNodes() {
		r, _ := rules.Explain(s.state(), rules.Pending{WriteTime: oneSecond}, n.ID, s.now, rules.Policy{})
		reports = append(reports, r)
	}
	return reports
}

// quiet judges a quiet point at which the drainer says what it should, but for what
// is changed of it.
func (s *leader) quiet(change ...func(q *invariant.Quiet)) {
	q := invariant.Quiet{Term: 1, Clock: s.now, State: s.state(), Reports: s.explain(), Truth: known{}}
	for _, c := range change {
		c(&q)
	}
	s.j.Quiet(s.now, q)
}

// still judges the end of a time in which nothing has happened.
func (s *leader) still(change ...func(q *invariant.Quiet)) {
	q := invariant.Quiet{Term: 1, Clock: s.now, State: s.state(), Truth: known{}}
	for _, c := range change {
		c(&q)
	}
	s.j.Still(s.now, q)
}

func held(q *invariant.Quiet) { q.Truth = known{held: true} }

// oneSecond is how long the drainers of these tests take to get a write applied.
func oneSecond() time.Duration { return time.Second }
