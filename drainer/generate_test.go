package drainer

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// anyWorld draws a small world in which anything may be wrong: allocations whose
// job, group or node is gone, in every status, marked by this drain, another one
// or nobody.
func anyWorld(t *rapid.T) (*world, time.Time) {
	w := &world{index: 10}
	now := epoch.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "now")) * time.Second)
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		w.nodes = append(w.nodes, anyNode(t, i))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "jobs") {
		w.jobs = append(w.jobs, anyJob(t, i))
	}
	for i := range rapid.IntRange(0, 14).Draw(t, "allocs") {
		w.allocs = append(w.allocs, anyAlloc(t, w, i))
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "evals") {
		j := rapid.SampledFrom(w.jobs).Draw(t, "eval job")
		w.evals = append(w.evals, &cluster.Evaluation{
			ID: cluster.EvalID(fmt.Sprintf("e%d", i)), Namespace: j.Namespace, JobID: j.ID, CreateIndex: uint64(i),
			Status: rapid.SampledFrom([]cluster.EvalStatus{cluster.EvalPending, cluster.EvalBlocked, cluster.EvalComplete, cluster.EvalFailed}).Draw(t, "eval status"),
		})
	}
	if len(w.jobs) > 1 && rapid.IntRange(0, 9).Draw(t, "purged") == 0 {
		w.jobs = w.jobs[1:]
	}
	return w, now
}

func anyNode(t *rapid.T, i int) *cluster.Node {
	n := &cluster.Node{ID: cluster.NodeID(fmt.Sprintf("n%d", i)), Name: fmt.Sprintf("node %d", i)}
	n.Status = rapid.SampledFrom([]cluster.NodeStatus{
		cluster.NodeReady, cluster.NodeReady, cluster.NodeReady, cluster.NodeReady, cluster.NodeDown, cluster.NodeDisconnected,
	}).Draw(t, "node status")
	if rapid.IntRange(0, 2).Draw(t, "draining") > 0 {
		n.Drain = anyDrain(t, n.ID)
	}
	n.Canonicalize()
	return n
}

func anyDrain(t *rapid.T, n cluster.NodeID) *cluster.Drain {
	d := &cluster.Drain{ID: cluster.DrainID("d-" + string(n)), NodeID: n, Revision: cluster.Revision(rapid.IntRange(1, 3).Draw(t, "revision"))}
	d.Strategy.StartedAt, d.UpdatedAt = epoch, epoch
	d.Strategy.IgnoreSystemJobs = rapid.Bool().Draw(t, "ignore system")
	switch rapid.IntRange(0, 3).Draw(t, "deadline") {
	case 0:
		d.Strategy.Deadline = -1
	case 1, 2:
		d.Strategy.Deadline = time.Duration(rapid.IntRange(1, 400).Draw(t, "deadline seconds")) * time.Second
		d.Strategy.ForceDeadline = epoch.Add(d.Strategy.Deadline)
	}
	return d
}

func anyJob(t *rapid.T, i int) *cluster.Job {
	j := &cluster.Job{Namespace: "default", ID: cluster.JobID(fmt.Sprintf("j%d", i)), CreateIndex: uint64(i + 1)}
	j.Type = rapid.SampledFrom([]cluster.JobType{
		cluster.JobService, cluster.JobService, cluster.JobService, cluster.JobBatch, cluster.JobSystem, cluster.JobSysBatch,
	}).Draw(t, "type")
	j.Stop = rapid.IntRange(0, 9).Draw(t, "stopped") == 0
	plugin := rapid.IntRange(0, 4).Draw(t, "plugin") == 0
	for g := range rapid.IntRange(1, 2).Draw(t, "groups") {
		group := &cluster.TaskGroup{Name: fmt.Sprintf("g%d", g), Count: rapid.IntRange(0, 5).Draw(t, "count")}
		group.Tasks = []*cluster.Task{{Name: "t", KillTimeout: time.Duration(rapid.IntRange(0, 60).Draw(t, "kill")) * time.Second, StoragePlugin: plugin}}
		group.EphemeralDisk.Migrate = rapid.Bool().Draw(t, "disk")
		if j.Type == cluster.JobService && rapid.IntRange(0, 9).Draw(t, "migrate") > 0 {
			m := cluster.DefaultMigrateStrategy()
			m.MaxParallel = rapid.IntRange(0, 3).Draw(t, "max_parallel")
			m.HealthyDeadline = time.Minute
			group.Migrate = m
		}
		j.TaskGroups = append(j.TaskGroups, group)
	}
	return j
}

func anyAlloc(t *rapid.T, w *world, i int) *cluster.Allocation {
	j := rapid.SampledFrom(w.jobs).Draw(t, "job")
	a := &cluster.Allocation{
		ID: cluster.AllocID(fmt.Sprintf("a%02d", i)), Namespace: j.Namespace, JobID: j.ID, Job: j,
		TaskGroup:  rapid.SampledFrom([]string{"g0", "g0", "g0", "g1", "gone"}).Draw(t, "group"),
		NodeID:     cluster.NodeID(fmt.Sprintf("n%d", rapid.IntRange(0, 4).Draw(t, "node"))),
		CreateTime: epoch.Add(-time.Duration(rapid.IntRange(-200, 100).Draw(t, "age")) * time.Second),
	}
	a.ModifyTime = a.CreateTime
	a.DesiredStatus = rapid.SampledFrom([]cluster.DesiredStatus{cluster.DesiredRun, cluster.DesiredRun, cluster.DesiredRun, cluster.DesiredStop}).Draw(t, "desired")
	a.ClientStatus = rapid.SampledFrom([]cluster.ClientStatus{
		cluster.ClientRunning, cluster.ClientRunning, cluster.ClientRunning, cluster.ClientPending, cluster.ClientComplete, cluster.ClientFailed, cluster.ClientUnknown,
	}).Draw(t, "client")
	switch rapid.IntRange(0, 5).Draw(t, "health") {
	case 0:
	case 1:
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(false)}
	case 2:
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(rapid.Bool().Draw(t, "canary health")), Canary: true}
	default:
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: new(true)}
	}
	if rapid.IntRange(0, 4).Draw(t, "marked") == 0 {
		a.DesiredTransition.Migrate = true
		if rapid.Bool().Draw(t, "by drain") {
			a.DesiredTransition.Drain = cluster.DrainID("d-" + string(a.NodeID))
			a.DesiredTransition.Class = cluster.MarkClass(rapid.IntRange(1, int(cluster.MarkClassCount)-1).Draw(t, "class"))
			a.DesiredTransition.MarkedAt = epoch.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "marked at")) * time.Second)
		}
	}
	if a.ServerTerminal() {
		a.StoppedAt = epoch
	}
	if len(w.allocs) > 0 && rapid.IntRange(0, 3).Draw(t, "replaces") == 0 {
		previous := rapid.SampledFrom(w.allocs).Draw(t, "previous")
		if previous.NextAllocation == "" {
			previous.NextAllocation, a.PreviousAllocation = a.ID, previous.ID
		}
	}
	return a
}

func anyPolicy(t *rapid.T) Policy {
	return Policy{
		HealthGrace:          10 * time.Second,
		StopMargin:           15 * time.Second,
		BelowBudget:          BelowBudget(rapid.IntRange(0, 1).Draw(t, "below budget")),
		PluginsAfterDeadline: PluginOrder(rapid.IntRange(0, 1).Draw(t, "plugins")),
		Completion:           Contract(rapid.IntRange(0, 3).Draw(t, "contract")),
	}
}
