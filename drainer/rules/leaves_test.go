package rules

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// storage is a node whose drain ignores system jobs. The system allocation s1 on it has a volume of
// the plugin disks. Only the plugin's allocation p1 might have to leave.
func storage(edit func(w *fixture.Cluster)) *fixture.Cluster {
	w := fixture.NewCluster(1, 0)
	w.Place("s1", w.AddJob("backup", cluster.JobSystem), "n1")
	p := w.Place("p1", w.AddJob("disks", cluster.JobSystem), "n1")
	task := p.Job.TaskGroups[0].Tasks[0]
	task.StoragePlugin, task.CSIPlugin = true, &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith}
	w.Plugins = map[cluster.AllocID][]cluster.PluginID{"s1": {"files", "disks"}}
	w.StartDrain("n1", 0).Strategy.IgnoreSystemJobs = true
	if edit != nil {
		edit(w)
	}
	return w
}

// withoutVolumes is a view of an embedder whose cluster has no volumes.
type withoutVolumes struct{ View }

// A drain that ignores system jobs leaves a node plugin that serves one of them. The plan, the
// re-check, the count of the record and the reason agree, also for a service and after a mark.
func TestLeaves_PluginOfAnExcludedAllocation(t *testing.T) {
	t.Parallel()
	service := func(w *fixture.Cluster) { w.Alloc("p1").Job.Type = cluster.JobService }
	for name, c := range map[string]struct {
		edit func(w *fixture.Cluster)
		view func(View) View
		left bool // the drain leaves p1
	}{
		"serves it":                  {left: true},
		"is a service":               {edit: service, left: true},
		"is marked":                  {edit: func(w *fixture.Cluster) { w.Mark("p1", fixture.DrainID("n1"), cluster.MarkStage, fixture.Epoch) }, left: true},
		"serves a stopping one":      {edit: func(w *fixture.Cluster) { w.Alloc("s1").DesiredStatus = cluster.DesiredStop }, left: true},
		"cannot report":              {edit: func(w *fixture.Cluster) { w.Node("n1").Status = cluster.NodeDisconnected }, left: true},
		"after the deadline":         {edit: func(w *fixture.Cluster) { w.Node("n1").Drain.Strategy.Deadline = -1 }, left: true},
		"the system job has ended":   {edit: func(w *fixture.Cluster) { w.Alloc("s1").ClientStatus = cluster.ClientComplete }},
		"serves nothing":             {edit: func(w *fixture.Cluster) { w.Plugins = nil }},
		"serves one on another node": {edit: func(w *fixture.Cluster) { w.Alloc("s1").NodeID = "n2" }},
		"is another plugin":          {edit: func(w *fixture.Cluster) { w.Alloc("p1").Job.TaskGroups[0].Tasks[0].CSIPlugin.ID = "nfs" }},
		"is a controller": {edit: func(w *fixture.Cluster) {
			w.Alloc("p1").Job.TaskGroups[0].Tasks[0].CSIPlugin.Type = cluster.PluginController
		}},
		"is in a group without plugins": {edit: otherGroup},
		"no system job is ignored": {edit: func(w *fixture.Cluster) {
			w.Node("n1").Drain.Strategy.IgnoreSystemJobs = false
			w.Alloc("s1").ClientStatus = cluster.ClientComplete
		}},
		"a cluster without volumes": {view: func(v View) View { return withoutVolumes{v} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storage(c.edit)
			v, now := View(w), fixture.Epoch.Add(time.Second)
			if c.view != nil {
				v = c.view(w)
			}
			s, n, p1 := NewPlanner(v, now, Policy{}), w.Node("n1"), w.Alloc("p1")
			plan, group := s.PlanNode(n), s.PlanGroup(p1.GroupKey(), nil)
			must.Eq(t, c.left, plan.Completion != nil, must.Sprint("the drain ends"))
			must.Eq(t, !c.left, plan.PluginsTurn)
			must.Eq(t, c.left, len(plan.Marks)+len(group.Marks) == 0)
			must.Eq(t, c.left, CountLeft(v, n) == 0)
			mark := Mark{Alloc: "p1", Group: p1.GroupKey(), Node: "n1", Drain: n.Drain.ID, Revision: n.Drain.Revision, Class: cluster.MarkStage}
			evals := []*cluster.Evaluation{{ID: "e", Namespace: p1.Namespace, JobID: p1.JobID}}
			accepted, _, refused := Recheck(v, &Marks{At: now, Marks: []Mark{mark}, Evals: evals})
			if !p1.Marked() {
				must.Eq(t, c.left, len(accepted) == 0)
			}
			if c.left && !p1.Marked() {
				must.Eq(t, "the allocation is left by request", refused[0].Why)
			}
			report, err := Explain(v, TermState{}, "n1", now, Policy{})
			must.NoError(t, err)
			r := report.Allocs[len(report.Allocs)-1]
			must.Eq(t, cluster.AllocID("p1"), r.Alloc)
			must.Eq(t, c.left, r.Reason == ReasonLeftByRequest)
			if c.left {
				must.Eq(t, "serves a volume of allocation s1, and system jobs are ignored by this drain", r.Detail)
				must.Eq(t, fixture.Epoch, r.Since.At)
			}
		})
	}
}

// otherGroup moves the plugin to another group of the job. The allocation still leaves last.
func otherGroup(w *fixture.Cluster) {
	j := w.Alloc("p1").Job
	j.TaskGroups = append(j.TaskGroups, &cluster.TaskGroup{Name: "other", Tasks: j.TaskGroups[0].Tasks})
	j.TaskGroups[0].Tasks = []*cluster.Task{{Name: "t"}, nil}
}

// A node plan names the plugins that serve excluded allocations during the turn of plugins, so that
// the groups of paced plugins are planned again when one of them no longer serves.
func TestPlanNode_NamesServingPlugins(t *testing.T) {
	t.Parallel()
	w := storage(func(w *fixture.Cluster) {
		p := w.Place("p2", w.AddJob("nfs", cluster.JobSystem), "n1")
		p.Job.TaskGroups[0].Tasks[0].StoragePlugin = true
	})
	plan := func() NodePlan { return NewPlanner(w, fixture.Epoch, Policy{}).PlanNode(w.Node("n1")) }
	must.Eq(t, []cluster.PluginID{"disks", "files"}, plan().Serving)
	must.Eq(t, []cluster.AllocID{"p2"}, []cluster.AllocID{plan().Marks[0].Alloc})
	w.Alloc("s1").ClientStatus = cluster.ClientFailed
	must.SliceEmpty(t, plan().Serving)
	must.Len(t, 2, plan().Marks)
}
