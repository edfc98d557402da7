package drainer

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// When a drain ends at the latest: the deadline, what each stage on the node may
// take, and the writes between.
func TestEndBound(t *testing.T) {
	t.Parallel()
	const write = time.Second
	for name, test := range map[string]struct {
		edit   func(*town)
		policy Policy
		now    time.Duration // since the epoch
		want   time.Time
	}{
		"no deadline":     {edit: func(w *town) { w.drain("n1", 0) }},
		"does not drain":  {edit: func(w *town) { w.node("n1").Drain = nil }},
		"an empty node":   {edit: func(w *town) { w.allocs = nil }, want: epoch.Add(time.Hour + write)},
		"consumers":       {want: epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write)},
		"a margin chosen": {policy: Policy{StopMargin: time.Minute}, want: epoch.Add(time.Hour + write + 20*time.Second + time.Minute + write)},
		"forced": {
			edit: func(w *town) { w.drain("n1", -1).UpdatedAt = epoch.Add(time.Minute) },
			want: epoch.Add(time.Minute + write + 20*time.Second + 15*time.Second + write),
		},
		"three stages": {
			edit: func(w *town) {
				w.place("s1", w.job("logs", cluster.JobSystem), "n1")
				w.place("p1", w.job("disk", cluster.JobBatch), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
			},
			want: epoch.Add(time.Hour + write + 3*(20*time.Second+15*time.Second+write)),
		},
		"system ignored": {
			edit: func(w *town) {
				w.place("s1", w.job("logs", cluster.JobSystem), "n1")
				w.node("n1").Drain.Strategy.IgnoreSystemJobs = true
			},
			want: epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
		"nobody led when the deadline passed": {
			now: 2 * time.Hour, want: epoch.Add(2*time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
		"asked in time, and out of time": {
			edit: func(w *town) {
				for _, a := range w.allocs {
					a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkDeadline, MarkedAt: epoch.Add(time.Hour)}
				}
			},
			now: 2 * time.Hour, want: epoch.Add(2*time.Hour + write),
		},
		"asked late": {
			edit: func(w *town) {
				for _, a := range w.allocs {
					a.DesiredTransition = cluster.DesiredTransition{Migrate: true, Class: cluster.MarkDeadline, MarkedAt: epoch.Add(2 * time.Hour)}
				}
			},
			now: 2 * time.Hour, want: epoch.Add(2*time.Hour + 20*time.Second + 15*time.Second + write),
		},
		"plugins wait for ever": {
			edit: func(w *town) {
				w.place("p1", w.job("disk", cluster.JobBatch), "n1").Job.TaskGroups[0].Tasks[0].StoragePlugin = true
			},
			policy: Policy{PluginsAfterDeadline: AfterStop},
		},
		"no plugins to wait": {
			policy: Policy{PluginsAfterDeadline: AfterStop}, want: epoch.Add(time.Hour + write + 20*time.Second + 15*time.Second + write),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(1, 2)
			w.drain("n1", time.Hour)
			if test.edit != nil {
				test.edit(w)
			}
			must.Eq(t, test.want, EndBound(w, w.node("n1"), epoch.Add(test.now), test.policy, write))
		})
	}
}
