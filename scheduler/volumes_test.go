package scheduler_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func mode(access cluster.AccessMode) cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: access, Attachment: cluster.AttachFileSystem}
}

// disks means that the node has the storage plugin of the tests.
func disks(healthy bool, edit ...func(*cluster.StoragePlugin)) func(*cluster.Node) {
	return func(n *cluster.Node) {
		p := &cluster.StoragePlugin{ID: "disks", Type: cluster.PluginNode, Healthy: healthy}
		for _, f := range edit {
			f(p)
		}
		n.StoragePlugins = append(n.StoragePlugins, p)
	}
}

// registerVolume registers a volume that may be used in every mode.
func registerVolume(c *cell, id string, edit ...func(*cluster.Volume)) {
	v := &cluster.Volume{ID: cluster.VolumeID(id), ExternalID: id, Plugin: "disks"}
	for _, access := range []cluster.AccessMode{
		cluster.SingleNodeReader, cluster.SingleNodeWriter, cluster.MultiNodeReader, cluster.MultiNodeSingleWriter, cluster.MultiNodeMultiWriter,
	} {
		v.Capabilities = append(v.Capabilities, mode(access))
	}
	for _, f := range edit {
		f(v)
	}
	c.write(func(txn *statestore.Txn) error { return txn.UpsertVolume(v, c.now) })
}

// uses makes the job's group use the volume "data".
func uses(access cluster.AccessMode, edit ...func(*cluster.VolumeRequest)) func(*cluster.Job) {
	return func(j *cluster.Job) {
		r := cluster.VolumeRequest{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode(access), ReadOnly: !access.Writes()}
		for _, f := range edit {
			f(&r)
		}
		j.TaskGroups[0].Volumes = append(j.TaskGroups[0].Volumes, r)
	}
}

func readOnly(r *cluster.VolumeRequest) { r.ReadOnly = true }
func perAlloc(r *cluster.VolumeRequest) { r.PerAlloc = true }

// A group with a volume goes where a healthy storage plugin is, when the volume exists. When a plugin
// becomes healthy, what waits is placed; when it becomes unhealthy, what runs stays.
func TestVolumes_APlacementNeedsAHealthyPlugin(t *testing.T) {
	for _, kind := range []cluster.JobType{cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch} {
		t.Run(string(kind), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", disks(false))
			c.node("n2")
			job := c.job("web", kind, 1, uses(cluster.MultiNodeMultiWriter))
			c.run()
			must.SliceEmpty(t, c.wanted(job), must.Sprint("no volume"))
			registerVolume(c, "data")
			c.run()
			must.SliceEmpty(t, c.wanted(job), must.Sprint("no healthy plugin"))
			c.node("n1", disks(true))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)))
			c.node("n1", disks(false))
			c.run()
			must.Eq(t, []cluster.NodeID{"n1"}, nodesOf(c.wanted(job)), must.Sprint("what runs stays"))
		})
	}
}

// How many allocations of one group have the volume at a time.
func TestVolumes_CapacityOfClaims(t *testing.T) {
	for _, test := range []struct {
		access   cluster.AccessMode
		readOnly bool
		want     int
	}{
		{cluster.SingleNodeReader, true, 1},
		{cluster.SingleNodeWriter, false, 1},
		{cluster.SingleNodeWriter, true, 1},
		{cluster.MultiNodeReader, true, 3},
		{cluster.MultiNodeSingleWriter, false, 1},
		{cluster.MultiNodeSingleWriter, true, 3},
		{cluster.MultiNodeMultiWriter, false, 3},
	} {
		t.Run(fmt.Sprint(test.access, test.readOnly), func(t *testing.T) {
			c := parallel(t)
			c.node("n1", disks(true))
			registerVolume(c, "data")
			job := c.job("web", cluster.JobService, 3, uses(test.access, func(r *cluster.VolumeRequest) { r.ReadOnly = test.readOnly }))
			c.run()
			must.Len(t, test.want, c.wanted(job))
		})
	}
}

// Readers share a volume with its writer; another mode excludes them.
func TestVolumes_ModesDoNotMix(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true))
	registerVolume(c, "data")
	c.job("writer", cluster.JobService, 1, uses(cluster.MultiNodeSingleWriter))
	readers := c.job("readers", cluster.JobService, 2, uses(cluster.MultiNodeSingleWriter, readOnly))
	other := c.job("other", cluster.JobService, 1, uses(cluster.MultiNodeReader))
	c.run()
	must.Len(t, 2, c.wanted(readers))
	must.SliceEmpty(t, c.wanted(other))
}

// An allocation with a volume of its own waits for that volume, and the others of its group do not.
func TestVolumes_PerAlloc(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true))
	c.node("n2", disks(true))
	registerVolume(c, "data[0]")
	registerVolume(c, "data[2]")
	job := c.job("web", cluster.JobService, 3, uses(cluster.SingleNodeWriter, perAlloc))
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[2]"}, namesOf(c.wanted(job)))
	registerVolume(c, "data[1]")
	c.run()
	must.Eq(t, []string{"web.g[0]", "web.g[1]", "web.g[2]"}, namesOf(c.wanted(job)))
}

