package scheduler_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/shoenig/test/must"
	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
)

// spot is a node as the slow placer below sees it.
type spot struct {
	node *cluster.Node
	free cluster.Resources
	same int
}

func share(part, whole int64) int64 {
	if whole == 0 {
		return 0
	}
	return part * 1000 / whole
}

// left is how much of the node is left with one more, in thousandths of each of
// its resources.
func (s *spot) left(need cluster.Resources) int64 {
	free, all := s.free.Minus(need), s.node.Resources
	return share(free.CPU, all.CPU) + share(free.MemoryMB, all.MemoryMB) + share(free.DiskMB, all.DiskMB) + share(free.GPU, all.GPU)
}

// slowly chooses by a comparison of all nodes for each allocation: the fewest of the
// group, then the least left, then the lowest id.
func slowly(spots []*spot, need cluster.Resources, avoid cluster.NodeID) *spot {
	var best *spot
	for _, s := range spots {
		switch {
		case !need.Fits(s.free):
		case best == nil || best.node.ID == avoid:
			best = s
		case s.node.ID == avoid:
		case s.same < best.same, s.same == best.same && s.left(need) < best.left(need):
			best = s
		}
	}
	if best != nil {
		best.free = best.free.Minus(need)
		best.same++
	}
	return best
}

func smallAmounts(rt *rapid.T, least int64, name string) cluster.Resources {
	amount := rapid.Int64Range(least, 20)
	return cluster.Resources{CPU: amount.Draw(rt, name+" cpu"), MemoryMB: amount.Draw(rt, name+" memory"), GPU: rapid.Int64Range(0, least).Draw(rt, name+" gpu")}
}

// The heap chooses as a comparison of all nodes would.
func TestPlacementIsTheBest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCell(rt)
		for i := range rapid.IntRange(1, 8).Draw(rt, "nodes") {
			c.node(fmt.Sprintf("n%d", i), func(n *cluster.Node) { n.Resources = smallAmounts(rt, 10, "node") })
		}
		job := c.job("web", cluster.JobService, rapid.IntRange(1, 30).Draw(rt, "count"), func(j *cluster.Job) {
			j.TaskGroups[0].Tasks[0].Resources = smallAmounts(rt, 1, "task")
		})
		var spots []*spot
		for n := range c.view().Nodes() {
			spots = append(spots, &spot{node: n, free: n.Resources})
		}
		need := c.view().Job(job).TaskGroups[0].Resources()
		plan := c.pending(job)
		for _, a := range plan.Places {
			must.Eq(rt, slowly(spots, need, "").node.ID, a.NodeID)
		}
		if len(plan.Places) < c.view().Job(job).TaskGroups[0].Count {
			must.Nil(rt, slowly(spots, need, ""))
		}

		// Then each fails once, and goes elsewhere if it can.
		must.SliceEmpty(rt, c.apply(plan))
		var reports []cluster.AllocReport
		for _, a := range plan.Places {
			reports = append(reports, c.statusReport(a, cluster.ClientFailed))
		}
		c.report(reports...)
		for _, s := range spots {
			s.free, s.same = s.node.Resources, 0
		}
		if len(plan.Places) == 0 {
			return
		}
		for _, a := range c.pending(job).Places {
			avoid := c.view().Alloc(a.PreviousAllocation)
			if avoid == nil {
				must.Eq(rt, slowly(spots, need, "").node.ID, a.NodeID)
				continue
			}
			must.Eq(rt, slowly(spots, need, avoid.NodeID).node.ID, a.NodeID)
		}
	})
}

// The same view gives the same plan.
//
//race:skip one goroutine
func TestPlanIsDeterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newChaos(rt)
		for range rapid.IntRange(0, 40).Draw(rt, "happenings") {
			w.happen()
		}
		for _, k := range w.jobs {
			w.evaluate(k)
			lastID := w.lastID
			one := w.pending(k)
			w.lastID = lastID
			must.Eq(rt, one, w.pending(k))
		}
	})
}

// large is a cluster of as many machines as a real one, each with work on it.
func large(b *testing.B, count int) (*cell, *cluster.Evaluation) {
	c := newCell(b)
	for i := range 1523 {
		c.node(fmt.Sprintf("n%04d", i))
	}
	for i := range 52 {
		c.job(fmt.Sprintf("job-%02d", i), cluster.JobService, 100)
		c.settle()
	}
	job := c.job("web", cluster.JobService, count)
	return c, first(c.view().WorkView().OpenEvals(job))
}

func BenchmarkSchedule(b *testing.B) {
	for _, count := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("nodes=1523/places=%d", count), func(b *testing.B) {
			c, eval := large(b, count)
			view, ids := c.view(), scheduler.RandomIDs()
			for b.Loop() {
				if plan := scheduler.Schedule(view.WorkView(), eval, start, ids); len(plan.Places) != count {
					b.Fatalf("placed %d", len(plan.Places))
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	c, eval := large(b, 100)
	plan := c.schedule(eval)
	for b.Loop() {
		txn := c.store.Begin(c.index + 1)
		if _, refused := scheduler.Check(txn.State().WorkView(), plan); len(refused) > 0 {
			b.Fatal(refused)
		}
		txn.Abort()
	}
}

// A leader that begins with 5,200 allocations to place.
func BenchmarkFill(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c := newCell(b)
		for i := range 1523 {
			c.node(fmt.Sprintf("n%04d", i))
		}
		for i := range 52 {
			c.job(fmt.Sprintf("job-%02d", i), cluster.JobService, 100)
		}
		s, log := c.leader()
		b.StartTimer()
		log.lead(s)
		if log.refused > 0 {
			b.Fatal(log.refused)
		}
	}
}

// Allocations that an older server accepted with absurd amounts fill their node until the last of them has ended.
// Their sum was negative before, and the node seemed empty.
func TestAbsurdAmountsFillTheNode(t *testing.T) {
	c := parallel(t)
	c.node("n1")
	c.node("large", func(n *cluster.Node) { n.Resources.CPU, n.NodeClass = math.MaxInt64, "large" })
	huge := func(j *cluster.Job) { j.TaskGroups[0].Tasks[0].Resources.CPU = math.MaxInt64 }
	old := c.job("old", cluster.JobBatch, 2, huge)
	for range 2 {
		c.seed(old, "n1", func(a *cluster.Allocation) { a.Resources.CPU = math.MaxInt64 })
	}
	onLarge := c.job("large", cluster.JobService, 3, huge, func(j *cluster.Job) { j.TaskGroups[0].NodeClasses = []string{"large"} })
	small := c.job("small", cluster.JobService, 1, func(j *cluster.Job) {
		j.TaskGroups[0].Constraints = []cluster.Constraint{{LTarget: "${node.unique.id}", Operand: "=", RTarget: "n1"}}
	})
	c.settle()
	must.Len(t, 1, c.wanted(onLarge), must.Sprint("one fills the largest node"))
	for _, a := range c.wanted(old) {
		must.SliceEmpty(t, c.wanted(small))
		c.report(c.statusReport(a, cluster.ClientComplete))
		c.settle()
		c.unblock()
	}
	must.Len(t, 1, c.wanted(small))
}
