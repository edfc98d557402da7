package demo

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/witness"
)

// Each server tells the clients when it has applied an entry: the server whose state they read
// may be the last one. The witness sees the entry once.
func TestObserver(t *testing.T) {
	t.Parallel()
	var noticed []uint64
	o := newObserver(witness.Options{}, func(e witness.Entry) { noticed = append(noticed, e.Index) })
	ahead := shims.NewFSM(shims.FSMConfig{OnApply: o.applied})
	behind := shims.NewFSM(shims.FSMConfig{OnApply: o.applied})
	apply := func(fsm *shims.FSM, index uint64, m shims.Message) {
		data, err := shims.Encode(m)
		must.NoError(t, err)
		_, err = fsm.ApplyEntry(index, data)
		must.NoError(t, err)
	}
	node := &shims.NodeRegister{At: t0, Node: &cluster.Node{ID: "n1"}}
	drain := &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n1", Drain: "d1", Spec: &cluster.DrainSpec{}, At: t0}}
	apply(ahead, 1, node)
	apply(ahead, 2, drain)
	apply(behind, 1, node)
	apply(behind, 2, drain) // and goes on alone
	apply(behind, 3, &shims.NodeDeregister{At: t0, Nodes: []cluster.NodeID{"n1"}})

	must.Eq(t, []uint64{1, 2, 1, 2, 3}, noticed)
	must.Eq(t, uint64(3), o.last)
	report := o.witness.Report()
	must.True(t, report.Clean(), must.Sprint(report.Findings))
	must.SliceLen(t, 1, report.Drains)
	must.Eq(t, cluster.OutcomeNodeGone, report.Drains[0].Outcome)
}
