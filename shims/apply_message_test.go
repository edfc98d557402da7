package shims_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A message that is applied without its encoding does what its entry does. It is refused where a proposer
// would refuse it.
func TestFSM_ApplyMessage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	register := &shims.NodeRegister{At: at, Node: clustertest.Node("n")}
	entry := shims.NewFSM(shims.FSMConfig{})
	data, err := shims.Encode(register)
	must.NoError(t, err)
	_, err = entry.ApplyEntry(1, data)
	must.NoError(t, err)

	var applied []shims.Applied
	direct := shims.NewFSMOver(entry.Store().Fork(), shims.FSMConfig{OnApply: func(a shims.Applied) { applied = append(applied, a) }})
	other := &shims.NodeRegister{At: at, Node: clustertest.Node("o")}
	response, err := direct.ApplyMessage(2, other)
	must.NoError(t, err)
	must.Eq(t, shims.Response(shims.ChangeApplied{}), response)
	must.Len(t, 1, applied)
	must.Eq(t, shims.Message(other), applied[0].Message)
	must.NotNil(t, direct.Store().Snapshot().Node("o"))
	must.Nil(t, entry.Store().Snapshot().Node("o"))

	_, err = direct.ApplyMessage(2, other)
	must.ErrorIs(t, err, shims.ErrBroken) // the index is taken
	_, err = direct.ApplyMessage(3, &shims.NodeRegister{At: at})
	must.Error(t, err) // it names no node
	_, err = direct.ApplyMessage(3, &shims.AllocStop{At: at, Alloc: "a"})
	must.ErrorIs(t, err, cluster.ErrVersion) // the state has version 1
	must.Eq(t, 2, direct.Store().Snapshot().Index())
}
