package openb

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// kinds is the job type for each QoS of pods.
var kinds = map[string]cluster.JobType{
	"LS": cluster.JobService, "Burstable": cluster.JobService, "Guaranteed": cluster.JobService, "BE": cluster.JobBatch,
}

// Nodes returns the machines as ready nodes, in the order of the list. A node's id and name are
// those of the machine.
func (t *Trace) Nodes() []*cluster.Node {
	nodes := make([]*cluster.Node, len(t.Machines))
	for i, m := range t.Machines {
		nodes[i] = &cluster.Node{
			ID:         cluster.NodeID(m.Name),
			Name:       m.Name,
			Datacenter: "openb",
			NodeClass:  m.Model,
			Status:     cluster.NodeReady,
			Resources:  cluster.Resources{CPU: m.CPUMilli, MemoryMB: m.MemoryMiB, GPU: 1000 * m.GPUs},
		}
		nodes[i].Canonicalize()
	}
	return nodes
}

// work is the properties that the pods of one job share.
type work struct {
	qos     string
	request cluster.Resources
	spec    string
}

// id is the job's id. Different work has different ids.
func (w work) id() cluster.JobID {
	id := fmt.Sprintf("%s-cpu%d-mem%d", strings.ToLower(w.qos), w.request.CPU, w.request.MemoryMB)
	if w.request.GPU > 0 {
		id += fmt.Sprintf("-gpu%d", w.request.GPU)
	}
	if w.spec != "" {
		id += "-on-" + w.spec
	}
	return cluster.JobID(id)
}

// Jobs groups the running pods into jobs: services before batch, and larger requests first,
// which packs best.
func (t *Trace) Jobs() []*cluster.Job {
	counts := make(map[work]int)
	for _, p := range t.Pods {
		if p.Phase == "Running" {
			counts[work{qos: p.QoS, request: p.request(), spec: p.GPUSpec}]++
		}
	}
	all := slices.SortedFunc(maps.Keys(counts), func(a, b work) int {
		return cmp.Or(
			-cmp.Compare(kinds[a.qos], kinds[b.qos]), // service, then batch
			-cmp.Compare(a.request.GPU, b.request.GPU),
			-cmp.Compare(a.request.CPU, b.request.CPU),
			-cmp.Compare(a.request.MemoryMB, b.request.MemoryMB),
			cmp.Compare(a.id(), b.id()),
		)
	})
	jobs := make([]*cluster.Job, len(all))
	for i, w := range all {
		jobs[i] = w.job(counts[w])
	}
	return jobs
}

func (w work) job(count int) *cluster.Job {
	group := &cluster.TaskGroup{
		Name:  "pods",
		Count: count,
		Tasks: []*cluster.Task{{Name: "pod", Resources: w.request}},
	}
	if w.spec != "" {
		group.NodeClasses = strings.Split(w.spec, "|")
	}
	job := &cluster.Job{ID: w.id(), Type: kinds[w.qos], TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	if group.Migrate != nil {
		group.Migrate.MaxParallel = MaxParallel(count)
	}
	return job
}

// MaxParallel is how many allocations of a service group of that count may be down at once: a
// tenth, at least one.
func MaxParallel(count int) int { return max(1, count/10) }

// request is the pod's request. GPUMilli counts only with one GPU.
func (p Pod) request() cluster.Resources {
	r := cluster.Resources{CPU: p.CPUMilli, MemoryMB: p.MemoryMiB, GPU: 1000 * p.GPUs}
	if p.GPUs == 1 {
		r.GPU = p.GPUMilli
	}
	return r
}
