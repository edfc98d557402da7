package demo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo/openb"
)

// Cluster is the nodes and jobs that a run registers. Its times are simulated.
type Cluster struct {
	// Origin is the origin of the cluster, in one line.
	Origin string
	Nodes  []*cluster.Node
	// Jobs are registered in this order, which is the order of placement.
	Jobs []*cluster.Job
	// RunTime is how long an allocation of a batch or sysbatch job runs until it ends by
	// itself.
	RunTime map[cluster.JobKey]time.Duration
}

// Allocations counts the allocations that the jobs with a count want.
func (c *Cluster) Allocations() int {
	n := 0
	for _, j := range c.Jobs {
		if !j.Type.EveryNode() {
			for _, g := range j.TaskGroups {
				n += g.Count
			}
		}
	}
	return n
}

// limits are the least numbers of healthy allocations that the migrate blocks of the services
// allow.
func (c *Cluster) limits() map[cluster.GroupKey]int {
	limits := make(map[cluster.GroupKey]int)
	for _, j := range c.Jobs {
		for _, g := range j.TaskGroups {
			if j.Type == cluster.JobService && g.Migrate != nil {
				limits[cluster.GroupKey{Job: j.Key(), Name: g.Name}] = max(0, g.Count-g.Migrate.MaxParallel)
			}
		}
	}
	return limits
}

// everyNode reports whether the job runs on every node.
func (c *Cluster) everyNode(key cluster.JobKey) bool {
	return slices.ContainsFunc(c.Jobs, func(j *cluster.Job) bool { return j.Key() == key && j.Type.EveryNode() })
}

// Trace makes a cluster from a trace. Its batch work runs until it is stopped: in the trace it
// lasts for weeks.
func Trace(t *openb.Trace, dir string) *Cluster {
	c := &Cluster{
		Origin:  fmt.Sprintf("%d machines and %d pods from %s", len(t.Machines), len(t.Pods), dir),
		Nodes:   t.Nodes(),
		Jobs:    t.Jobs(),
		RunTime: make(map[cluster.JobKey]time.Duration),
	}
	for _, j := range c.Jobs {
		if j.Type.ToCompletion() {
			c.RunTime[j.Key()] = 24 * time.Hour
		}
	}
	return c
}

// Generate makes a cluster of n equal nodes that is about half full. It has service jobs of
// many sizes and migrate limits, batch jobs that end before the deadline and others that do
// not, system and sysbatch jobs, and two storage plugins: one on every node, one in two
// copies. Equal arguments make equal clusters.
func Generate(n int, deadline time.Duration, seed uint64) *Cluster {
	g := &generator{
		rng: rand.New(rand.NewPCG(seed, 0)),
		Cluster: &Cluster{
			Origin:  fmt.Sprintf("%d nodes generated from seed %d", n, seed),
			RunTime: make(map[cluster.JobKey]time.Duration),
		},
	}
	for i := range n {
		g.addNode(i)
	}
	g.addJob("csi-node", cluster.JobSystem, 1, 250, time.Second).Tasks[0].StoragePlugin = true
	g.addJob("csi-controller", cluster.JobService, 2, 250, time.Second).Tasks[0].StoragePlugin = true
	g.addJob("log-shipper", cluster.JobSystem, 1, 250, 2*time.Second)
	g.addJob("disk-scan", cluster.JobSysBatch, 1, 250, 2*time.Second)
	g.RunTime[cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "disk-scan"}] = deadline / 2
	g.addServices(6 * n)
	g.addBatch(n, deadline)
	return g.Cluster
}

// generator adds random nodes and jobs to a cluster.
type generator struct {
	*Cluster
	rng *rand.Rand
}

func (g *generator) addNode(i int) {
	name := fmt.Sprintf("node-%03d", i)
	n := &cluster.Node{
		ID:         cluster.NodeID(name),
		Name:       name,
		Datacenter: "dc1",
		NodeClass:  "general",
		Status:     cluster.NodeReady,
		Resources:  cluster.Resources{CPU: 16_000, MemoryMB: 65_536},
	}
	n.Canonicalize()
	g.Nodes = append(g.Nodes, n)
}

// addServices adds service jobs with about that many allocations.
func (g *generator) addServices(allocations int) {
	names := []string{"web", "api", "search", "cart", "mail", "auth", "feed", "maps", "chat", "ads"}
	for i := 0; allocations > 0; i++ {
		count := min(allocations, 2+g.rng.IntN(19))
		allocations -= count
		id := fmt.Sprintf("%s-%d", names[i%len(names)], i/len(names))
		kill := time.Duration(10+g.rng.IntN(21)) * time.Second
		group := g.addJob(id, cluster.JobService, count, 1000, kill)
		limits := []int{1, 1, 2, max(1, count/5), max(1, count/2)}
		group.Migrate.MaxParallel = limits[g.rng.IntN(len(limits))]
	}
}

// addBatch adds batch jobs with about that many allocations. Every other job runs longer than
// the deadline.
func (g *generator) addBatch(allocations int, deadline time.Duration) {
	for i := 0; allocations > 0; i++ {
		count := min(allocations, 5+g.rng.IntN(11))
		allocations -= count
		id := cluster.JobID(fmt.Sprintf("report-%d", i))
		runTime := deadline * time.Duration(50+g.rng.IntN(45)) / 100
		if i%2 == 0 {
			id = cluster.JobID(fmt.Sprintf("training-%d", i))
			runTime = 20 * deadline
		}
		g.addJob(string(id), cluster.JobBatch, count, 500, 10*time.Second)
		g.RunTime[cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: id}] = runTime
	}
}

// addJob adds a job of one group and returns the group.
func (g *generator) addJob(id string, kind cluster.JobType, count int, cpu int64, kill time.Duration) *cluster.TaskGroup {
	group := &cluster.TaskGroup{
		Name:  "main",
		Count: count,
		Tasks: []*cluster.Task{{
			Name:        "main",
			Resources:   cluster.Resources{CPU: cpu, MemoryMB: 4 * cpu},
			KillTimeout: kill,
		}},
	}
	job := &cluster.Job{ID: cluster.JobID(id), Type: kind, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	g.Jobs = append(g.Jobs, job)
	return group
}
