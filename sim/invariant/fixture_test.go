package invariant_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// fixture is a history in which a drainer leads and drains nodes.
type fixture struct {
	leader
	policy rules.Policy // of the entries
}

func newFixture(t testing.TB, o invariant.Options) *fixture {
	if o.Every == 0 {
		o.Every = 1
	}
	s := &fixture{leader{history{t: t, j: invariant.New(o), now: epoch}}, o.Policy}
	s.fsm = shims.NewFSM(shims.FSMConfig{OnApply: s.observe})
	return s
}

// web is a fixture with three nodes, a job with that count and max_parallel, and its healthy
// allocations a1, a2, a3, one on each node.
func web(t testing.TB, o invariant.Options, count, maxParallel int) *fixture {
	s := newFixture(t, o)
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		s.node(id)
	}
	s.job(service("web", count, maxParallel))
	for i, id := range []cluster.AllocID{"a1", "a2", "a3"} {
		s.place(id, "web", cluster.NodeID(fmt.Sprintf("n%d", i+1)))
	}
	s.run("a1", "a2", "a3")
	return s
}

// request returns a request for the drain of a node. The drain's id is "d" and the node's id.
func (s *fixture) request(id cluster.NodeID, spec *cluster.DrainSpec) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: id, Spec: spec, Drain: drainOf(id), At: s.now}}
}

func drainOf(id cluster.NodeID) cluster.DrainID { return cluster.DrainID("d" + id) }

func (s *fixture) drain(id cluster.NodeID, deadline time.Duration) {
	s.apply(s.request(id, &cluster.DrainSpec{Deadline: deadline}))
}

func (s *fixture) cancel(id cluster.NodeID) { s.apply(s.request(id, nil)) }

// marks returns an entry that marks allocations, planned now, with the evaluations of their jobs.
func (s *fixture) marks(c cluster.MarkClass, ids ...cluster.AllocID) *shims.AllocUpdateDesiredTransition {
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: s.now, Policy: s.policy}}
	evaluated := map[cluster.JobID]bool{}
	for _, id := range ids {
		a := s.state().Alloc(id)
		mark := rules.Mark{Alloc: id, Group: a.GroupKey(), Node: a.NodeID, Class: c}
		if n := s.state().Node(a.NodeID); n != nil && n.Drain != nil {
			mark.Drain, mark.Revision = n.Drain.ID, n.Drain.Revision
		}
		m.Marks.Marks = append(m.Marks.Marks, mark)
		if !evaluated[a.JobID] {
			evaluated[a.JobID] = true
			m.Evals = append(m.Evals, s.eval(a.JobID))
		}
	}
	return m
}

func (s *fixture) mark(c cluster.MarkClass, ids ...cluster.AllocID) { s.apply(s.marks(c, ids...)) }

// applyUnchecked applies an entry of marks without a re-check.
func (s *fixture) applyUnchecked(m *shims.AllocUpdateDesiredTransition) {
	s.fake(m, shims.MarksApplied{Accepted: m.Marks.Marks}, func(txn *statestore.Txn) {
		must.NoError(s.t, txn.ApplyMarks(m.At, m.Marks.Marks, m.Evals))
	})
}

// markAnyway makes marks that break the contract.
func (s *fixture) markAnyway(c cluster.MarkClass, ids ...cluster.AllocID) {
	s.applyUnchecked(s.marks(c, ids...))
}

// refuse refuses all marks of an entry.
func (s *fixture) refuse(m *shims.AllocUpdateDesiredTransition) {
	r := shims.MarksApplied{}
	for _, mark := range m.Marks.Marks {
		r.Refused = append(r.Refused, rules.Refusal{Alloc: mark.Alloc, Node: mark.Node, Why: "no"})
	}
	s.fake(m, r, func(*statestore.Txn) {})
}

// ends returns an entry that ends the drains of nodes, planned now.
func (s *fixture) ends(ids ...cluster.NodeID) *shims.NodesDrainComplete {
	m := &shims.NodesDrainComplete{Completions: rules.Completions{At: s.now, Policy: s.policy}}
	for _, id := range ids {
		d := s.state().Node(id).Drain
		m.Completions.Completions = append(m.Completions.Completions, rules.Completion{Node: id, Drain: d.ID, Revision: d.Revision})
	}
	return m
}

func (s *fixture) end(ids ...cluster.NodeID) { s.apply(s.ends(ids...)) }

// endAnyway ends a drain without a re-check.
func (s *fixture) endAnyway(id cluster.NodeID, o cluster.Outcome, left int) {
	m := s.ends(id)
	endings := []rules.Ending{{Completion: m.Completions.Completions[0], Outcome: o, StillStopping: left}}
	s.fake(m, shims.CompletionsApplied{Ended: endings}, func(txn *statestore.Txn) { txn.CompleteDrains(m.At, endings) })
}

// evalsOf returns a function that writes the evaluations of an entry.
func (s *fixture) evalsOf(m *shims.AllocUpdateDesiredTransition) func(*statestore.Txn) {
	return func(txn *statestore.Txn) { must.NoError(s.t, txn.UpsertEvals(m.Evals)) }
}

// markRows returns a function that writes the marks of an entry into the rows, and counts them.
func (s *fixture) markRows(m *shims.AllocUpdateDesiredTransition) func(*statestore.Snapshot) {
	return func(state *statestore.Snapshot) {
		for _, mark := range m.Marks.Marks {
			state.Alloc(mark.Alloc).DesiredTransition = cluster.DesiredTransition{Migrate: true, Drain: mark.Drain, Class: mark.Class, MarkedAt: m.At}
			if n := state.Node(mark.Node); n.Drain != nil && n.Drain.ID == mark.Drain {
				n.Drain.Marked[mark.Class]++
			}
		}
	}
}

// endings returns the end of one drain.
func endings(id cluster.NodeID, d cluster.DrainID, o cluster.Outcome) []rules.Ending {
	return []rules.Ending{{Completion: rules.Completion{Node: id, Drain: d}, Outcome: o}}
}
