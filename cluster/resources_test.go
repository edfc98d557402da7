package cluster_test

import (
	"math"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// all is the same amount of each resource.
func all(n int64) cluster.Resources {
	return cluster.Resources{CPU: n, MemoryMB: n, DiskMB: n, GPU: n}
}

// Sums of amounts that older servers accepted do not become negative.
func TestResources_overflow(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ a, b, sum, difference int64 }{
		{1, 2, 3, -1},
		{-5, -6, -11, 1},
		{math.MaxInt64, 1, math.MaxInt64, math.MaxInt64 - 1},
		{math.MaxInt64, math.MaxInt64, math.MaxInt64, 0},
		{math.MinInt64, math.MaxInt64, -1, math.MinInt64},
		{math.MaxInt64, math.MinInt64, -1, math.MaxInt64},
		{math.MinInt64, -1, math.MinInt64, math.MinInt64 + 1},
		{math.MinInt64, math.MinInt64, math.MinInt64, 0},
		{0, math.MinInt64, math.MinInt64, math.MaxInt64},
	} {
		must.Eq(t, all(test.sum), all(test.a).Plus(all(test.b)), must.Sprint(test))
		must.Eq(t, all(test.difference), all(test.a).Minus(all(test.b)), must.Sprint(test))
	}
	must.Eq(t, all(1<<40), all(math.MaxInt64).Bounded())
	must.Eq(t, all(-7), all(-7).Bounded())
	huge := &cluster.TaskGroup{Tasks: []*cluster.Task{{Resources: all(math.MaxInt64)}, {Resources: all(math.MaxInt64)}}}
	must.Eq(t, 1<<40, huge.Resources().CPU)
}

func TestLogConfig_MaxFileBytes(t *testing.T) {
	t.Parallel()
	must.Eq(t, 10<<20, cluster.DefaultLogConfig().MaxFileBytes())
	must.Positive(t, cluster.LogConfig{MaxFileSizeMB: math.MaxInt}.MaxFileBytes())
}
