package shims_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// OnAnswer is called once for each write, before the reply, with any outcome. It is not called for
// a write that the full queue refused.
func TestProposer_OnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		note := func(who string, a shims.Answer) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprint(who, " ", a.Outcome))
		}
		r := new(fakeRaft)
		p := newProposer(t, r, shims.NewFSM(shims.FSMConfig{}), shims.Options{MaxInFlight: 1, QueueSize: 2, OnAnswer: func(m shims.Message, a shims.Answer) {
			if m == nil {
				note("barrier", a)
				return
			}
			note(m.Type().String(), a)
		}})
		reply := func(a shims.Answer) { note("reply", a) }
		must.True(t, p.Propose(named("applied"), reply))
		synctest.Wait()
		must.True(t, p.Propose(named("lost"), reply))
		must.True(t, p.Barrier(reply))
		must.False(t, p.Propose(named("too many"), reply))
		r.answer(1, shims.ChangeApplied{}, nil)
		synctest.Wait()
		r.answer(0, nil, raft.ErrLeadershipLost)
		synctest.Wait()
		p.Close() // raft may have the barrier
		kind := named("").Type().String()
		must.Eq(t, []string{
			kind + " applied", "reply applied", kind + " unknown", "reply unknown", "barrier unknown", "reply unknown",
		}, order)
		r.answer(2, nil, nil)
	})
}
