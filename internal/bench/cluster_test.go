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

// epoch is the first time of a cluster.
var epoch = time.Unix(1_800_000_000, 0).UTC()

// testCluster is a cluster without raft: a state machine to which a benchmark applies entries.
type testCluster struct {
	tb    testing.TB
	fsm   *shims.FSM
	index uint64
	nodes []cluster.NodeID
}

type clusterPlan struct {
	nodes int
	// perNode and jobSize are the numbers of allocations of each node and of each job.
	perNode, jobSize int
	layout           layout
	// job is the template of the jobs: their type and the pace of their group.
	job         cluster.JobType
	maxParallel int
	// ended is the number of ended allocations of each job.
	ended int
	// volumes gives each allocation a volume of its own, which a controller attaches, with a claim.
	volumes bool
	// observed gives nodes and allocations the size of real ones, and lets the state observe how long the
	// allocations of each job took.
	observed bool
}

// layout assigns the allocations of jobs to nodes.
type layout int

const (
	// The zero value assigns them at random.
	_ layout = iota
	// dealt spreads each job over [neighbours] nodes, so that the number of jobs on a job's nodes
	// does not depend on the size of the cluster.
	dealt
	// packed fills the nodes one after the other.
	packed
)

// neighbours is the number of nodes that share jobs in the layout dealt.
const neighbours = 100

// clusterRows is the number of rows of one transaction of newCluster. In larger transactions each
// row costs more, see [statestore].
const clusterRows = 1000

// newCluster writes the rows of a cluster to the state, without raft entries. All allocations run,
// and those of services are healthy.
func newCluster(tb testing.TB, p clusterPlan) *testCluster {
	tb.Helper()
	t := &testCluster{tb: tb, fsm: shims.NewFSM(shims.FSMConfig{})}
	for i := range p.nodes {
		t.nodes = append(t.nodes, nodeID(i))
	}
	if p.volumes || p.observed {
		t.edit(func(txn *statestore.Txn) { txn.RaiseClusterVersion(cluster.MaxVersion) })
	}
	t.inParts(p.nodes, clusterRows, func(txn *statestore.Txn, i int) {
		must.NoError(tb, txn.UpsertNode(p.newNode(i), epoch))
	})
	node := p.deal(t.nodes)
	t.inParts(p.nodes*p.perNode/p.jobSize, max(1, clusterRows/(p.jobSize+p.ended)), func(txn *statestore.Txn, j int) {
		job := p.newJob(j)
		for _, v := range p.volumesOf(job) {
			must.NoError(tb, txn.UpsertVolume(v, epoch))
		}
		must.NoError(tb, txn.UpsertJob(job))
		if p.observed {
			p.observe(tb, txn, txn.State().Job(job.Key()), j, node(j*p.jobSize))
		}
		plan := &cluster.Plan{At: epoch}
		for k := range p.jobSize + p.ended {
			a := p.newAlloc(txn.State().Job(job.Key()), j, k)
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

// newNode returns the ith node.
func (p clusterPlan) newNode(i int) *cluster.Node {
	n := &cluster.Node{
		ID: nodeID(i), Name: fmt.Sprintf("node-%d", i), Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible,
		Resources: cluster.Resources{CPU: 1 << 40, MemoryMB: 1 << 40, DiskMB: 1 << 40}, StoragePlugins: p.plugins(i),
	}
	if p.observed {
		n.Resources = cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 100_000}
		n.Canonicalize()
	}
	return n
}

// plugins are the storage plugins of the ith node, or nil.
func (p clusterPlan) plugins(i int) []*cluster.StoragePlugin {
	if !p.volumes {
		return nil
	}
	return []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginMonolith, Healthy: true, Stages: true, Attaches: true, NodeID: fmt.Sprint(i)}}
}

// volumesOf are the volumes of a job, one for each allocation, or nil.
func (p clusterPlan) volumesOf(job *cluster.Job) (all []*cluster.Volume) {
	if !p.volumes {
		return nil
	}
	for k := range p.jobSize + p.ended {
		id := job.TaskGroups[0].Volumes[0].VolumeOf(fmt.Sprintf("%s.g[%d]", job.ID, k))
		all = append(all, &cluster.Volume{Namespace: job.Namespace, ID: id, ExternalID: string(id), Plugin: "disks", Capabilities: []cluster.VolumeCapability{oneWriter()}})
	}
	return all
}

func oneWriter() cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
}

// deal returns the node of each allocation.
func (p clusterPlan) deal(nodes []cluster.NodeID) func(i int) cluster.NodeID {
	switch p.layout {
	case dealt:
		return func(i int) cluster.NodeID { return nodes[i/(neighbours*p.perNode)*neighbours+i%neighbours] }
	case packed:
		return func(i int) cluster.NodeID { return nodes[i/p.perNode] }
	}
	slots := rand.New(rand.NewPCG(1, 2)).Perm(p.nodes * p.perNode)
	return func(i int) cluster.NodeID { return nodes[slots[i]%p.nodes] }
}

