package placement_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// standBy lets n1 drain, requests a replacement of a1, and adds one on n3 that stands by to the plan.
func (w *world) standBy() *cluster.Allocation {
	w.drain = cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: start()}
	w.allocs[0].DesiredTransition = cluster.DesiredTransition{Surge: "d1", SurgeAt: start()}
	a := w.replace()
	a.Standby, w.plan.Stops = true, nil
	return a
}

func TestJudge_surge(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*world)
		want   []string
	}{
		"a replacement that stands by": {func(w *world) { w.standBy() }, nil},
		"a replacement that is not requested": {func(w *world) {
			w.standBy()
			w.allocs[0].DesiredTransition = cluster.DesiredTransition{}
		}, []string{"stands by", "above count", "not stopped"}},
		"a replacement that an earlier drain requested": {func(w *world) {
			w.standBy()
			w.allocs[0].DesiredTransition.Surge = "d0"
		}, []string{"stands by", "above count", "not stopped"}},
		"a replacement with another name": {func(w *world) { w.standBy().Name = "web.web[2]" }, []string{"stands by"}},
		"a replacement of one that runs, and that does not stand by": {func(w *world) {
			w.standBy().Standby = false
		}, []string{"above count", "still running", "not stopped"}},
		"no replacement": {func(w *world) {
			w.standBy()
			w.plan.Places = nil
		}, []string{"left short"}},
		"no replacement, and it is counted": {func(w *world) {
			w.standBy()
			w.plan.Places, w.plan.Blocked = nil, w.blocked("b1", 1)
		}, nil},
		"the evaluation stays pending": {func(w *world) {
			w.standBy()
			w.plan.Places, w.plan.Eval.Status = nil, cluster.EvalPending
		}, nil},
		"a second replacement while the first one runs": {func(w *world) {
			first := w.standBy()
			w.allocs, w.plan.Places = append(w.allocs, first), nil
			second := w.alloc("a4", first.Name, "n2")
			second.PreviousAllocation, second.Standby = first.ID, true
			w.plan.Places = append(w.plan.Places, second)
		}, []string{"above count", "still running"}},
		"a second replacement after the first one has failed": {func(w *world) {
			first := w.standBy()
			first.ClientStatus = cluster.ClientFailed
			w.allocs, w.plan.Places = append(w.allocs, first), nil
			second := w.alloc("a4", first.Name, "n2")
			second.PreviousAllocation, second.Standby = first.ID, true
			w.plan.Places = append(w.plan.Places, second)
		}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.change(w)
			must.SliceContainsAll(t, w.judge(t), c.want)
		})
	}
}
