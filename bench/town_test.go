package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// epoch is when everything begins.
var epoch = time.Unix(1_800_000_000, 0).UTC()

// town is a cluster to be measured: a state machine that entries are applied to, with
// no raft in between.
type town struct {
	tb    testing.TB
	fsm   *shims.FSM
	index uint64
	nodes []cluster.NodeID
}

// townPlan says what is in a town.
type townPlan struct {
	// nodes is how many nodes there are.
	nodes int
	// perNode is how many allocations each has, jobSize how many each job has. Which job
	// has which node's is chance.
	perNode, jobSize int
	// job is what the jobs are like: their type, and the pace of their group.
	job         cluster.JobType
	maxParallel int
}

// newTown builds a town. All allocations run, and those of services are healthy.
func newTown(tb testing.TB, p townPlan) *town {
	tb.Helper()
	t := &town{tb: tb, fsm: shims.NewFSM(shims.FSMConfig{})}
	for i := range p.nodes {
		id := nodeID(i)
		t.nodes = append(t.nodes, id)
		t.apply(&shims.NodeRegister{At: epoch, Node: &cluster.Node{
			ID: id, Name: fmt.Sprintf("node-%d", i), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
			Resources: cluster.Resources{CPU: 1 << 40, MemoryMB: 1 << 40, DiskMB: 1 << 40},
		}})
	}
	// Each node has perNode of the allocations, of no matter which jobs.
	slots := rand.New(rand.NewPCG(1, 2)).Perm(p.nodes * p.perNode)
	for j := range len(slots) / p.jobSize {
		job := p.newJob(j)
		eval := &cluster.Evaluation{
			ID: cluster.EvalID(fmt.Sprintf("first-%d", j)), Namespace: job.Namespace, JobID: job.ID, Type: job.Type, Priority: job.Priority,
			TriggeredBy: cluster.TriggerJobRegister, Status: cluster.EvalPending, CreateTime: epoch, ModifyTime: epoch,
		}
		t.apply(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{eval}})
		job = t.fsm.Store().Snapshot().Job(job.Key())
		eval.Status = cluster.EvalComplete
		plan := cluster.Plan{At: epoch, Eval: eval, SnapshotIndex: t.index}
		for k := range p.jobSize {
			a := p.newAlloc(job, j, k)
			a.NodeID = t.nodes[slots[j*p.jobSize+k]%p.nodes]
			plan.Places = append(plan.Places, a)
		}
		if r := t.apply(&shims.ApplyPlan{Plan: plan}).(shims.PlanApplied); len(r.Refused) > 0 {
			tb.Fatalf("placing job %s: %v", job.ID, r.Refused)
		}
	}
	return t
}

func nodeID(i int) cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("7c6b3110-d0f8-951f-b791-%012d", i))
}

func (p townPlan) newJob(j int) *cluster.Job {
	group := &cluster.TaskGroup{Name: "g", Count: p.jobSize, Tasks: []*cluster.Task{{Name: "t", Resources: cluster.Resources{CPU: 1, MemoryMB: 1}}}}
	if p.job == cluster.JobService {
		group.Migrate = cluster.DefaultMigrateStrategy()
		group.Migrate.MaxParallel = p.maxParallel
	}
	job := &cluster.Job{ID: cluster.JobID(fmt.Sprintf("job-%05d", j)), Type: p.job, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	return job
}

func (p townPlan) newAlloc(job *cluster.Job, j, k int) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: cluster.AllocID(fmt.Sprintf("%08x-3bc6-b24c-f8a5-%012x", j, k)), Namespace: job.Namespace, JobID: job.ID, Job: job,
		Name: fmt.Sprintf("%s.g[%d]", job.ID, k), TaskGroup: "g", Resources: job.TaskGroups[0].Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, CreateTime: epoch, ModifyTime: epoch,
	}
	if p.job == cluster.JobService {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: epoch}
	}
	return a
}

// apply applies one entry, as raft would.
func (t *town) apply(m shims.Message) shims.Response {
	data, err := shims.Encode(m)
	must.NoError(t.tb, err)
	t.index++
	response, err := t.fsm.ApplyEntry(t.index, data)
	must.NoError(t.tb, err)
	if refused, is := response.(shims.Refused); is {
		t.tb.Fatalf("%T was refused: %v", m, refused)
	}
	return response
}

// drain starts the drains of the first nodes.
func (t *town) drain(nodes int, spec cluster.DrainSpec) {
	for _, n := range t.nodes[:nodes] {
		t.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
			Node: n, Spec: &spec, Drain: cluster.DrainID("drain-" + string(n)), At: epoch,
		}})
	}
}
