package rowview_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/drainertest"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
)

// TestStore compares every view with a model that reads everything for every answer, over random
// histories.
func TestView(t *testing.T) {
	t.Parallel()
	must.NoError(t, drainertest.TestStore(func() drainertest.Store { return new(store) }))
}

// A view states that its scheduler places beside only after WithStandbys, also with a pause.
func TestView_withStandbys(t *testing.T) {
	t.Parallel()
	plain := rowview.New(1, nil, nil, nil, nil)
	must.False(t, plain.PlacesBeside())
	must.True(t, plain.WithStandbys().WithPause(&cluster.DrainPause{}).PlacesBeside())
	must.False(t, plain.PlacesBeside(), must.Sprint("the views are different ones"))
}

// store passes rows to the view in random order.
type store struct {
	rowview.Reader
	nodes  []*cluster.Node
	jobs   []*cluster.Job
	allocs []*cluster.Allocation
	evals  []*cluster.Evaluation
	pause  *cluster.DrainPause
}

func (s *store) CommitPause(index uint64, all *cluster.DrainPause) error {
	s.pause = all
	return s.Commit(index, drainertest.Rows{})
}

func (s *store) Commit(index uint64, r drainertest.Rows) error {
	random := rand.New(rand.NewPCG(index, 1))
	s.nodes = put(random, s.nodes, r.Nodes, r.DeletedNodes, func(n *cluster.Node) cluster.NodeID { return n.ID })
	s.jobs = put(random, s.jobs, r.Jobs, r.DeletedJobs, (*cluster.Job).Key)
	s.allocs = put(random, s.allocs, r.Allocs, r.DeletedAllocs, func(a *cluster.Allocation) cluster.AllocID { return a.ID })
	s.evals = put(random, s.evals, r.Evals, r.DeletedEvals, func(e *cluster.Evaluation) cluster.EvalID { return e.ID })
	s.Publish(rowview.New(index, s.nodes, s.jobs, s.allocs, s.evals).WithPause(s.pause))
	return nil
}

// put returns the rows after a commit, in random order.
func put[K comparable, T any](random *rand.Rand, rows, written []*T, deleted []K, key func(*T) K) []*T {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row *T) bool {
		return slices.Contains(deleted, key(row)) || slices.ContainsFunc(written, func(w *T) bool { return key(w) == key(row) })
	})
	rows = append(rows, written...)
	random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return rows
}
