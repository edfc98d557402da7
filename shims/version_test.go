package shims_test

import (
	"testing"
	"testing/synctest"

	"github.com/hashicorp/raft"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

func TestVersion_AnEntryRaisesItPermanently(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	must.Eq(t, 1, h.state().ClusterVersion())
	must.Eq(t, shims.ChangeApplied{}, h.apply(&shims.RaiseClusterVersion{Version: 2}).(shims.ChangeApplied))
	must.Eq(t, 2, h.state().ClusterVersion())
	h.apply(&shims.RaiseClusterVersion{Version: 2})
	must.Eq(t, 2, h.state().ClusterVersion())

	other := shims.NewFSM(shims.FSMConfig{})
	restore(t, other, persist(t, h.fsm))
	must.Eq(t, 2, other.Store().Snapshot().ClusterVersion())
}

func TestVersion_ARaiseBeyondThisBuildIsNotProposed(t *testing.T) {
	t.Parallel()
	_, err := shims.Encode(&shims.RaiseClusterVersion{Version: cluster.MaxVersion + 1})
	must.ErrorIs(t, err, cluster.ErrVersion)
}

// A proposer refuses a message until the state shows that every server understands it.
func TestVersion_AMessageWaitsForTheVersionThatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fsm := new(fakeRaft), shims.NewFSM(shims.FSMConfig{})
		p, err := shims.NewProposer(r, fsm, shims.Options{})
		must.NoError(t, err)
		defer p.Close()
		propose := func() (answer shims.Answer) {
			must.True(t, p.Propose(&shims.FutureStatus{}, func(a shims.Answer) { answer = a }))
			synctest.Wait()
			if r.waiting() > 0 {
				r.answer(9, shims.ChangeApplied{}, nil)
				synctest.Wait()
			}
			return answer
		}

		refused := propose()
		must.Eq(t, raftwrite.Rejected, refused.Outcome)
		must.ErrorIs(t, refused.Err, cluster.ErrVersion)
		must.ErrorContains(t, refused.Err, "NodeUpdateStatus needs version 2, and the cluster has version 1: upgrade every server")
		must.SliceEmpty(t, r.proposed, must.Sprint("raft is not called"))

		_, err = fsm.ApplyEntry(1, encode(t, &shims.RaiseClusterVersion{Version: 2}))
		must.NoError(t, err)
		must.Eq(t, raftwrite.Applied, propose().Outcome)
		must.SliceLen(t, 1, r.proposed)
		must.Eq(t, 2, r.proposed[0][1], must.Sprint("the entry names the version that it needs"))
	})
}

// Raft answers a barrier although the FSM has stopped before it.
func TestVersion_ABarrierBehindAStoppedFSMIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fsm := new(fakeRaft), shims.NewFSM(shims.FSMConfig{})
		p, err := shims.NewProposer(r, fsm, shims.Options{})
		must.NoError(t, err)
		defer p.Close()
		var answer shims.Answer
		must.True(t, p.Barrier(func(a shims.Answer) { answer = a }))
		synctest.Wait()
		fsm.Apply(&raft.Log{Index: 1, Data: raiseBeyond(t)})
		r.answer(0, nil, nil)
		synctest.Wait()
		must.Eq(t, raftwrite.Unknown, answer.Outcome)
		must.ErrorIs(t, answer.Err, cluster.ErrVersion)
	})
}

// Below cluster version 9 a state has no history. From the entry that raises the version on, servers have the
// same history if and only if they have applied the same entries.
func TestVersion_HistoriesBeginWithTheirVersion(t *testing.T) {
	t.Parallel()
	one := newHistory(t, shims.FSMConfig{})
	one.apply(node("n1"), &shims.RaiseClusterVersion{Version: cluster.VersionOfHistory - 1}, node("n2"))
	must.Zero(t, one.state().History())
	must.StrNotContains(t, dump(t, one.fsm), "History")
	before := persist(t, one.fsm)
	one.apply(&shims.RaiseClusterVersion{Version: cluster.VersionOfHistory})
	must.NonZero(t, one.state().History())

	for name, c := range map[string]struct {
		refused, skipped bool
		node             cluster.NodeID
		equal            bool
	}{
		"the same":         {node: "n3", equal: true},
		"another":          {node: "n4"},
		"a refused entry":  {node: "n3", refused: true},
		"an unknown entry": {node: "n3", skipped: true},
	} {
		same, other := newHistory(t, shims.FSMConfig{}), newHistory(t, shims.FSMConfig{})
		for _, h := range []*history{same, other} {
			restore(t, h.fsm, before)
			h.next = one.next - 1
			h.apply(&shims.RaiseClusterVersion{Version: cluster.VersionOfHistory})
			must.Eq(t, one.state().History(), h.state().History())
		}
		same.apply(&shims.EvalUpdate{}, node("n3"))
		switch {
		case c.refused:
			_, refused := other.apply(&shims.NodeUpdateStatus{Node: "n9", Status: cluster.NodeReady}).(shims.Refused)
			must.True(t, refused)
		case c.skipped:
			_, err := other.fsm.ApplyEntry(other.next, []byte{byte(shims.IgnorableFlag | 5), 1})
			must.NoError(t, err)
			other.next++
		default:
			other.apply(&shims.EvalUpdate{})
		}
		other.apply(node(c.node))
		must.EqOp(t, c.equal, same.state().History() == other.state().History(), must.Sprint(name))
		must.True(t, same.state().InHistory(one.state().Index(), one.state().History()))
	}
}
