package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The scheduler retries blocked evaluations when capacity may have come. A signal too many costs
// plans; a missing one leaves work waiting for ever.
func TestCapacityIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 3))
	w.place(web, "n1", nil, "w1", "w2", "w3")
	must.Eq(t, 1, w.snap().CapacityIndex())
	steps := []struct {
		name  string
		comes bool
		step  func()
	}{
		{"a heartbeat", false, func() { w.status("n1", cluster.NodeReady) }},
		{"a node that goes down", false, func() { w.status("n1", cluster.NodeDown) }},
		{"a node that comes back", true, func() { w.status("n1", cluster.NodeReady) }},
		{"the same registration", false, func() { w.nodes("n1") }},
		{"a larger node", true, func() {
			w.write(func(x *statestore.Txn) {
				must.NoError(t, x.UpsertNode(&cluster.Node{ID: "n1", Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 9}}, w.now))
			})
		}},
		{"a mark", false, func() { w.drain("n1", "d1", cluster.DrainSpec{}); w.mark(cluster.MarkPaced, "w1") }},
		{"a stop", false, func() { w.stop("w1") }},
		{"the end of an allocation", true, func() { w.report(cluster.ClientComplete, "w1") }},
		{"a drain that is completed: the node stays ineligible", false, func() { w.complete("n1", cluster.OutcomeComplete, 0) }},
		{"eligibility", true, func() {
			w.write(func(x *statestore.Txn) { must.NoError(t, x.UpdateNodeEligibility("n1", cluster.NodeEligible, w.now)) })
		}},
		{"another node", true, func() { w.nodes("n2") }},
		{"a node that is deleted", false, func() {
			w.write(func(x *statestore.Txn) { x.DeleteNodes([]cluster.NodeID{"n2"}, w.now) })
		}},
		{"a cancelled drain", false, func() { w.drain("n1", "d2", cluster.DrainSpec{}); w.request(cluster.DrainUpdate{Node: "n1"}) }},
		{"a node made eligible by a disable", true, func() { w.request(cluster.DrainUpdate{Node: "n1", MarkEligible: true}) }},
		{"a purge", true, func() { w.write(func(x *statestore.Txn) { must.NoError(t, x.DeleteJob(web.Key(), true)) }) }},
	}
	for _, s := range steps {
		before := w.snap().CapacityIndex()
		s.step()
		want := before
		if s.comes {
			want = w.index
		}
		must.Eq(t, want, w.snap().CapacityIndex(), must.Sprint(s.name))
	}
}
