package picture_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain/picture"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
)

// A plan of three drains, of which one takes allocations at the deadline and one never ends.
func TestOfPlan_golden(t *testing.T) {
	t.Parallel()
	plan := &drainplan.Answer{
		Plays: 39, Allocs: 9, Took: 0,
		Nodes: []drainplan.Node{
			{Name: "worker-1", Took: 80 * time.Second, Outcome: "complete", Allocs: 5},
			{Name: "worker-2", Took: 130 * time.Second, Outcome: "deadline reached", Allocs: 4, Taken: 2},
			{Name: "worker-3", Began: 20 * time.Second, Waits: make([]wire.DrainAlloc, 2)},
		},
		Groups: []drainplan.Group{
			{Namespace: "default", JobID: "web", Group: "api", Type: "service", Count: 6, Moves: 5, Healthy: 6, Lowest: 5, Needed: 5, LowestFor: 110 * time.Second},
			{Namespace: "default", JobID: "db", Group: "db", Type: "service", Count: 3, Moves: 2, Healthy: 3, Lowest: 1, Needed: 2, LowestAt: 2 * time.Minute, LowestFor: 20 * time.Second},
			{Namespace: "default", JobID: "calc", Group: "calc", Type: "batch", Moves: 2},
		},
	}
	p := picture.OfPlan(plan, 2*time.Minute)
	golden(t, "plan.txt", func(b *bytes.Buffer) error { return p.Text(b, 100, false) })
	golden(t, "plan.svg", func(b *bytes.Buffer) error { return p.SVG(b) })
}