// inParts calls do n times, in transactions of size calls.
func (t *testCluster) inParts(n, size int, do func(txn *statestore.Txn, i int)) {
	for i := 0; i < n; i += size {
		t.edit(func(txn *statestore.Txn) {
			for j := i; j < min(n, i+size); j++ {
				do(txn, j)
			}
		})
	}
}

// edit writes to the state at the next index, without a raft entry.
func (t *testCluster) edit(do func(*statestore.Txn)) {
	t.index++
	txn := t.fsm.Store().Begin(t.index)
	do(txn)
	txn.Commit()
}

func nodeID(i int) cluster.NodeID {
	return cluster.NodeID(fmt.Sprintf("7c6b3110-d0f8-951f-b791-%012d", i))
}

func (p clusterPlan) newJob(j int) *cluster.Job {
	group := &cluster.TaskGroup{Name: "g", Count: p.jobSize, Tasks: []*cluster.Task{{Name: "t", Resources: cluster.Resources{CPU: 1, MemoryMB: 1}}}}
	if p.observed {
		group.Tasks[0].Resources = cluster.Resources{CPU: 40, MemoryMB: 64}
	}
	if p.job == cluster.JobService {
		group.Migrate = cluster.DefaultMigrateStrategy()
		group.Migrate.MaxParallel = p.maxParallel
	}
	if p.volumes {
		group.Volumes = []cluster.VolumeRequest{{Name: "disk", Type: cluster.VolumeCSI, Source: cluster.VolumeID(fmt.Sprintf("disk-%05d", j)), PerAlloc: true, Capability: oneWriter()}}
	}
	job := &cluster.Job{ID: cluster.JobID(fmt.Sprintf("job-%05d", j)), Type: p.job, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	return job
}

// observe runs and stops some allocations of a job before the others are placed, so that the state has times of
// its group. A start takes 1 s to 8 s, a verdict 10 s to 17 s, and a stop 1 s to 8 s.
func (p clusterPlan) observe(tb testing.TB, txn *statestore.Txn, job *cluster.Job, j int, on cluster.NodeID) {
	const times = 4
	for i := range times {
		a := p.newAlloc(job, j, p.jobSize+p.ended+i)
		a.NodeID, a.ClientStatus, a.DeploymentStatus = on, cluster.ClientPending, nil
		now := epoch.Add(-time.Hour)
		a.CreateTime, a.ModifyTime = now, now
		dropped, err := txn.ApplyPlan(&cluster.Plan{At: now, Places: []*cluster.Allocation{a}})
		must.NoError(tb, err)
		must.Len(tb, 0, dropped)
		report := func(after time.Duration, s cluster.ClientStatus, healthy *bool) {
			now = now.Add(after + time.Duration((j+i*3)%8)*time.Second)
			txn.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: a.ID, Node: on, ClientStatus: s, Healthy: healthy, HealthyAt: now, At: now}}, now)
		}
		report(time.Second, cluster.ClientRunning, nil)
		report(10*time.Second, cluster.ClientRunning, new(true))
		_, err = txn.ApplyPlan(&cluster.Plan{At: now, Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescNotNeeded}}})
		must.NoError(tb, err)
		report(time.Second, cluster.ClientComplete, nil)
	}
}

// allocOf returns the id of the kth allocation of the jth job.
func allocOf(j, k int) cluster.AllocID {
	return cluster.AllocID(fmt.Sprintf("%08x-3bc6-b24c-f8a5-%012x", j, k))
}

func (p clusterPlan) newAlloc(job *cluster.Job, j, k int) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: allocOf(j, k), Namespace: job.Namespace, JobID: job.ID, Job: job,
		Name: fmt.Sprintf("%s.g[%d]", job.ID, k), TaskGroup: "g", Resources: job.TaskGroups[0].Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, CreateTime: epoch, ModifyTime: epoch,
	}
	if p.job == cluster.JobService {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: epoch}
	}
	return a
}

// apply applies one entry, as raft does.
func (t *testCluster) apply(m shims.Message) shims.Response {
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
func (t *testCluster) drain(nodes int, spec cluster.DrainSpec) { t.drainNodes(t.nodes[:nodes], spec) }

// drainNodes starts the drains of some nodes.
func (t *testCluster) drainNodes(nodes []cluster.NodeID, spec cluster.DrainSpec) {
	for _, n := range nodes {
		t.apply(&shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
			Node: n, Spec: &spec, Drain: cluster.DrainID("drain-" + string(n)), At: epoch,
		}})
	}
}
