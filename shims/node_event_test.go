package shims_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// An entry appends an event to a node that exists, and changes nothing else. A server of an older cluster
// version would stop at it.
func TestNodeAppendEvent(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	h.apply(node("n1"))
	before := h.state().Node("n1")
	event := cluster.NodeEvent{Message: cluster.EventProcessRefused, Subsystem: cluster.SubsystemCluster, Details: map[string]string{"process": "p"}, Timestamp: noon}
	must.Eq(t, shims.Response(shims.ChangeApplied{}), h.apply(&shims.NodeAppendEvent{Node: "n1", Event: event}))
	after := h.state().Node("n1").Copy()
	must.Len(t, len(before.Events)+1, after.Events)
	event.CreateIndex = 2
	must.Eq(t, event, after.Events[len(before.Events)])
	must.EqOp(t, 2, after.ModifyIndex)
	after.Events, after.ModifyIndex = before.Events, before.ModifyIndex
	must.Eq(t, before, after)

	refused := h.apply(&shims.NodeAppendEvent{Node: "none", Event: event}).(shims.Refused)
	must.ErrorIs(t, refused.Err, statestore.ErrNodeNotFound)
	entry := encode(t, &shims.NodeAppendEvent{Node: "n1", Event: event})
	must.Eq(t, []byte{byte(shims.NodeAppendEventType), byte(cluster.VersionOfConfirmation)}, entry[:2])
}
