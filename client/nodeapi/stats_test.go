package nodeapi_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
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

	host, err := n.client().Nodes().Stats("n", nil)
	must.NoError(t, err)
	must.Positive(t, host.Memory.Total)
	must.Positive(t, host.AllocDirStats.Size)
	must.SliceNotEmpty(t, host.CPU)
	must.Positive(t, host.Uptime)
}
