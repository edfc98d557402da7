package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// A drain ends by its deadline, the stop times of the stages on the node, and the writes between.
func TestExplain_EndsBy(t *testing.T) {
	t.Parallel()
	const write = time.Second
	for name, test := range map[string]struct {
		edit   func(*fixture.Cluster)
		policy Policy
		now    time.Duration // since the epoch
		want   time.Time
	}{
		"no deadline":     {edit: func(w *fixture.Cluster) { w.StartDrain("n1", 0) }},
		"does not drain":  {edit: func(w *fixture.Cluster) { w.Node("n1").Drain = nil }},
		"an empty node":   {edit: func(w *fixture.Cluster) { w.Allocs = nil }, want: fixture.Epoch.Add(time.Hour + write)},
		"consumers":       {want: fixture.Epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write)},
		"a margin chosen": {policy: Policy{StopMargin: time.Minute}, want: fixture.Epoch.Add(time.Hour + write + 20*time.Second + time.Minute + write)},
		"forced": {
			edit: func(w *fixture.Cluster) { w.StartDrain("n1", -1).UpdatedAt = fixture.Epoch.Add(time.Minute) },
			want: fixture.Epoch.Add(time.Minute + write + 20*time.Second + 15*time.Second + write),
		},
		"three stages": {
			edit: func(w *fixture.Cluster) {
				w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1")
				w.Place("p1", w.AddJob("disk", cluster.JobBatch), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
			},
			want: fixture.Epoch.Add(time.Hour + write + 3*(20*time.Second+15*time.Second+write)),
		},
		"system ignored": {
			edit: func(w *fixture.Cluster) {
				w.Place("s1", w.AddJob("logs", cluster.JobSystem), "n1")
				w.Node("n1").Drain.Strategy.IgnoreSystemJobs = true
			},
			want: fixture.Epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
		"no leader when the deadline passed": {
			now: 2 * time.Hour, want: fixture.Epoch.Add(2*time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
		"marked in time, and overdue": {
			edit: func(w *fixture.Cluster) {
				for _, a := range w.Allocs {
					a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkDeadline, MarkedAt: fixture.Epoch.Add(time.Hour)}
				}
			},
			now: 2 * time.Hour, want: fixture.Epoch.Add(2*time.Hour + write),
		},
		"marked late": {
			edit: func(w *fixture.Cluster) {
				for _, a := range w.Allocs {
					a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkDeadline, MarkedAt: fixture.Epoch.Add(2 * time.Hour)}
				}
			},
			now: 2 * time.Hour, want: fixture.Epoch.Add(2*time.Hour + 20*time.Second + 15*time.Second + write),
		},
		"plugins wait forever": {
			edit: func(w *fixture.Cluster) {
				w.Place("p1", w.AddJob("disk", cluster.JobBatch), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
			},
			policy: Policy{PluginsAfterDeadline: PluginsAfterStop},
		},
		"no plugins": {
			policy: Policy{PluginsAfterDeadline: PluginsAfterStop}, want: fixture.Epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(1, 2)
			w.StartDrain("n1", time.Hour)
			if test.edit != nil {
				test.edit(w)
			}
			report, err := Explain(w, TermState{WriteTime: func() time.Duration { return write }}, "n1", fixture.Epoch.Add(test.now), test.policy)
			must.Eq(t, w.Node("n1").Draining(), err == nil)
			must.Eq(t, test.want, report.EndsBy)
		})
	}
}
