package drainertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// referenceFSM is a state machine of package rules and package lifecycle over plain
// rows.
type referenceFSM struct {
	// state is the newest state, never nil. An entry changes a copy, which then replaces it.
	state   atomic.Pointer[model]
	records map[cluster.DrainID]*cluster.Drain
	// drains are the ids of all drains, ended or not, in the order in which they began.
	drains []cluster.DrainID
}

var _ FSM = (*referenceFSM)(nil)

func newReferenceFSM() *referenceFSM {
	f := &referenceFSM{records: map[cluster.DrainID]*cluster.Drain{}}
	f.state.Store((&model{}).next(0))
	return f
}

var errNoNode = errors.New("the node does not exist")

func (f *referenceFSM) View() rules.View                         { return f.state.Load() }
func (f *referenceFSM) Record(id cluster.DrainID) *cluster.Drain { return f.records[id] }

// Commit is for [FSM].
func (f *referenceFSM) Commit(index uint64, rows Rows) error {
	s := f.state.Load().next(index)
	defer f.state.Store(s)
	s.write(rows)
	return nil
}

// UpdateDrain is for [FSM].
func (f *referenceFSM) UpdateDrain(index uint64, u cluster.DrainUpdate) error {
	s := f.state.Load().next(index)
	defer f.state.Store(s)
	n := s.nodes[u.Node]
	switch {
	case n == nil:
		return errNoNode
	case f.applied(n, u.Key):
	case u.Spec == nil:
		c := lifecycle.CancelDrain(s, n, u, index)
		for _, a := range c.Withdrawn {
			s.allocs[a.ID] = a
		}
		if c.Record != nil {
			f.records[c.Record.ID] = c.Record
		}
		s.nodes[n.ID] = c.Node
	case n.Draining():
		s.nodes[n.ID] = lifecycle.UpdateDrain(n, u, index)
	default:
		started, err := lifecycle.StartDrain(n, u, index)
		if err != nil {
			return fmt.Errorf("node %s: %w", n.ID, err)
		}
		f.drains = append(f.drains, u.Drain)
		s.nodes[n.ID] = started
	}
	return nil
}

// applied reports whether a drain of the node, running or recorded, has the key.
func (f *referenceFSM) applied(n *cluster.Node, key string) bool {
	if n.Draining() && n.Drain.HasKey(key) {
		return true
	}
	for _, d := range f.records {
		if d.NodeID == n.ID && d.HasKey(key) {
			return true
		}
	}
	return false
}

// Marks is for [FSM].
func (f *referenceFSM) Marks(index uint64, m *rules.Marks) ([]rules.Refusal, error) {
	s := f.state.Load().next(index)
	defer f.state.Store(s)
	accepted, evals, refused := rules.Recheck(s, m)
	s.applyMarks(accepted, m.At)
	s.upsertEvals(evals)
	return refused, nil
}

// Completions is for [FSM].
func (f *referenceFSM) Completions(index uint64, c *rules.Completions) ([]rules.Refusal, error) {
	s := f.state.Load().next(index)
	defer f.state.Store(s)
	ended, refused := rules.RecheckCompletions(s, c)
	for _, e := range ended {
		if after, record := lifecycle.EndDrain(s.nodes[e.Node], e, c.At, index); after != nil {
			s.nodes[e.Node], f.records[record.ID] = after, record
		}
	}
	return refused, nil
}

func (m *model) applyMarks(marks []rules.Mark, at time.Time) {
	for _, mark := range marks {
		n, a := m.nodes[mark.Node].Copy(), m.allocs[mark.Alloc].Copy()
		lifecycle.ApplyMark(n, a, mark, at, m.index)
		m.nodes[n.ID], m.allocs[a.ID] = n, a
	}
}

func (m *model) upsertEvals(evals []*cluster.Evaluation) {
	for _, e := range evals {
		c := e.Copy()
		c.CreateIndex = m.index
		m.evals[c.ID] = c
	}
}

// write writes and deletes rows.
func (m *model) write(rows Rows) {
	for _, n := range rows.Nodes {
		m.nodes[n.ID] = n
	}
	for _, j := range rows.Jobs {
		m.jobs[j.Key()] = j
	}
	for _, a := range rows.Allocs {
		m.allocs[a.ID] = a
	}
	for _, e := range rows.Evals {
		m.evals[e.ID] = e
	}
	for _, id := range rows.DeletedNodes {
		delete(m.nodes, id)
	}
	for _, key := range rows.DeletedJobs {
		delete(m.jobs, key)
	}
	for _, id := range rows.DeletedAllocs {
		delete(m.allocs, id)
	}
	for _, id := range rows.DeletedEvals {
		delete(m.evals, id)
	}
}

func sortedKeys[K comparable, T any](rows map[K]T, compare func(a, b K) int) []K {
	return slices.SortedFunc(maps.Keys(rows), compare)
}
