package foretell

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// draft is a cluster and what happens in it until the question, drawn from a seed.
type draft struct {
	seed uint64
	// moves: the data of some groups moves, so replacements wait for the end of their predecessors.
	moves  bool
	nodes  []*cluster.Node
	jobs   []*cluster.Job
	truths map[cluster.GroupKey]truth
	// earlier are the nodes that drain before the question, one after the other.
	earlier []cluster.NodeID
	// The question is about the first nodes of this order with allocations, with the strategy. rest is the time
	// before it.
	order  []cluster.NodeID
	drains int
	spec   cluster.DrainSpec
	rest   time.Duration
}

const (
	// leastNodes and mostNodes bound the size of a cluster.
	leastNodes, mostNodes = 5, 40
	// capacity is the CPU of a node. The jobs need at most busy percent of all CPUs.
	capacity, busy = 4000, 60
	mostCount      = 12
)

func drawDraft(seed uint64) *draft {
	r := world.Stream(seed, "foretell")
	d := &draft{seed: seed, moves: r.IntN(3) > 0, truths: map[cluster.GroupKey]truth{}}
	for i := range leastNodes + r.IntN(mostNodes-leastNodes+1) {
		id := cluster.NodeID(fmt.Sprintf("n%02d", i))
		n := &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: cluster.Resources{CPU: capacity, MemoryMB: 8192, DiskMB: 100_000}}
		n.Canonicalize()
		d.nodes = append(d.nodes, n)
	}
	batch := d.drawJobs(r)
	d.drawEarlier(r)
	for _, i := range r.Perm(len(d.nodes)) {
		d.order = append(d.order, d.nodes[i].ID)
	}
	d.drains = 1 + r.IntN(min(3, len(d.nodes)/4))
	if batch || r.IntN(3) == 0 { // without a deadline a drain waits for batch work for ever
		d.spec.Deadline = time.Duration(30+r.IntN(570)) * time.Second
	}
	d.spec.IgnoreSystemJobs = r.IntN(4) == 0
	d.rest = time.Duration(1+r.IntN(60)) * time.Second
	return d
}

// Cluster is a given cluster, for [CompareDrains]. Its nodes are ready and have no work.
type Cluster struct {
	Nodes []*cluster.Node
	Jobs  []*cluster.Job
}

const (
	// learnedFrom is the number of drains from which the servers of a given cluster learn.
	learnedFrom = 60
	// deadlineOfDrains is the deadline of drains in a given cluster. The default of drains is as long.
	deadlineOfDrains = time.Hour
)

// draftOf draws the times in a given cluster.
func draftOf(seed uint64, c Cluster) *draft {
	r := world.Stream(seed, "foretell")
	d := &draft{seed: seed, nodes: c.Nodes, jobs: c.Jobs, truths: map[cluster.GroupKey]truth{}, rest: time.Minute}
	d.spec.Deadline = deadlineOfDrains
	for _, j := range c.Jobs {
		for _, g := range j.TaskGroups {
			d.truths[cluster.GroupKey{Job: j.Key(), Name: g.Name}] = drawTruth(r)
		}
	}
	for _, i := range r.Perm(len(d.nodes)) {
		d.order = append(d.order, d.nodes[i].ID)
	}
	d.earlier = d.order[:min(learnedFrom, len(d.order)/2)]
	d.order = d.order[len(d.earlier):]
	return d
}

// questions returns questions about single nodes with allocations.
func (d *draft) questions(state *statestore.Snapshot, at time.Time, count int) (all []plan.Question) {
	d.drains = 1
	for len(all) < count && len(d.order) > 0 {
		q := d.question(state, at)
		if len(q.Nodes) == 0 {
			break
		}
		all = append(all, q)
		d.order = d.order[slices.Index(d.order, q.Nodes[0])+1:]
	}
	return all
}

// drawJobs draws jobs until the cluster is busy, and reports whether there is batch work among them.
func (d *draft) drawJobs(r *rand.Rand) (batch bool) {
	left := int64(len(d.nodes)*capacity) * int64(20+r.IntN(busy-19)) / 100
	batches := r.IntN(4) == 0
	for left > 0 {
		kind, count := cluster.JobService, 1+r.IntN(mostCount)
		switch r.IntN(10) {
		case 0:
			if batches {
				kind = cluster.JobBatch
			}
		case 1:
			if len(d.jobs) < 4 {
				kind, count = cluster.JobSystem, len(d.nodes)
			}
		}
		cpu := int64(100 + 100*r.IntN(7))
		if kind == cluster.JobSystem {
			cpu = 50
		}
		left -= cpu * int64(count)
		d.addJob(r, kind, count, cpu)
		batch = batch || kind == cluster.JobBatch
	}
	return batch
}

func (d *draft) addJob(r *rand.Rand, kind cluster.JobType, count int, cpu int64) {
	id := cluster.JobID(fmt.Sprintf("%s%02d", kind, len(d.jobs)))
	g := &cluster.TaskGroup{Name: string(id), Count: count, Tasks: []*cluster.Task{{
		Name: "task", KillTimeout: time.Duration(5<<r.IntN(4)) * time.Second, Resources: cluster.Resources{CPU: cpu, MemoryMB: 64},
	}}}
	if kind == cluster.JobSystem {
		g.Count = 1
	}
	healthy := time.Duration(5+r.IntN(26)) * time.Second
	if kind == cluster.JobService {
		update := cluster.DefaultUpdateStrategy()
		update.MinHealthyTime = healthy // the longer one of the two blocks applies
		g.Update, g.Migrate = &update, cluster.DefaultMigrateStrategy()
		g.Migrate.MaxParallel, g.Migrate.MinHealthyTime = 1+r.IntN(4), healthy
		g.EphemeralDisk.Migrate = d.moves && r.IntN(2) == 0
	}
	j := &cluster.Job{ID: id, Type: kind, TaskGroups: []*cluster.TaskGroup{g}}
	j.Canonicalize()
	d.jobs = append(d.jobs, j)
	d.truths[cluster.GroupKey{Job: j.Key(), Name: g.Name}] = drawTruth(r)
}

// drawEarlier draws the drains from which the state learns: none in some clusters, and up to three of each node.
func (d *draft) drawEarlier(r *rand.Rand) {
	if r.IntN(8) == 0 {
		return
	}
	rounds := 1 + r.IntN(3)
	for range rounds {
		for _, i := range r.Perm(len(d.nodes)) {
			d.earlier = append(d.earlier, d.nodes[i].ID)
		}
	}
	if r.IntN(4) == 0 {
		d.earlier = d.earlier[:1+r.IntN(len(d.earlier))]
	}
}

// question returns the question about a state at a time.
func (d *draft) question(state *statestore.Snapshot, at time.Time) plan.Question {
	q := plan.Question{Spec: d.spec, At: at}
	for _, id := range d.order {
		for range state.WorkView().LiveAllocsByNode(id) {
			q.Nodes = append(q.Nodes, id)
			break
		}
		if len(q.Nodes) == d.drains {
			break
		}
	}
	return q
}
