package plan_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plan"
)

// BenchmarkPlay plays the drains of 20 of 1,000 nodes with 50 allocations each.
func BenchmarkPlay(b *testing.B) {
	f := newFixture(b, 1000)
	f.fill(1000, 50, 1)
	q := plan.Question{At: epoch()}
	for i := range 20 {
		q.Nodes = append(q.Nodes, node(i))
	}
	for b.Loop() {
		r, err := plan.Play(b.Context(), f.FSM.Store(), q, plan.Settings{})
		must.NoError(b, err)
		must.Positive(b, r.Took)
	}
}
