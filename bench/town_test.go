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
	// perNode is how many allocations each has, jobSize how many each job has.
	perNode, jobSize int
	layout           layout
	// job is what the jobs are like: their type, and the pace of their group.
	job         cluster.JobType
	maxParallel int
	// ended is how many allocations each job has had besides, which have ended.
	ended int
	// alloc says what is different about each allocation, or is nil.
	alloc func(*cluster.Allocation)
}

// layout is which job has which node's allocations.
type layout int

const (
	// The zero value leaves it to chance.
	_ layout = iota
	// dealt gives each job's to one node after the other, of [neighbours] nodes, so that
	// a job finds the same around it however large the town.
	dealt
	// packed fills one node after the other.
	packed
	// ranked does so with the first allocation of each job, then with the second of each,
	// and so on: what is marked of jobs, if that is not much, is on few nodes, and these
	// alone have to drain again before it can be marked again.
	ranked
)

// neighbours is how many nodes share jobs when these are dealt.
const neighbours = 100

// townRows is how many rows are written at once when a town is built: more would cost
// more each, see [statestore].
const townRows = 1000

// newTown builds a town, row by row and not from entries: it is made ready and not
// measured. All allocations run, and those of services are healthy.
func newTown(tb testing.TB, p townPlan) *town {
	tb.Helper()
	t := &town{tb: tb, fsm: shims.NewFSM(shims.FSMConfig{})}
	for i := range p.nodes {
		t.nodes = append(t.nodes, nodeID(i))
	}
	t.inParts(p.nodes, townRows, func(txn *statestore.Txn, i int) {
		must.NoError(tb, txn.UpsertNode(&cluster.Node{
			ID: t.nodes[i], Name: fmt.Sprintf("node-%d", i), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
			Resources: cluster.Resources{CPU: 1 << 40, MemoryMB: 1 << 40, DiskMB: 1 << 40},
		}, epoch))
	})
	node := p.deal(t.nodes)
	t.inParts(p.nodes*p.perNode/p.jobSize, max(1, townRows/(p.jobSize+p.ended)), func(txn *statestore.Txn, j int) {
		job := p.newJob(j)
		must.NoError(tb, txn.UpsertJob(job))
		plan := &cluster.Plan{At: epoch}
		for k := range p.jobSize + p.ended {
			a := p.newAlloc(txn.Job(job.Key()), j, k)
			a.NodeID = node(j*p.jobSize + k%p.jobSize)
			if k >= p.jobSize {
				a.DesiredStatus, a.ClientStatus = cluster.DesiredStop, cluster.ClientComplete
			}
			plan.Places = append(plan.Places, a)
		}
		dropped, err := txn.ApplyPlan(plan)
		must.NoError(tb, err)
		must.Len(tb, 0, dropped)
	})
	return t
}

// deal returns the node of each of the town's allocations.
func (p townPlan) deal(nodes []cluster.NodeID) func(i int) cluster.NodeID {
	switch p.layout {
	case dealt:
		return func(i int) cluster.NodeID { return nodes[i/(neighbours*p.perNode)*neighbours+i%neighbours] }
	case packed:
		return func(i int) cluster.NodeID { return nodes[i/p.perNode] }
	case ranked:
		jobs := p.nodes * p.perNode / p.jobSize
		return func(i int) cluster.NodeID { return nodes[(i%p.jobSize*jobs+i/p.jobSize)/p.perNode] }
	}
	slots := rand.New(rand.NewPCG(1, 2)).Perm(p.nodes * p.perNode)
	return func(i int) cluster.NodeID { return nodes[slots[i]%p.nodes] }
}

// inParts does n things in transactions of so many.
func (t *town) inParts(n, many int, do func(txn *statestore.Txn, i int)) {
	for i := 0; i < n; i += many {
		t.edit(func(txn *statestore.Txn) {
			for j := i; j < min(n, i+many); j++ {
				do(txn, j)
			}
		})
	}
}

// edit writes to the state at the next index, with no entry in between.
func (t *town) edit(do func(*statestore.Txn)) {
	t.index++
	txn := t.fsm.Store().Begin(t.index)
	do(txn)
	txn.Commit()
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

// allocOf is the id of the kth allocation of the jth job.
func allocOf(j, k int) cluster.AllocID {
	return cluster.AllocID(fmt.Sprintf("%08x-3bc6-b24c-f8a5-%012x", j, k))
}

func (p townPlan) newAlloc(job *cluster.Job, j, k int) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: allocOf(j, k), Namespace: job.Namespace, JobID: job.ID, Job: job,
		Name: fmt.Sprintf("%s.g[%d]", job.ID, k), TaskGroup: "g", Resources: job.TaskGroups[0].Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, CreateTime: epoch, ModifyTime: epoch,
	}
	if p.job == cluster.JobService {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: epoch}
	}
	if p.alloc != nil {
		p.alloc(a)
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
func (t *town) drain(nodes int, spec cluster.DrainSpec) { t.drainNodes(t.nodes[:nodes], spec) }

// drainNodes starts the drains of some nodes.
func (t *town) drainNodes(nodes []cluster.NodeID, spec cluster.DrainSpec) {
	for _, n := range nodes {
		t.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
			Node: n, Spec: &spec, Drain: cluster.DrainID("drain-" + string(n)), At: epoch,
		}})
	}
}
