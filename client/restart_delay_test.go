package client_test

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A task that has no attempts left starts again at the end of the window, whenever in the window it failed. Bug: in
// the only test it failed at the begin of the window, where the end is an interval later in any case.
func TestRestart_delayEndsWithTheWindow(t *testing.T) {
	t.Parallel()
	const delay, interval = 15 * time.Second, 30 * time.Minute
	for name, c := range map[string]struct{ runs, third time.Duration }{ // times since the first failure
		"at once":               {time.Second, interval},
		"in the middle":         {15 * time.Minute, interval},
		"near the end":          {29 * time.Minute, interval},
		"later than the window": {interval, delay + interval + delay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.scripts["web"] = script{runs: []ending{{after: time.Second, code: 1}, {after: c.runs, code: 1}, {}}}
			a := allocation("a", mainTask("web"))
			a.Job.TaskGroups[0].RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: interval, Delay: delay, Mode: cluster.RestartDelay}
			n.place(a)
			n.run(2 * time.Hour)
			starts := slices.SortedFunc(maps.Values(n.tasks), func(a, b *task) int { return cmp.Compare(a.started, b.started) })
			must.SliceLen(t, 3, starts)
			failed := starts[0].ended
			must.EqOp(t, delay, (starts[1].started - failed).Round(time.Second))
			must.EqOp(t, c.third, (starts[2].started - failed).Round(time.Second))
		})
	}
}
