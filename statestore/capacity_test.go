package statestore_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// A node that fulfils other demands than before may take work that waits. This counts from cluster
// version 4 on, in which groups have such demands. Older servers do not count it.
func TestCapacityIndex_Drivers(t *testing.T) {
	t.Parallel()
	for _, version := range []cluster.Version{cluster.VersionOfDrivers - 1, cluster.VersionOfDrivers} {
		w := newWorld(t)
		w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(version) })
		node := &cluster.Node{ID: "n1", Status: cluster.NodeReady}
		register := func(edit func()) bool {
			edit()
			w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })
			return w.snap().WorkView().CapacityIndex() == w.index
		}
		must.True(t, register(func() {}), must.Sprint("a new node"))
		counts := version >= cluster.VersionOfDrivers
		must.Eq(t, counts, register(func() { node.Attributes = map[string]string{"kernel.name": "linux"} }))
		must.Eq(t, counts, register(func() { node.Meta = map[string]string{"rack": "r1"} }))
		if !counts {
			continue
		}
		driver := &cluster.DriverInfo{Detected: true}
		must.True(t, register(func() { node.Drivers = map[string]*cluster.DriverInfo{"raw_exec": driver} }))
		must.True(t, register(func() { driver.Healthy = true }))
		must.True(t, register(func() { driver.Attributes = map[string]string{"driver.raw_exec.version": "2"} }))
		must.True(t, register(func() { node.MaxKillTimeout = 1 }))
		must.True(t, register(func() { node.Name = "n" }))
		must.False(t, register(func() { driver.UpdateTime, driver.HealthDescription = w.now, "well" }))
		must.False(t, register(func() { node.HTTPAddr = "127.0.0.1:1" }))
	}
}

// The cores that tasks can have are capacity.
func TestCapacityIndex_Cores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfLimits) })
	node := &cluster.Node{ID: "n1", Status: cluster.NodeReady, Cores: cluster.Cores{1}}
	capacity := func() (moved bool) {
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })
		return w.snap().WorkView().CapacityIndex() == w.index
	}
	must.True(t, capacity(), must.Sprint("a new node"))
	must.False(t, capacity())
	node.Cores = cluster.Cores{1, 3}
	must.True(t, capacity())
	node.Cores = cluster.Cores{3, 1}
	must.ErrorContains(t, w.store.Begin(w.index+1).UpsertNode(node, w.now), "in their order")
}

// The range of dynamic ports, and what is reserved of all ports, are capacity.
func TestCapacityIndex_Ports(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfPorts) })
	node := &cluster.Node{ID: "n1", Status: cluster.NodeReady}
	capacity := func() (moved bool) {
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })
		return w.snap().WorkView().CapacityIndex() == w.index
	}
	must.True(t, capacity(), must.Sprint("a new node"))
	node.Network = &cluster.NodeNetwork{IP: "10.0.0.1", MinDynamicPort: 20000, MaxDynamicPort: 20001}
	must.True(t, capacity())
	must.False(t, capacity())
	node.Network.Reserved = cluster.PortRanges{{First: 22, Last: 22}}
	must.True(t, capacity())
	node.Network.MinDynamicPort = 0
	must.ErrorContains(t, w.store.Begin(w.index+1).UpsertNode(node, w.now), "range of dynamic ports")
}

// Devices are capacity from cluster version 6 on. Their order, descriptions and locations are not.
func TestCapacityIndex_Devices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(func(x *statestore.Txn) { x.RaiseClusterVersion(cluster.VersionOfDevices) })
	gpus := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}}
	node := &cluster.Node{ID: "n1", Status: cluster.NodeReady}
	register := func(edit func()) bool {
		edit()
		w.write(func(x *statestore.Txn) { must.NoError(t, x.UpsertNode(node, w.now)) })
		return w.snap().WorkView().CapacityIndex() == w.index
	}
	must.True(t, register(func() {}))
	must.True(t, register(func() { node.Devices = []*cluster.DeviceGroup{gpus} }))
	must.True(t, register(func() { gpus.Devices = []cluster.Device{{ID: "b"}, {ID: "a"}} }))
	must.False(t, register(func() { gpus.Devices = []cluster.Device{{ID: "a", HealthDescription: "hot", PCIBusID: "1"}, {ID: "b"}} }))
	must.True(t, register(func() { gpus.Devices[0].Healthy = true }))
	must.True(t, register(func() {
		gpus.Attributes = map[string]cluster.DeviceAttribute{"memory": {Kind: cluster.AttributeInt, Int: 1}}
	}))
	must.True(t, register(func() { gpus.Attributes["memory"] = cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: 2} }))
	must.True(t, register(func() { gpus.Kind.Name = "H100" }))
	must.False(t, register(func() { node.HTTPAddr = "127.0.0.1:1" }))

	stored := w.snap().Node("n1").Devices[0]
	gpus.Devices[0].Healthy, gpus.Attributes["memory"] = false, cluster.DeviceAttribute{}
	must.True(t, stored.Devices[0].Healthy && stored.Attributes["memory"].Int == 2, must.Sprint("the row shares no memory with the caller's node"))
	err := w.store.Begin(w.index+1).UpsertNode(&cluster.Node{ID: "n1", Devices: []*cluster.DeviceGroup{stored, stored}}, w.now)
	must.EqError(t, err, "registering node n1: devices nvidia/gpu/H100 are listed twice")
}

// The scheduler retries blocked evaluations when capacity may have been added. An extra signal
// costs plans. Without a signal, work waits forever.
func TestCapacityIndex(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.nodes("n1")
	web := w.job(serviceJob("web", 3))
	w.place(web, "n1", nil, "w1", "w2", "w3")
	must.Eq(t, 1, w.snap().WorkView().CapacityIndex())
	steps := []struct {
		name  string
		comes bool
		step  func()
	}{
		{"a heartbeat", false, func() { w.status("n1", cluster.NodeReady) }},
		{"a node that goes down", false, func() { w.status("n1", cluster.NodeDown) }},
		{"a node that becomes ready again", true, func() { w.status("n1", cluster.NodeReady) }},
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
		before := w.snap().WorkView().CapacityIndex()
		s.step()
		want := before
		if s.comes {
			want = w.index
		}
		must.Eq(t, want, w.snap().WorkView().CapacityIndex(), must.Sprint(s.name))
	}
}
