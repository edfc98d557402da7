// Package shortage explains why nodes cannot take more allocations of a group. Begin with [Of].
package shortage

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// State is the part of the state of a cluster that the package reads. See the State of package httpapi.
type State interface {
	volumes.View
	Eval(cluster.EvalID) *cluster.Evaluation
	Job(cluster.JobKey) *cluster.Job
	Nodes() iter.Seq[*cluster.Node]
	Usage(cluster.NodeID) cluster.Usage
	AllocsByNode(cluster.NodeID) iter.Seq[*cluster.Allocation]
	AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation]
}

// Of describes why an open evaluation could not place allocations, by group; nil if there are
// none. It evaluates the present state by the rules of the scheduler. The evaluation of a plan has
// the shortages of the blocked evaluation that the plan created, as long as that one is open.
func Of(s State, e *cluster.Evaluation) map[string]*wire.AllocationMetric {
	open := e
	if e.BlockedEval != "" {
		open = s.Eval(e.BlockedEval)
	}
	if open == nil || !open.Open() || len(open.Queued) == 0 {
		return nil
	}
	j := s.Job(open.JobKey())
	if j.Stopped() {
		return nil
	}
	found := map[string]*wire.AllocationMetric{}
	//lint:order each group has its own metric
	for name, queued := range open.Queued {
		if g := j.Group(name); g != nil && queued > 0 {
			found[name] = newShortage(s, j, g, queued).metric
		}
	}
	return found
}

// Placement returns the metrics of a placed allocation: the nodes as they are now. They are empty if
// the allocation has ended, or its group is gone.
func Placement(s State, a *cluster.Allocation) *wire.AllocationMetric {
	j := s.Job(a.JobKey())
	if g := j.Group(a.TaskGroup); g != nil && !a.Terminal() {
		return newShortage(s, j, g, 1).metric
	}
	return wire.NewAllocationMetric("")
}

// shortage counts why nodes do not take one more allocation of a group.
type shortage struct {
	metric  *wire.AllocationMetric
	need    cluster.Resources
	demands *feasible.Demands
	// refuses returns why a node cannot take the volumes of the group.
	refuses func(*cluster.Node) string
	// occupied are the nodes on which a job of every node has its allocation; nil for other jobs.
	occupied map[cluster.NodeID]bool
	// apart: occupied are the nodes that distinct_hosts excludes.
	apart bool
	// nearest is the sum of the missing shares of metric.Nearest.
	nearest float64
}

func newShortage(s State, j *cluster.Job, g *cluster.TaskGroup, queued int) *shortage {
	pool := cmp.Or(j.NodePool, cluster.DefaultNodePool)
	c := &shortage{need: g.Resources(), demands: feasible.Of(j).Group(g), metric: wire.NewAllocationMetric(pool)}
	c.metric.CoalescedFailures = queued - 1
	c.refuses = volumeRefusal(s, j, g)
	if j.Type.EveryNode() {
		c.occupied = map[cluster.NodeID]bool{}
		for a := range s.AllocsByJob(j.Key()) {
			if a.TaskGroup == g.Name && !a.Terminal() {
				c.occupied[a.NodeID] = true
			}
		}
	}
	if c.apart = !j.Type.EveryNode() && (j.DistinctHosts || g.DistinctHosts); c.apart {
		c.occupied = map[cluster.NodeID]bool{}
		for a := range s.AllocsByJob(j.Key()) {
			if !a.Terminal() && j.KeepsApart(g.Name, a) {
				c.occupied[a.NodeID] = true
			}
		}
	}
	for n := range s.Nodes() {
		if pool == cluster.AllNodePools || cmp.Or(n.NodePool, cluster.DefaultNodePool) == pool {
			c.add(s, j, g, n)
		}
	}
	return c
}

// volumeRefusal returns the check of nodes for the volumes of one more allocation of the group. Volumes of
// an allocation's own are those of the first name that no allocation has.
func volumeRefusal(s State, j *cluster.Job, g *cluster.TaskGroup) func(*cluster.Node) string {
	if len(g.Volumes) == 0 {
		return func(*cluster.Node) string { return "" }
	}
	used := map[string]bool{}
	for a := range s.AllocsByJob(j.Key()) {
		used[a.Name] = used[a.Name] || !a.Terminal()
	}
	name, book := "", volumes.NewBook(s)
	for i := 0; name == "" || used[name]; i++ {
		name = fmt.Sprintf("%s.%s[%d]", j.ID, g.Name, i)
	}
	return func(n *cluster.Node) string { return book.Refusal(j.Namespace, g, name, n) }
}

