package shims_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// An operator's stop marks the allocation without a drain, and adds the evaluation that moves it. A
// second stop, or a stop of an ended allocation, only adds an evaluation.
func TestAllocStop(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	first := h.apply(&shims.AllocStop{At: noon.Add(5 * time.Second), Alloc: "a0"}).(shims.ChangeApplied)
	must.SliceLen(t, 1, first.Evals)
	eval := h.state().Eval(first.Evals[0])
	must.EqOp(t, cluster.TriggerAllocStop, eval.TriggeredBy)
	must.EqOp(t, cluster.EvalPending, eval.Status)
	stopped := h.state().Alloc("a0")
	must.Eq(t, cluster.DesiredTransition{Migrate: true}, stopped.DesiredTransition)
	must.EqOp(t, h.state().Index(), stopped.AllocModifyIndex)
	must.EqOp(t, cluster.DesiredRun, stopped.DesiredStatus)
	must.False(t, h.state().Alloc("a1").Marked())

	second := h.apply(&shims.AllocStop{At: noon.Add(6 * time.Second), Alloc: "a0", Evals: []*cluster.Evaluation{jobEval("e2")}}).(shims.ChangeApplied)
	must.Eq(t, []cluster.EvalID{"e2"}, second.Evals)
	must.EqOp(t, stopped, h.state().Alloc("a0"))

	refused := h.apply(&shims.AllocStop{At: noon.Add(7 * time.Second), Alloc: "none"}).(shims.Refused)
	must.ErrorIs(t, refused.Err, statestore.ErrAllocNotFound)
}

// A server of an older cluster version would stop at the entry, so the entry needs the version of
// stops.
func TestAllocStop_needsItsVersion(t *testing.T) {
	t.Parallel()
	entry := encode(t, &shims.AllocStop{Alloc: "a0"})
	must.Eq(t, []byte{byte(shims.AllocStopType), byte(cluster.VersionOfStops)}, entry[:2])
}
