package shims_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func TestSettle_WaitsForUnansweredWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, got := new(fakeRaft), newAnswers(t)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 3})
		for _, name := range []string{"a", "b"} {
			p.Propose(named(name), got.of(name))
		}
		synctest.Wait()
		p.Close()

		impatient, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("the test does not wait longer"))
		defer cancel()
		must.EqError(t, p.Settle(impatient), "waiting for raft's answers: the test does not wait longer")

		time.AfterFunc(time.Minute, func() { r.answerAll(raft.ErrLeadershipLost) })
		start := time.Now()
		must.NoError(t, p.Settle(t.Context()))
		must.Eq(t, time.Minute, time.Since(start))
		must.NoError(t, p.Settle(t.Context()), must.Sprint("a second call, without writes in flight"))
	})
}

func TestSettle_IdleProposer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProposer(t, new(fakeRaft), shims.NewFSM(shims.FSMConfig{}), shims.Options{})
		p.Close()
		must.NoError(t, p.Settle(t.Context()))
	})
}