// add counts one node of the job's pool.
func (c *shortage) add(s State, j *cluster.Job, g *cluster.TaskGroup, n *cluster.Node) {
	m := c.metric
	if why := notReady(n); why != "" {
		m.NodesNotReady[why]++
		return
	}
	m.NodesInPool++
	m.NodesAvailable[n.Datacenter]++
	if c.occupied[n.ID] && !c.apart || len(j.Datacenters) > 0 && !slices.Contains(j.Datacenters, n.Datacenter) {
		return
	}
	m.NodesEvaluated++
	refusal := c.demands.Refusal(n)
	if len(g.NodeClasses) > 0 && !slices.Contains(g.NodeClasses, n.NodeClass) {
		refusal = classConstraint(g.NodeClasses)
	}
	if refusal == "" && c.apart && c.occupied[n.ID] {
		refusal = "distinct_hosts"
	}
	if refusal == "" {
		refusal = c.refuses(n)
	}
	if refusal != "" {
		m.NodesFiltered++
		m.ConstraintFiltered[refusal]++
		count(m.ClassFiltered, n.NodeClass)
		return
	}
	used := s.Usage(n.ID)
	short := missing(c.need, n.Free(used))
	if n.MaxAllocs > 0 && used.Live >= n.MaxAllocs {
		short["allocations"] = int64(used.Live - n.MaxAllocs + 1)
	}
	c.shortOfDevices(s, n, short)
	c.shortOfPorts(s, g, n, short)
	shortOfCores(s, g, n, short)
	if len(short) == 0 {
		return // the scheduler is about to place it there
	}
	m.NodesExhausted++
	count(m.ClassExhausted, n.NodeClass)
	//lint:order each dimension has its own count
	for dimension := range short {
		m.DimensionExhausted[dimension]++
	}
	if size := c.share(short); m.Nearest == nil || size < c.nearest {
		c.nearest = size
		m.Nearest = &wire.NearestNode{ID: string(n.ID), Name: n.Name, Short: short}
	}
}

// The dimensions of devices that a node has, and that are in use or unhealthy.
const (
	devicesInUse     = "devices"
	devicesUnhealthy = "healthy devices"
)

// shortOfDevices adds the devices that the node lacks. Only groups with requests for devices cost a walk over
// the node's allocations.
func (c *shortage) shortOfDevices(s State, n *cluster.Node, short map[string]int64) {
	devices := c.demands.Devices()
	if !devices.Any() {
		return
	}
	used := cluster.DevicesInUse{}
	for a := range s.AllocsByNode(n.ID) {
		if !a.ClientTerminal() {
			used.Add(a.Devices)
		}
	}
	lacks := devices.Short(n, used)
	if lacks.Used > 0 {
		short[devicesInUse] = int64(lacks.Used)
	}
	if lacks.Unhealthy > 0 {
		short[devicesUnhealthy] = int64(lacks.Unhealthy)
	}
}

// dynamicPorts is the dimension of a node that has too few free dynamic ports. That of a static port that is
// taken names the port and its holder.
const dynamicPorts = "dynamic ports"

// shortOfPorts adds the ports that the node lacks. Only groups with ports cost a walk over the node's
// allocations.
func (c *shortage) shortOfPorts(s State, g *cluster.TaskGroup, n *cluster.Node, short map[string]int64) {
	if !g.RequestsPorts() {
		return
	}
	used := cluster.PortsInUse{}
	for a := range s.AllocsByNode(n.ID) {
		if !a.ClientTerminal() {
			used.Add(a)
		}
	}
	for _, t := range feasible.TakenPorts(g, n, used) {
		dimension := dynamicPorts
		if t.Holder != nil {
			dimension = fmt.Sprintf("free ports (%d is held by group %s of job %s)", t.Port, t.Holder.TaskGroup, t.Holder.JobID)
		}
		short[dimension] = 1
	}
}

// shortOfCores adds the cores that the node lacks. Only groups with cores cost a walk over the node's allocations.
func shortOfCores(s State, g *cluster.TaskGroup, n *cluster.Node, short map[string]int64) {
	if g.Cores() == 0 {
		return
	}
	used := cluster.CoresInUse{}
	for a := range s.AllocsByNode(n.ID) {
		if !a.ClientTerminal() {
			used.Add(a)
		}
	}
	if lacks := g.Cores() - len(feasible.FreeCores(n, used)); lacks > 0 {
		short["cores"] = int64(lacks)
	}
}

// share is how large the shortage is, compared with the need.
func (c *shortage) share(short map[string]int64) (sum float64) {
	needs := map[string]int64{"cpu": c.need.CPU, "memory": c.need.MemoryMB, "disk": c.need.DiskMB, "gpu": c.need.GPU}
	for _, dimension := range slices.Sorted(maps.Keys(short)) {
		need, is := needs[dimension]
		if !is {
			need = 1 // allocations, devices, ports and cores
		}
		if need > 0 {
			sum += float64(short[dimension]) / float64(need)
		}
	}
	return sum
}

// notReady returns why a node takes no new work, or empty.
func notReady(n *cluster.Node) string {
	switch {
	case n.Ready():
		return ""
	case n.Status != cluster.NodeReady:
		return string(n.Status)
	case n.Draining():
		return "draining"
	}
	return string(cluster.NodeIneligible)
}

// missing returns how much of each resource is missing.
func missing(need, free cluster.Resources) map[string]int64 {
	short := map[string]int64{}
	lacking := need.Minus(free)
	//lint:order each resource has its own entry
	for dimension, lacks := range map[string]int64{"cpu": lacking.CPU, "memory": lacking.MemoryMB, "disk": lacking.DiskMB, "gpu": lacking.GPU} {
		if lacks > 0 {
			short[dimension] = lacks
		}
	}
	return short
}

// classConstraint is the constraint for node classes, as the reference prints it.
func classConstraint(classes []string) string {
	if len(classes) == 1 {
		return "${node.class} = " + classes[0]
	}
	return "${node.class} set_contains_any " + strings.Join(classes, ",")
}

// count counts a node of a class. The reference does not count nodes without a class.
func count(by map[string]int, class string) {
	if class != "" {
		by[class]++
	}
}
