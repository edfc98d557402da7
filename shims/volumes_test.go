package shims_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Entries about volumes, and entries with the fields of volumes, need cluster version 7. A server
// of version 6 reads this number first. It stops at the entry, and its error states what to do.
// Entries without these fields stay as older servers write them.
func TestVolumes_EntriesNeedTheirVersion(t *testing.T) {
	t.Parallel()
	with := func(change func(*cluster.TaskGroup)) *cluster.Job {
		j := webJob(1)
		change(j.TaskGroups[0])
		return j
	}
	volume := with(func(g *cluster.TaskGroup) {
		g.Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data"}}
	})
	plugin := with(func(g *cluster.TaskGroup) {
		g.Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginNode}
	})
	holds := &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Volume: "data", Alloc: "a"}}}
	node := func(change func(*cluster.Node)) *shims.NodeRegister {
		n := &cluster.Node{ID: "n"}
		change(n)
		return &shims.NodeRegister{Node: n}
	}
	plan := func(a *cluster.Allocation) shims.Message {
		return &shims.ApplyPlan{Plan: cluster.Plan{Eval: jobEval("e"), Places: []*cluster.Allocation{a}}}
	}
	for name, m := range map[string]shims.Message{
		"a volume":                 &shims.VolumeRegister{Volume: &cluster.Volume{ID: "data"}},
		"a deregistration":         &shims.VolumeDeregister{},
		"a detachment":             &shims.VolumeDetach{},
		"changes of claims":        &shims.ClaimUpdate{},
		"a job with a volume":      &shims.JobRegister{Job: volume},
		"a job with a plugin":      &shims.JobRegister{Job: plugin},
		"a node with a plugin":     node(func(n *cluster.Node) { n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks"}} }),
		"a node with an allowance": node(func(n *cluster.Node) { n.VolumeAllowance = 1 }),
		"a node with a hold limit": node(func(n *cluster.Node) { n.HoldLimit = 1 }),
		"a report of holds":        &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a"}, {Alloc: "b", VolumeHolds: holds}}},
		"a plan of a volume":       plan(&cluster.Allocation{ID: "a", Job: volume}),
		"a plan with held volumes": plan(&cluster.Allocation{ID: "a", Job: webJob(1), VolumeHolds: holds}),
	} {
		entry := encode(t, m)
		must.Eq(t, byte(cluster.VersionOfVolumes), entry[1], must.Sprint(name))
		must.Eq(t, entry, encode(t, decode[shims.Message](t, entry)), must.Sprint(name))
		entry[1]-- // no build writes it
		_, err := shims.Decode(entry)
		must.ErrorIs(t, err, shims.ErrBroken, must.Sprint(name))
		entry[1] = byte(cluster.MaxVersion + 1) // an older build does the same with version 7
		_, err = shims.Decode(entry)
		must.ErrorIs(t, err, cluster.ErrVersion, must.Sprint(name))
		must.ErrorContains(t, err, "upgrade this server to a build that understands cluster version", must.Sprint(name))
	}
	for _, m := range []shims.Message{
		&shims.JobRegister{Job: webJob(1)}, node(func(*cluster.Node) {}),
		&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a"}}}, plan(&cluster.Allocation{ID: "a", Job: webJob(1)}),
	} {
		must.Eq(t, 1, encode(t, m)[1])
	}
}