// Regression: an allocation had one volume twice, to read and to write, and the state kept one claim, of the
// reader. So another job got the volume of one writer. Such a job is refused when it is registered. One that is
// in the state already gets no such placement.
func TestVolumes_OneVolumeTwice(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true))
	registerVolume(c, "data[0]")
	registerVolume(c, "data[1]")
	job := c.job("web", cluster.JobService, 2, uses(cluster.MultiNodeSingleWriter, perAlloc))
	twice := c.view().Job(job).Copy()
	uses(cluster.MultiNodeSingleWriter, readOnly, func(r *cluster.VolumeRequest) { r.Name, r.Source = "r", "data[0]" })(twice)
	must.ErrorContains(t, twice.Validate(), "have the same source")
	c.write(func(txn *statestore.Txn) error { return txn.UpsertJob(twice) })
	plan := c.pending(job)
	must.Eq(t, []string{"web.g[1]"}, namesOf(plan.Places))
	plan.Places[0].Name = "web.g[0]" // by a scheduler that does not check
	refused := c.apply(plan)
	must.Eq(t, []string{`node n1: requests "d" and "r" are both volume default/data[0]: an allocation has one claim of a volume`}, reasons(refused))
	c.run()
	must.Eq(t, []string{"web.g[1]"}, namesOf(c.wanted(job)))
}

// A node takes as many volumes of a plugin as the plugin allows; a volume counts once.
func TestVolumes_MaxVolumesOfANode(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true, func(p *cluster.StoragePlugin) { p.MaxVolumes = 2 }))
	for i := range 3 {
		registerVolume(c, fmt.Sprintf("data[%d]", i))
	}
	job := c.job("web", cluster.JobService, 3, uses(cluster.SingleNodeWriter, perAlloc))
	c.run()
	must.Len(t, 2, c.wanted(job))

	c = newCell(t)
	c.node("n1", disks(true, func(p *cluster.StoragePlugin) { p.MaxVolumes = 1 }))
	registerVolume(c, "data")
	job = c.job("web", cluster.JobService, 3, uses(cluster.MultiNodeMultiWriter))
	c.run()
	must.Len(t, 3, c.wanted(job))
}

// A volume that is only in one place goes there, and a plugin that needs a controller waits for one.
func TestVolumes_TopologyAndController(t *testing.T) {
	zone := func(z string) func(*cluster.StoragePlugin) {
		return func(p *cluster.StoragePlugin) {
			p.Topology, p.NeedsController = cluster.Topology{Segments: map[string]string{"zone": z}}, true
		}
	}
	c := parallel(t)
	c.node("n1", disks(true, zone("a")))
	c.node("n2", disks(true, zone("b")))
	registerVolume(c, "data", func(v *cluster.Volume) {
		v.Topologies = []cluster.Topology{{Segments: map[string]string{"zone": "b"}}}
	})
	job := c.job("web", cluster.JobService, 1, uses(cluster.SingleNodeWriter))
	c.run()
	must.SliceEmpty(t, c.wanted(job), must.Sprint("no controller"))
	c.node("n3", disks(true, func(p *cluster.StoragePlugin) { p.Type, p.Attaches = cluster.PluginController, true }))
	c.run()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
	for claim := range c.view().WorkView().Claims() {
		must.True(t, claim.Controller)
	}
}

// Two plans made from one state want the last claim: one gets it.
func TestVolumes_TwoPlansForTheLastClaim(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true))
	c.node("n2", disks(true))
	registerVolume(c, "data")
	var plans []*cluster.Plan
	for _, id := range []string{"one", "two"} {
		job := c.job(id, cluster.JobService, 1, uses(cluster.SingleNodeWriter))
		for e := range c.view().WorkView().OpenEvals(job) {
			plans = append(plans, scheduler.Schedule(c.view().WorkView(), e, c.now, c.ids()))
		}
	}
	must.Len(t, 2, plans)
	var refused []scheduler.Refusal
	for _, p := range plans {
		must.Len(t, 1, p.Places)
		c.write(func(txn *statestore.Txn) error {
			accepted, no := scheduler.Check(txn.State().WorkView(), p)
			refused = append(refused, no...)
			_, err := txn.ApplyPlan(accepted)
			return err
		})
	}
	must.Len(t, 1, refused)
	must.StrContains(t, refused[0].Why, "volume default/data is claimed by allocation")
}

// The replacement of a drained allocation is placed when the volume is free: after the report of the
// client, which unblocks the evaluation.
func TestVolumes_AReplacementWaitsForTheVolume(t *testing.T) {
	c := parallel(t)
	c.node("n1", disks(true))
	registerVolume(c, "data")
	job := c.job("web", cluster.JobService, 1, uses(cluster.SingleNodeWriter))
	c.run()
	first := c.wanted(job)[0]
	c.node("n2", disks(true))
	c.write(func(txn *statestore.Txn) error { return txn.MigrateAlloc(first.ID, c.now) })
	c.evaluate(job)
	c.settle()
	c.unblock()
	must.SliceEmpty(t, c.wanted(job), must.Sprint("the first is stopped, and has the volume still"))
	must.True(t, c.view().Alloc(first.ID).ServerTerminal())
	c.progress()
	must.SliceEmpty(t, slices.Collect(c.view().WorkView().Claims()))
	c.unblock()
	must.Eq(t, []cluster.NodeID{"n2"}, nodesOf(c.wanted(job)))
}
