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

// A list of cores that was read is written in its shortest form. Bad lists are refused.
func TestParseCores(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", " ": "", "3": "3", "0-3,8": "0-3,8", "8, 1,0,2-2": "0-2,8", "4,4-5": "4-5", "0-1,3-4": "0-1,3-4",
		"x": "must be a core", "1-": "must be a core", "3-2": "must be a core", "-1": "must be a core", "0-65536": "must be a core", "1,,2": "must be a core",
		"0-4096": "at most 4096 cores",
	} {
		cores, err := cluster.ParseCores(text)
		if err != nil {
			must.StrContains(t, err.Error(), want, must.Sprint(text))
			continue
		}
		must.Eq(t, want, cores.String(), must.Sprint(text))
		must.NoError(t, cores.Check())
		again, err := cluster.ParseCores(cores.String())
		must.NoError(t, err)
		must.Eq(t, cores, again)
	}
	must.Eq(t, cluster.Cores{0, 3}, cluster.Cores{0, 1, 2, 3}.Without(cluster.Cores{1, 2, 7}))
	for _, bad := range []cluster.Cores{{1, 1}, {2, 1}, {-1}, {65536}, make(cluster.Cores, cluster.MaxCores+1)} {
		must.Error(t, bad.Check())
	}
}
