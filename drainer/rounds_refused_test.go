package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Where plan and state cannot agree, what is refused is planned again less and
// less often: a group's marks, a node's, and completions.
func TestRounds_RefusedBacksOff(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*town){
		"a group's mark": func(w *town) {},
		"a node's mark":  func(w *town) { w.drain("n1", -1) },
		"a completion":   func(w *town) { w.allocs = nil },
		"a completion while others stop": func(w *town) {
			w.drain("n1", -1)
			w.alloc("a00").DesiredStatus, w.alloc("a00").StoppedAt = cluster.DesiredStop, epoch.Add(time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := jobsOnOneNode(1)
			edit(w)
			r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Asked })
			r.raft.always = refused
			r.advance(time.Minute)
			// 50 ms, 100 ms, ... 12.8 s, then every 15 s.
			must.Between(t, 10, len(r.raft.written()), 12)
			r.raft.always = applied
			r.advance(DefaultRetryMax)
			w = r.state.now()
			must.True(t, len(w.draining()) == 0 || w.alloc("a00").Marked())
		})
	}
}

// What was refused once, since it stopped by itself, does not slow down what is
// refused much later: failures are counted in a row.
func TestRounds_RefusalsAreCountedInARow(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n1", -1)
	r := newRig(t, w, nil)
	for i := range 4 {
		r.raft.script = []fate{refused}
		r.settle()
		must.Eq(t, r.now.Add(DefaultRetryBase), r.wakeAt, must.Sprintf("refusal %d", i+1))
		r.advance(DefaultRetryBase)
		must.True(t, r.state.now().alloc("a00").Marked())
		r.advance(time.Second)
		r.commit(func(w *town) { // it comes back, as from a client that was thought lost
			w.alloc("a00").DesiredTransition = cluster.DesiredTransition{}
		})
	}
}

// One mark of many is refused: the others of the node are written without delay.
func TestRounds_RefusedOneDoesNotDelayTheRest(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(6)
	w.drain("n1", -1)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.MaxIDsPerEntry, c.MaxInFlight = 2, 1 })
	r.raft.script = []fate{refused}
	r.settle()
	must.Eq(t, epoch, r.now)
	must.Len(t, 6, r.raft.written())
	r.advance(DefaultRetryBase)
	must.Len(t, 7, r.raft.written())
	for _, a := range r.state.now().allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}

// An allocation ends by itself while its forced mark is in flight, and the client
// of another never stops: after the wait for the refused mark, the wait for the
// one that was made is still on, and ends the drain.
func TestRounds_RefusalDoesNotLoseTheWaitForTheRest(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(2)
	w.drain("n1", -1)
	r := newRig(t, w, nil)
	r.run()
	r.raft.answer()
	r.run()
	must.Len(t, 1, r.raft.written())
	r.commit(func(w *town) { w.alloc("a00").ClientStatus = cluster.ClientFailed })
	r.advance(20*time.Second + DefaultStopMargin)
	must.SliceEmpty(t, r.state.now().draining())
}

// The end of a drain that has only to ask is refused, while what it asked still
// stops: it is wanted again.
func TestRounds_RefusedCompletionIsWantedAgainWhileOthersStop(t *testing.T) {
	t.Parallel()
	w := jobsOnOneNode(1)
	w.drain("n1", -1)
	r := newRig(t, w, func(c *NodeDrainerConfig) { c.Policy.Completion = Asked })
	r.raft.script = []fate{applied, refused}
	r.advance(time.Second)
	must.SliceEmpty(t, r.state.now().draining())
}

// Several writes of a round that fail are one failure; and one that is applied in
// between does not make a round succeed.
func TestRounds_OneFailureARound(t *testing.T) {
	t.Parallel()
	r := newRig(t, jobsOnOneNode(4), func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 2 })
	r.raft.script = []fate{rejected, lost, rejected, rejected}
	r.settle()
	must.Eq(t, epoch.Add(DefaultRetryBase), r.wakeAt)
	r.raft.script = []fate{applied, applied, rejected, applied}
	r.now = r.wakeAt
	r.settle()
	must.Eq(t, r.now.Add(2*DefaultRetryBase), r.wakeAt)
	r.advance(2 * DefaultRetryBase)
	must.Len(t, 9, r.raft.written())
	for _, a := range r.state.now().allocs {
		must.True(t, a.Marked(), must.Sprintf("%s", a.ID))
	}
}
