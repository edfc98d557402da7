package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureNodeVolumeStop: a volume delays the end of its allocation by little more than its plugin needs. One
// allocation after the other is stopped. The mounts are real.
func figureNodeVolumeStop(b *testing.B) {
	tasks := 10
	if measure.SizeOf(b) == measure.Full {
		tasks = 50
	}
	n := newTestNode(b)
	n.startStorage(tasks * measure.PairsOf(b))
	var overheads, medians, plugins []time.Duration
	for part := range measure.PairsOf(b) {
		for i := range tasks {
			j := n.processes(cluster.JobID(fmt.Sprintf("job-%d-%d", part, i)), 1, 0)
			j.TaskGroups[0].Volumes = []cluster.VolumeRequest{volumeRequest(volumeID(part*tasks+i), false)}
			n.register(j)
		}
		all := n.running(tasks)
		var over, own []time.Duration
		stops := n.stopOneByOne(all)
		calls := storageCalls(b, n.file("calls"))
		for i, s := range stops {
			volume := all[i].Job.TaskGroups[0].Volumes[0].Source
			took := calls[string(volume)]
			over, own = append(over, s.ended.Sub(s.exited)-took), append(own, took)
		}
		overheads, medians, plugins = append(overheads, percentile(over, 99)), append(medians, percentile(over, 50)), append(plugins, percentile(own, 50))
	}
	reportTimes(b, "overhead-p99", overheads, 100*time.Millisecond)
	measure.Count(b, percentile(medians, 50).Seconds()*1000, "overhead-p50-ms")
	measure.Count(b, percentile(plugins, 50).Seconds()*1000, "plugin-p50-ms")
	measure.Count(b, tasks*len(overheads), "samples")
	n.reportLoad()
}

// figureNodeVolumeDrain: a forced drain of a node with many volumes, each of one allocation. The tasks end at
// once, and the storage plugin ends last.
func figureNodeVolumeDrain(b *testing.B) {
	volumes := 40
	if measure.SizeOf(b) == measure.Full {
		volumes = 200
	}
	n := newTestNode(b)
	n.startStorage(volumes)
	j := n.mocks(volumes)
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{volumeRequest("disk", true)}
	n.register(j)
	var times []time.Duration
	for range measure.PairsOf(b) {
		n.running(volumes)
		all := slices.Collect(n.server.Server().Store().Snapshot().WorkView().LiveAllocsByNode(n.id))
		must.SliceLen(b, volumes+1, all)
		began := time.Now()
		_, err := n.writer.UpdateDrain(context.Background(), cluster.DrainUpdate{Node: n.id, Spec: &cluster.DrainSpec{Deadline: -1}})
		must.NoError(b, err)
		n.awaitEnds(all)
		var last time.Duration
		for _, a := range all {
			_, ended := n.timesOf(a.ID)
			last = max(last, ended.Sub(began))
		}
		times = append(times, last)
		n.eligible()
	}
	n.running(volumes)
	reportTimes(b, "time", times, 10*time.Second)
	measure.Count(b, volumes, "volumes")
	n.reportLoad()
}

// volumeID is the id of the ith volume. It ends as the volumes of allocations do.
func volumeID(i int) cluster.VolumeID { return cluster.VolumeID(fmt.Sprintf("disk[%d]", i)) }

func volumeRequest(source cluster.VolumeID, perAlloc bool) cluster.VolumeRequest {
	return cluster.VolumeRequest{Name: "disk", Type: cluster.VolumeCSI, Source: source, PerAlloc: perAlloc, Capability: oneWriter()}
}

// startStorage starts the storage plugin of examples/csi, which checks the order of its calls and logs them,
// and registers volumes. It skips the figure on a machine where the client may not mount.
func (n *testNode) startStorage(volumes int) {
	n.b.Helper()
	if err := mayMount(n.file("try")); err != nil {
		n.b.Skip("SKIPPED: volumes are mounted as root only: ", err)
	}
	n.build("csi", "examples/csi")
	must.NoError(n.b, os.Mkdir(n.file("disks"), 0o755))
	var names []string
	for i := range volumes {
		names = append(names, externalID(i))
	}
	j := n.job("plugin", 1, "raw_exec", map[string]any{"command": n.file("csi"), "args": []string{
		"-root", n.file("disks"), "-node-id", "n1", "-create", strings.Join(names, ","), "-strict", n.file("calls"),
	}})
	j.Type, j.TaskGroups[0].Migrate = cluster.JobSystem, nil
	j.TaskGroups[0].Tasks[0].Resources.MemoryMB = 256 // one goroutine of the plugin for each mount
	j.TaskGroups[0].Tasks[0].CSIPlugin = &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}
	j.Canonicalize()
	for i := range volumes {
		_, err := n.writer.RegisterVolume(context.Background(), &cluster.Volume{
			Namespace: cluster.DefaultNamespace, ID: volumeID(i), ExternalID: externalID(i), Plugin: "disks", Capabilities: []cluster.VolumeCapability{oneWriter()},
		})
		must.NoError(n.b, err)
	}
	n.register(j)
	n.await("a healthy storage plugin", func(s *statestore.Snapshot) bool {
		p := s.Node(n.id).NodePlugin("disks")
		return p != nil && p.Healthy
	})
}

func externalID(i int) string { return fmt.Sprint("disk-", i) }

// mayMount reports whether this process may mount.
func mayMount(dir string) error {
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, path := range []string{from, to} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	}
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Unmount(to, 0)
}

// storageCalls reads the log of the storage plugin. It returns how long the plugin
// needed to take each volume off the node. No call was out of order.
func storageCalls(b *testing.B, path string) map[string]time.Duration {
	log, err := os.ReadFile(path)
	must.NoError(b, err)
	took := map[string]time.Duration{}
	for line := range bytes.Lines(log) {
		var c struct {
			Call, Volume, Verdict, Code string
			Began, Time                 time.Time
		}
		must.NoError(b, json.Unmarshal(line, &c))
		must.False(b, c.Verdict == "out of order" || c.Verdict == "in flight", must.Sprint(string(line)))
		if c.Call == "NodeUnpublishVolume" || c.Call == "NodeUnstageVolume" {
			id := strings.Replace(c.Volume, "disk-", "disk[", 1) + "]"
			took[id] += c.Time.Sub(c.Began)
		}
	}
	return took
}
