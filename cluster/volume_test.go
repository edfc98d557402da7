package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

func soundVolume() *cluster.Volume {
	v := &cluster.Volume{ID: "data", ExternalID: "vol-1", Plugin: "disks", Capabilities: []cluster.VolumeCapability{
		{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem},
	}}
	v.Canonicalize()
	return v
}

func TestVolume_Validate(t *testing.T) {
	t.Parallel()
	must.NoError(t, soundVolume().Validate())
	must.ErrorContains(t, (*cluster.Volume)(nil).Validate(), "volume is missing")
	for want, edit := range map[string]func(*cluster.Volume){
		"Invalid volume ID: it is empty": func(v *cluster.Volume) { v.ID = "" },
		"Invalid external ID":            func(v *cluster.Volume) { v.ExternalID = "a\x00" },
		"Invalid plugin ID":              func(v *cluster.Volume) { v.Plugin = ".." },
		"Missing capabilities":           func(v *cluster.Volume) { v.Capabilities = nil },
		`Invalid access mode: "all"`:     func(v *cluster.Volume) { v.Capabilities[0].Access = "all" },
		`Invalid attachment mode: ""`:    func(v *cluster.Volume) { v.Capabilities[0].Attachment = "" },
		"occurs twice":                   func(v *cluster.Volume) { v.Capabilities = append(v.Capabilities, v.Capabilities[0]) },
		"Capacity must be >= 0":          func(v *cluster.Volume) { v.CapacityBytes = -1 },
		"Mount flag 0 must have":         func(v *cluster.Volume) { v.MountOptions = &cluster.MountOptions{Flags: []string{""}} },
		"a volume have at most 65536 bytes": func(v *cluster.Volume) {
			v.Secrets = map[string]string{"a": strings.Repeat("x", 32<<10), "b": strings.Repeat("x", 32<<10)}
		},
		"at most 64 topologies but found 65":       func(v *cluster.Volume) { v.Topologies = make([]cluster.Topology, 65) },
		"A volume has at most 16 capabilities but": func(v *cluster.Volume) { v.Capabilities = make([]cluster.VolumeCapability, 17) },
	} {
		v := soundVolume()
		edit(v)
		must.ErrorContains(t, v.Validate(), want)
	}
}

func TestVolume_ReachableFrom(t *testing.T) {
	t.Parallel()
	v, zone := soundVolume(), func(z string) cluster.Topology {
		return cluster.Topology{Segments: map[string]string{"zone": z, "rack": "1"}}
	}
	must.True(t, v.ReachableFrom(cluster.Topology{}))
	v.Topologies = []cluster.Topology{{Segments: map[string]string{"zone": "a"}}, {Segments: map[string]string{"zone": "b", "rack": "2"}}}
	must.True(t, v.ReachableFrom(zone("a")))
	must.False(t, v.ReachableFrom(zone("b")))
	must.False(t, v.ReachableFrom(cluster.Topology{}))
}

func TestJob_Validate_volumes(t *testing.T) {
	t.Parallel()
	for want, edit := range map[string]func(*cluster.TaskGroup){
		"": func(*cluster.TaskGroup) {},
		`Volume "d": Invalid type: "host": only "csi" is supported`: func(g *cluster.TaskGroup) { g.Volumes[0].Type = "host" },
		"needs a request that is read only":                         func(g *cluster.TaskGroup) { g.Volumes[0].Capability.Access = cluster.MultiNodeReader },
		"Mount options need the attachment mode file-system": func(g *cluster.TaskGroup) {
			g.Volumes[0].Capability.Attachment, g.Volumes[0].MountOptions = cluster.AttachBlockDevice, &cluster.MountOptions{FSType: "ext4"}
		},
		`Volume "d" is defined twice`: func(g *cluster.TaskGroup) { g.Volumes = append(g.Volumes, g.Volumes[0]) },
		`have the same source`: func(g *cluster.TaskGroup) {
			g.Volumes = append(g.Volumes, g.Volumes[0])
			g.Volumes[1].Name = "e"
		},
		// Regression: for the first allocation both are data[0]. It had only one claim, for the
		// last request.
		`Volumes "d" and "e" have the same source`: func(g *cluster.TaskGroup) {
			g.Volumes = append(g.Volumes, g.Volumes[0])
			g.Volumes[0].PerAlloc, g.Volumes[1].Name, g.Volumes[1].Source = true, "e", "data[0]"
		},
		`Volumes "c" and "d" have the same source`: func(g *cluster.TaskGroup) {
			g.Volumes = append([]cluster.VolumeRequest{g.Volumes[0]}, g.Volumes[0])
			g.Volumes[1].PerAlloc, g.Volumes[0].Name, g.Volumes[0].Source = true, "c", "data[12]"
		},
		"A group has at most 32 volumes but found 33": func(g *cluster.TaskGroup) { g.Volumes = make([]cluster.VolumeRequest, 33) },
		`the group has no volume "x"`:                 func(g *cluster.TaskGroup) { g.Tasks[0].VolumeMounts[0].Volume = "x" },
		"it leaves the file system of the task":       func(g *cluster.TaskGroup) { g.Tasks[0].VolumeMounts[0].Destination = "/a/../b" },
		`Task "t": two volume mounts have the destination "/data"`: func(g *cluster.TaskGroup) {
			g.Tasks[0].VolumeMounts = append(g.Tasks[0].VolumeMounts, cluster.VolumeMount{Volume: "d", Destination: "/data/./"})
		},
		`Invalid propagation mode: "all"`: func(g *cluster.TaskGroup) { g.Tasks[0].VolumeMounts[0].Propagation = "all" },
		"CSIPlugin: invalid type":         func(g *cluster.TaskGroup) { g.Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks"} },
	} {
		j := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{
			Name:    "g",
			Volumes: []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: soundVolume().Capabilities[0]}},
			Tasks:   []*cluster.Task{{Name: "t", VolumeMounts: []cluster.VolumeMount{{Volume: "d", Destination: "/data"}}}},
		}}}
		edit(j.TaskGroups[0])
		j.Canonicalize()
		if want == "" {
			must.NoError(t, j.Validate())
		} else {
			must.ErrorContains(t, j.Validate(), want)
		}
	}
}

