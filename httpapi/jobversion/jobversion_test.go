//race:skip one goroutine
package jobversion_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/jobversion"
)

// A job of each cluster version's fields is kept as it is from that version on. Below it the fields have no effect, with a
// warning, or the job is refused.
func TestAt(t *testing.T) {
	t.Parallel()
	const below = "the cluster has version %d until all its servers are upgraded"
	for name, c := range map[string]struct {
		edit            func(j *cluster.Job, g *cluster.TaskGroup)
		since           cluster.Version
		warning, refuse string
	}{
		"distinct hosts of the job":   {func(j *cluster.Job, _ *cluster.TaskGroup) { j.DistinctHosts = true }, 9, "", "distinct_hosts needs version 9"},
		"distinct hosts of the group": {func(_ *cluster.Job, g *cluster.TaskGroup) { g.DistinctHosts = true }, 9, "", "distinct_hosts needs version 9"},
		"ports": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			g.Ports = []cluster.PortRequest{{Label: "http"}}
		}, 9, "", "jobs with ports need version 9"},
		"volumes": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			g.Volumes = []cluster.VolumeRequest{{Name: "v", Source: "v"}}
		}, 7, "", "jobs with volumes need version 7"},
		"reschedule": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			g.Reschedule = &cluster.ReschedulePolicy{Attempts: 1, Interval: time.Hour, Delay: time.Minute, DelayFunction: "constant"}
		}, 9, `the reschedule block of group "g" has no effect yet`, ""},
		"reschedule by default": {func(j *cluster.Job, g *cluster.TaskGroup) { g.Reschedule = cluster.DefaultReschedulePolicy(j.Type) }, 1, "", ""},
		"services": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			g.Services, g.Tasks[0].Services = []cluster.Service{{Name: "web"}}, []cluster.Service{{Name: "api"}}
		}, 9, "services and their checks have no effect yet", ""},
		"memory_max":       {func(_ *cluster.Job, g *cluster.TaskGroup) { g.Tasks[0].MemoryMaxMB = 64 }, 9, "the field memory_max has no effect yet", ""},
		"cores":            {func(_ *cluster.Job, g *cluster.TaskGroup) { g.Tasks[0].Cores = 2 }, 9, "the field cores has no effect yet", ""},
		"max_run_duration": {func(_ *cluster.Job, g *cluster.TaskGroup) { g.MaxRunDuration = time.Hour }, 9, "the field max_run_duration has no effect yet", ""},
		"update": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			u := cluster.DefaultUpdateStrategy()
			g.Update = &u
		}, 9, "update blocks have no effect yet", ""},
		"max_surge": {func(_ *cluster.Job, g *cluster.TaskGroup) {
			g.Migrate = cluster.DefaultMigrateStrategy()
			g.Migrate.MaxSurge = 1
		}, 9, "max_surge has no effect yet", ""},
		"replace": {func(_ *cluster.Job, g *cluster.TaskGroup) { g.Disconnect.NoReplace = true }, 8, "Replace and Reconcile of Disconnect have no effect yet", ""},
		"driver":  {func(_ *cluster.Job, g *cluster.TaskGroup) { g.Tasks[0].Driver = "raw_exec" }, 4, "drivers, devices, volumes, lifecycle, constraints and environments of the job", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for v := cluster.MinVersion; v <= cluster.MaxVersion; v++ {
				j := &cluster.Job{Namespace: "default", ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
					Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t"}},
				}}}
				c.edit(j, j.TaskGroups[0])
				before := j.Copy()
				kept, warnings, err := jobversion.At(j, v)
				switch {
				case v >= c.since:
					must.NoError(t, err)
					must.SliceEmpty(t, warnings, must.Sprint(v))
					if kept.NeededVersion() > 1 {
						must.Eq(t, before, kept, must.Sprint(v))
					}
				case c.refuse != "":
					must.ErrorContains(t, err, c.refuse+": upgrade the servers")
				default:
					must.NoError(t, err)
					must.LessEq(t, v, kept.NeededVersion())
					must.Positive(t, len(warnings), must.Sprintf(below, v))
					must.StrContains(t, warnings[0], c.warning)
				}
			}
		})
	}
}
