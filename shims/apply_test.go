package shims_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// applied calls Apply with the message, lets raft answer or the context end, and returns the result.
func applied[R shims.Response](t *testing.T, m shims.Request[R], answer func(r *fakeRaft, giveUp context.CancelCauseFunc)) (response R, index uint64, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := new(fakeRaft)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{})
		ctx, giveUp := context.WithCancelCause(t.Context())
		defer giveUp(nil)
		done := make(chan struct{})
		go func() {
			defer close(done)
			response, index, err = shims.Apply(ctx, p, m)
		}()
		synctest.Wait()
		answer(r, giveUp)
		<-done
		r.answerAll(raft.ErrNotLeader)
	})
	return response, index, err
}

func TestApply_GivesEachMessageItsOwnResponse(t *testing.T) {
	t.Parallel()
	gone := &shims.NodeDeregister{Nodes: []cluster.NodeID{"n1"}}
	response, index, err := applied(t, gone, func(r *fakeRaft, _ context.CancelCauseFunc) {
		r.answer(7, shims.NodesDeregistered{Missing: gone.Nodes}, nil)
	})
	must.NoError(t, err)
	must.Eq(t, 7, index)
	must.Eq(t, gone.Nodes, response.Missing)
}

func TestApply_ARefusalIsAnErrorWithItsCause(t *testing.T) {
	t.Parallel()
	_, index, err := applied(t, startDrain("n9", "d1", 0), func(r *fakeRaft, _ context.CancelCauseFunc) {
		r.answer(7, shims.Refused{Err: statestore.ErrNodeNotFound}, nil)
	})
	must.ErrorIs(t, err, statestore.ErrNodeNotFound)
	must.EqError(t, err, "NodeUpdateDrain refused: node not found")
	must.Eq(t, 7, index)
}

func TestApply_ErrorsDistinguishWhetherTheMessageMayHaveTakenEffect(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]error{raft.ErrNotLeader: shims.ErrRejected, raft.ErrLeadershipLost: shims.ErrUnknown} {
		_, index, err := applied(t, eval("e1"), func(r *fakeRaft, _ context.CancelCauseFunc) { r.answer(7, nil, cause) })
		must.ErrorIs(t, err, want)
		must.ErrorIs(t, err, cause)
		must.Zero(t, index)
	}
}

func TestApply_AResponseOfAnotherTypeIsAnError(t *testing.T) {
	t.Parallel()
	_, _, err := applied(t, eval("e1"), func(r *fakeRaft, _ context.CancelCauseFunc) { r.answer(7, shims.MarksApplied{}, nil) })
	must.EqError(t, err, "EvalUpdate was answered with shims.MarksApplied")
}

func TestApply_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	impatient := errors.New("the operator disconnected")
	_, _, err := applied(t, eval("e1"), func(_ *fakeRaft, giveUp context.CancelCauseFunc) { giveUp(impatient) })
	must.ErrorIs(t, err, impatient)
	must.ErrorIs(t, err, shims.ErrUnknown)
}

func TestApply_FullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProposer(t, new(fakeRaft), shims.NewFSM(shims.FSMConfig{}), shims.Options{})
		p.Close()
		start := time.Now()
		_, _, err := shims.Apply(t.Context(), p, eval("e1"))
		must.ErrorIs(t, err, shims.ErrBusy)
		must.Zero(t, time.Since(start))
	})
}