// A request with PerAlloc is valid beside requests for volumes that no allocation of it can get.
func TestJob_Validate_volumesForEachAllocation(t *testing.T) {
	t.Parallel()
	for _, other := range []cluster.VolumeID{"data", "data[]", "data[x]", "data[0", "data0]", "data[0][1]", "other[0]"} {
		g := &cluster.TaskGroup{Name: "g", Tasks: []*cluster.Task{{Name: "t"}}, Volumes: []cluster.VolumeRequest{
			{Name: "own", Type: cluster.VolumeCSI, Source: "data", PerAlloc: true, Capability: soundVolume().Capabilities[0]},
			{Name: "other", Type: cluster.VolumeCSI, Source: other, Capability: soundVolume().Capabilities[0]},
		}}
		j := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{g}}
		j.Canonicalize()
		must.NoError(t, j.Validate(), must.Sprint(other))
	}
}

// The state stores a limited number of volumes of a report, sorted, with shortened texts.
func TestVolumeHolds_Bounded(t *testing.T) {
	t.Parallel()
	must.Nil(t, (*cluster.VolumeHolds)(nil).Bounded())
	must.Nil(t, (&cluster.VolumeHolds{}).Bounded())
	must.Nil(t, (&cluster.VolumeHolds{More: -3}).Bounded())
	h := &cluster.VolumeHolds{More: 2}
	for i := range 20 {
		h.Volumes = append(h.Volumes, cluster.VolumeHold{Volume: cluster.VolumeID(fmt.Sprint(19 - i)), Reason: strings.Repeat("x", 999), Since: time.Unix(1, 0)})
	}
	h.Volumes = append(h.Volumes, h.Volumes[0])
	kept := h.Bounded()
	must.Len(t, cluster.MaxVolumeHolds, kept.Volumes)
	must.Eq(t, 6, kept.More)
	must.Eq(t, "0", kept.Volumes[0].Volume)
	must.Eq(t, cluster.MaxTaskEventBytes, len(kept.Volumes[0].Reason))
	must.True(t, kept.Equal(kept.Bounded()))
	must.False(t, kept.Equal(h))
	must.True(t, kept.Holds(cluster.ClaimKey{Alloc: "any"}), must.Sprint("some are not named"))
}

// A caller without the right to write sees the volumes without the reasons.
func TestVolumeHolds_WithoutReasons(t *testing.T) {
	t.Parallel()
	must.Nil(t, (*cluster.VolumeHolds)(nil).WithoutReasons())
	must.Eq(t, "", (*cluster.VolumeHolds)(nil).Names(9))
	h := &cluster.VolumeHolds{More: 2, Volumes: []cluster.VolumeHold{
		{Namespace: "ops", Volume: "data", Alloc: "a1", Path: "/mnt", Reason: "busy"}, {Namespace: "ops", Volume: "logs", Alloc: "a2"},
	}}
	must.Eq(t, cluster.VolumeHold{Namespace: "ops", Volume: "data", Alloc: "a1", Path: "/mnt"}, h.WithoutReasons().Volumes[0])
	must.Eq(t, 2, h.WithoutReasons().More)
	must.Eq(t, "busy", h.Volumes[0].Reason)
	must.Eq(t, "ops/data of allocation a1, ops/logs of allocation a2, 2 more", h.WithoutReasons().Names(9))
	must.Eq(t, "ops/data of allocation a1, 3 more", h.Names(1))
	found, named := h.Hold(h.Volumes[1].Key())
	must.True(t, named)
	must.Eq(t, h.Volumes[1], found)
	_, named = h.Hold(cluster.ClaimKey{Alloc: "a1"})
	must.False(t, named)
}
