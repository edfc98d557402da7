package invariant_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
)

// The digest covers the fields of all kinds, also nested ones.
func TestDigest_coversEveryKind(t *testing.T) {
	t.Parallel()
	node := func(change func(*cluster.Node)) uint64 {
		n := &cluster.Node{
			ID: "n1", Attributes: map[string]string{}, Drain: &cluster.Drain{ID: "d1"}, Events: []cluster.NodeEvent{{Message: "one"}, {Message: "two"}},
			Devices: []*cluster.DeviceGroup{{Attributes: map[string]cluster.DeviceAttribute{"memory": {Float: 1}}}},
		}
		change(n)
		return invariant.DigestOf(n)
	}
	all := map[uint64]string{invariant.DigestOf[cluster.Node](nil): "no row", node(func(*cluster.Node) {}): "the row"}
	for name, change := range map[string]func(*cluster.Node){
		"a text": func(n *cluster.Node) { n.ID = "n2" }, "a flag": func(n *cluster.Node) { n.TLSEnabled = true },
		"a number": func(n *cluster.Node) { n.MaxAllocs = -1 }, "an index": func(n *cluster.Node) { n.ModifyIndex = 7 },
		"a time": func(n *cluster.Node) { n.StatusChangedAt = epoch }, "a nil map": func(n *cluster.Node) { n.Attributes = nil },
		"a value": func(n *cluster.Node) { n.Attributes["os"] = "linux" }, "a key": func(n *cluster.Node) { n.Attributes["kernel"] = "linux" },
		"a nil pointer": func(n *cluster.Node) { n.Drain = nil }, "behind a pointer": func(n *cluster.Node) { n.Drain.ID = "d2" },
		"an array": func(n *cluster.Node) { n.Drain.Marked[1] = 1 }, "a short list": func(n *cluster.Node) { n.Events = n.Events[:1] },
		"in a list": func(n *cluster.Node) { n.Events[1].Message = "three" }, "a nil item": func(n *cluster.Node) { n.Devices[0] = nil },
		"a fraction": func(n *cluster.Node) { n.Devices[0].Attributes["memory"] = cluster.DeviceAttribute{Float: 2} },
	} {
		digest := node(change)
		must.Eq(t, "", all[digest], must.Sprint(name))
		all[digest] = name
	}
	must.Eq(t, node(func(n *cluster.Node) { n.StatusChangedAt = epoch }), node(func(n *cluster.Node) { n.StatusChangedAt = epoch.In(time.FixedZone("", 3600)) }))

	alloc := func(j cluster.Job) uint64 { return invariant.DigestOf(&cluster.Allocation{ID: "a1", Job: &j}) }
	must.Eq(t, alloc(cluster.Job{Version: 1, Priority: 50}), alloc(cluster.Job{Version: 1}), must.Sprint("the content of a version is in its own entry"))
	must.NotEq(t, alloc(cluster.Job{Version: 1}), alloc(cluster.Job{Version: 2}))
}

// The digests of an entry are equal for equal states, and differ for different ones.
func TestDigest_ofAnEntry(t *testing.T) {
	t.Parallel()
	one, two := web(t, invariant.Options{}, 3, 1), web(t, invariant.Options{}, 3, 1)
	must.Eq(t, invariant.Digest(one.last), invariant.Digest(two.last))
	one.drain("n1", 0)
	two.drain("n1", time.Hour)
	must.NotEq(t, invariant.Digest(one.last), invariant.Digest(two.last))
	a, b := &cluster.Evaluation{ID: "ab", JobID: "c"}, &cluster.Evaluation{ID: "a", JobID: "bc"}
	must.NotEq(t, invariant.DigestOf(a), invariant.DigestOf(b))
}
