package nodeapi_test

import (
	"math"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

func TestStats(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Running: true}, nodeapi.TaskState{Name: "db", Running: true}, nodeapi.TaskState{Name: "unmeasured", Running: true}, nodeapi.TaskState{Name: "old", Dead: true})
	usage, err := n.client().Allocations().Stats(alloc("a"), nil)
	must.NoError(t, err)
	must.Eq(t, uint64(3<<20), usage.ResourceUsage.MemoryStats.RSS)
	must.Eq(t, 200, usage.ResourceUsage.CpuStats.Percent)
	must.Eq(t, 2000, usage.ResourceUsage.CpuStats.TotalTicks)
	must.Eq(t, time.Unix(6, 0).UnixNano(), usage.Timestamp)
	must.MapLen(t, 2, usage.Tasks)
	must.Eq(t, uint64(1<<20), usage.Tasks["web"].ResourceUsage.MemoryStats.RSS)
	must.Eq(t, []string{"RSS"}, usage.Tasks["web"].ResourceUsage.MemoryStats.Measured)
	must.Eq(t, 150, usage.Tasks["web"].ResourceUsage.CpuStats.Percent)

	must.SliceEmpty(t, usage.ResourceUsage.DeviceStats, must.Sprint("no task has a device"))

	host, err := n.client().Nodes().Stats("n", nil)
	must.NoError(t, err)
	must.Positive(t, host.Memory.Total)
	must.Positive(t, host.AllocDirStats.Size)
	must.SliceNotEmpty(t, host.CPU)
	must.Positive(t, host.Uptime)
}

// The statistics of an allocation have those of the devices that its tasks have, and those of the node have
// all.
func TestStats_devices(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	toy, other := cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}, cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t2"}
	used, most, load, hot, word := int64(3), int64(8), 12.5, true, "idle"
	nan := math.NaN()
	at := time.Unix(7, 0).UTC()
	n.devices = []device.GroupStats{
		{Kind: toy, Devices: map[string]device.Stats{
			"d1": {Time: at, Summary: device.StatValue{IntNumerator: &used, IntDenominator: &most, Unit: "GiB", Description: "memory"}, Values: device.StatObject{
				Values: map[string]device.StatValue{"load": {FloatNumerator: &load, Unit: "%"}, "broken": {FloatNumerator: &nan}, "hot": {Bool: &hot}},
				Nested: map[string]device.StatObject{"more": {Values: map[string]device.StatValue{"state": {Text: &word}}}},
			}},
			"d2": {Time: at},
		}},
		{Kind: other, Devices: map[string]device.Stats{"d1": {Time: at}}},
	}
	n.tasks.set("a",
		nodeapi.TaskState{Name: "web", Running: true, Devices: []cluster.AssignedDevice{{Task: "web", Kind: toy, IDs: []string{"d1"}}}},
		nodeapi.TaskState{Name: "db", Running: true},
		nodeapi.TaskState{Name: "old", Dead: true, Devices: []cluster.AssignedDevice{{Task: "old", Kind: toy, IDs: []string{"d2"}}}})
	usage, err := n.client().Allocations().Stats(alloc("a"), nil)
	must.NoError(t, err)
	must.SliceEmpty(t, usage.Tasks["db"].ResourceUsage.DeviceStats)
	for _, groups := range [][]*api.DeviceGroupStats{usage.ResourceUsage.DeviceStats, usage.Tasks["web"].ResourceUsage.DeviceStats} {
		must.SliceLen(t, 1, groups)
		must.Eq(t, "acme/toy/t1", groups[0].Vendor+"/"+groups[0].Type+"/"+groups[0].Name)
		must.MapLen(t, 1, groups[0].InstanceStats)
		one := groups[0].InstanceStats["d1"]
		must.Eq(t, "3 / 8 GiB", one.Summary.String())
		must.Eq(t, "memory", one.Summary.Desc)
		must.Eq(t, at, one.Timestamp)
		must.Eq(t, 12.5, *one.Stats.Attributes["load"].FloatNumeratorVal)
		must.Eq(t, "true", one.Stats.Attributes["hot"].String())
		must.Eq(t, "idle", one.Stats.Nested["more"].Attributes["state"].String())
		must.Nil(t, one.Stats.Attributes["broken"].FloatNumeratorVal, must.Sprint("JSON has no such number"))
	}
	host, err := n.client().Nodes().Stats("n", nil)
	must.NoError(t, err)
	must.SliceLen(t, 2, host.DeviceStats)
	must.MapLen(t, 2, host.DeviceStats[0].InstanceStats)
	must.Nil(t, host.DeviceStats[0].InstanceStats["d2"].Summary)
}
