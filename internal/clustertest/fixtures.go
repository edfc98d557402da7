package clustertest

import (
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Node is a ready node with the id as its name.
func Node(id cluster.NodeID) *cluster.Node {
	n := &cluster.Node{
		ID: id, Name: string(id), Datacenter: "dc1", Status: cluster.NodeReady,
		Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 10_000},
	}
	n.Canonicalize()
	return n
}

// Job is a job with one group of the same name. A service migrates one allocation at a time.
func Job(id cluster.JobID, kind cluster.JobType, count int) *cluster.Job {
	j := &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{{
		Name: string(id), Count: count,
		Tasks: []*cluster.Task{{Name: "task", Resources: cluster.Resources{CPU: 100, MemoryMB: 64}}},
	}}}
	j.Canonicalize()
	return j
}

// Group is the key of the job's first group.
func Group(j *cluster.Job) cluster.GroupKey {
	return cluster.GroupKey{Job: j.Key(), Name: j.TaskGroups[0].Name}
}

// Alloc is an allocation of the job's first group that a plan may place.
func Alloc(j *cluster.Job, id cluster.AllocID, on cluster.NodeID, at time.Time) *cluster.Allocation {
	g := j.TaskGroups[0]
	return &cluster.Allocation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Job: j, TaskGroup: g.Name, NodeID: on,
		Name: string(j.ID) + "." + g.Name + "[0]", Resources: g.Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, CreateTime: at, ModifyTime: at,
	}
}

// Eval is a pending evaluation of the job.
func Eval(j *cluster.Job, id cluster.EvalID, at time.Time) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: id, Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority,
		Status: cluster.EvalPending, CreateTime: at, ModifyTime: at,
	}
}

// Report is the report of the allocation's client. A running allocation is healthy.
func Report(a *cluster.Allocation, status cluster.ClientStatus, at time.Time) cluster.AllocReport {
	r := cluster.AllocReport{Alloc: a.ID, Node: a.NodeID, ClientStatus: status, At: at}
	if status == cluster.ClientRunning {
		r.Healthy, r.HealthyAt = new(true), at
	}
	return r
}

// Progress returns what the clients of the allocations report next: an allocation whose desired status is run
// is running, and one whose desired status is stop is complete.
func Progress(allocs iter.Seq[*cluster.Allocation], at time.Time) (reports []cluster.AllocReport) {
	for a := range allocs {
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			reports = append(reports, Report(a, cluster.ClientComplete, at))
		case a.ClientStatus != cluster.ClientRunning:
			reports = append(reports, Report(a, cluster.ClientRunning, at))
		}
	}
	return reports
}
