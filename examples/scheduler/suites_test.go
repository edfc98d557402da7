package main

import (
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/drainertest"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

func TestStore(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestStore(func() drainertest.Store { return newTested() }))
}

func TestStateMachine(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestFSM(func() drainertest.FSM { return newTested() }))
}

func TestWriter(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestApplier(func(log *drainertest.Log) drainer.RaftApplier {
		return newWriter(func(e *entry) (uint64, []rules.Refusal, error) {
			var r drainertest.Result
			switch {
			case e == nil:
				r = log.Barrier()
			case e.Marks != nil:
				r = log.Marks(e.Marks)
			default:
				r = log.Completions(e.Completions)
			}
			if r.Outcome != raftwrite.Applied {
				return 0, nil, errors.New("the log has failed")
			}
			return r.Index, r.Refused, nil
		})
	}))
}

// tested is the state of a server for the suites, which also write rows as they are.
type tested struct {
	rowview.Reader
	state atomic.Pointer[state]
}

func newTested() *tested {
	t := new(tested)
	t.state.Store(newState())
	return t
}

func (t *tested) show(s *state) {
	t.state.Store(s)
	t.Publish(s.view)
}

// apply applies an entry as a server reads it from the log.
func (t *tested) apply(e *entry) ([]rules.Refusal, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	read := new(entry)
	if err := json.Unmarshal(line, read); err != nil {
		return nil, err
	}
	after, refused := t.state.Load().apply(read)
	t.show(after)
	return refused, nil
}

func (t *tested) Commit(index uint64, rows drainertest.Rows) error {
	s := t.state.Load().next(index)
	put(s.nodes, rows.Nodes, rows.DeletedNodes, func(n *cluster.Node) cluster.NodeID { return n.ID })
	put(s.jobs, rows.Jobs, rows.DeletedJobs, (*cluster.Job).Key)
	put(s.allocs, rows.Allocs, rows.DeletedAllocs, func(a *cluster.Allocation) cluster.AllocID { return a.ID })
	put(s.evals, rows.Evals, rows.DeletedEvals, func(e *cluster.Evaluation) cluster.EvalID { return e.ID })
	t.show(s.show())
	return nil
}

func put[K comparable, T any](rows map[K]*T, written []*T, deleted []K, key func(*T) K) {
	for _, row := range written {
		rows[key(row)] = row
	}
	for _, id := range deleted {
		delete(rows, id)
	}
}

func (t *tested) CommitPause(_ uint64, all *cluster.DrainPause) error {
	u := &cluster.DrainPauseUpdate{Pause: all != nil, At: noon}
	if all != nil {
		u.At, u.By = all.At, all.By
	}
	_, err := t.apply(&entry{At: u.At, Pause: u})
	return err
}

func (t *tested) UpdateDrain(_ uint64, u cluster.DrainUpdate) error {
	before := t.state.Load().nodes[u.Node]
	_, err := t.apply(&entry{At: u.At, Drain: &u})
	switch {
	case before == nil:
		return errors.New("the node does not exist")
	case !before.Draining() && u.Spec != nil && u.Drain == "":
		return errors.New("the drain has no id")
	}
	return err
}

func (t *tested) Marks(_ uint64, m *rules.Marks) ([]rules.Refusal, error) {
	return t.apply(&entry{At: m.At, Marks: m})
}

func (t *tested) Completions(_ uint64, c *rules.Completions) ([]rules.Refusal, error) {
	return t.apply(&entry{At: c.At, Completions: c})
}

func (t *tested) View() rules.View { return t.state.Load().view }

func (t *tested) Record(id cluster.DrainID) *cluster.Drain { return t.state.Load().drains[id] }
