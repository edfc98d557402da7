package placement

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// judgeRow checks a new allocation against its job: its group, its version and its resources.
func (p *plan) judgeRow(a *cluster.Allocation) {
	s := p.groups[a.TaskGroup]
	if s == nil || a.Namespace != p.key.Namespace || a.JobID != p.key.ID {
		p.report(OtherVersion, a, "the current job has no group %s", a.TaskGroup)
		return
	}
	if a.Job == nil || a.Job.Version != p.job.Version || a.Job.JobModifyIndex != p.job.JobModifyIndex || a.Job.CreateIndex != p.job.CreateIndex {
		p.report(OtherVersion, a, "it does not belong to version %d of the job, which is current", p.job.Version)
	}
	if specified := resourcesOf(s.group); a.Resources != specified {
		p.report(OtherResources, a, "it uses %+v, and its group specifies %+v", a.Resources, specified)
	}
}

// resourcesOf returns the resources of one allocation of the group.
func resourcesOf(g *cluster.TaskGroup) cluster.Resources {
	sum := cluster.Resources{DiskMB: g.EphemeralDisk.SizeMB}
	for _, t := range g.Tasks {
		sum = plus(sum, t.Resources)
	}
	return sum
}

func plus(a, b cluster.Resources) cluster.Resources {
	return cluster.Resources{CPU: a.CPU + b.CPU, MemoryMB: a.MemoryMB + b.MemoryMB, DiskMB: a.DiskMB + b.DiskMB, GPU: a.GPU + b.GPU}
}

// fits reports whether a node has the resources.
func fits(n *cluster.Node, r cluster.Resources) bool {
	has := n.Resources
	return r.CPU <= has.CPU && r.MemoryMB <= has.MemoryMB && r.DiskMB <= has.DiskMB && r.GPU <= has.GPU
}

// judgeNode checks that the node of a new allocation accepts it.
func (p *plan) judgeNode(a *cluster.Allocation) {
	n, s := p.after.Node(a.NodeID), p.groups[a.TaskGroup]
	switch {
	case !accepts(n):
		p.report(NotReady, a, "the node is deleted, not ready, ineligible or draining")
	case s != nil && !matches(n, p.job, s.group):
		p.report(Unsuitable, a, "the node is not in the pool, the datacenters or the classes of the group, or has too few cores")
	case s != nil && distinct(p.job, s.group):
		for other := range p.after.AllocsByNode(a.NodeID) {
			if other.ID != a.ID && sameGroup(other, a) && staysThere(other) {
				p.report(Together, a, "%s is on the node, too", other.ID)
			}
		}
	}
}

// distinct reports whether no two allocations of the group may be on one node.
func distinct(j *cluster.Job, g *cluster.TaskGroup) bool { return g.DistinctHosts && !onEveryNode(j) }

func sameGroup(a, b *cluster.Allocation) bool {
	return a.Namespace == b.Namespace && a.JobID == b.JobID && a.TaskGroup == b.TaskGroup
}

// staysThere reports whether an allocation has not ended, and the servers do not stop it.
func staysThere(a *cluster.Allocation) bool { return opinion.Live(a) && a.DesiredStatus == "run" }

// accepts reports whether the scheduler may place allocations on the node. A nil node does not
// exist.
func accepts(n *cluster.Node) bool {
	return n != nil && n.Status == "ready" && n.SchedulingEligibility == "eligible" && n.Drain == nil
}

// matches reports whether the scheduler may place allocations of the group on the node when it is empty: the node
// is for the group, and has as many cores as the group needs.
func matches(n *cluster.Node, j *cluster.Job, g *cluster.TaskGroup) bool {
	return isFor(n, j, g) && coresNeeded(g) <= len(n.Cores)
}

// isFor reports whether the node is in the pool, the datacenters and the classes of the job and the group. What runs
// on another node is stopped. What runs on a node with too few cores stays.
func isFor(n *cluster.Node, j *cluster.Job, g *cluster.TaskGroup) bool {
	const unnamed = "default"
	return (j.NodePool == "all" || cmp.Or(n.NodePool, unnamed) == cmp.Or(j.NodePool, unnamed)) &&
		(len(j.Datacenters) == 0 || slices.Contains(j.Datacenters, n.Datacenter)) &&
		(len(g.NodeClasses) == 0 || slices.Contains(g.NodeClasses, n.NodeClass))
}

// judgeLineage checks a new allocation against the one that it replaces, if any.
func (p *plan) judgeLineage(a *cluster.Allocation) {
	if a.NextAllocation != "" {
		p.report(BrokenLineage, a, "it is new, but already replaced by %s", a.NextAllocation)
	}
	previous := p.after.Alloc(a.PreviousAllocation)
	if previous == nil {
		if opinion.Canary(a) {
			p.report(BrokenLineage, a, "it is a canary and replaces no allocation")
		}
		return
	}
	switch before := p.before.Alloc(previous.ID); {
	case before != nil && before.NextAllocation != "":
		p.report(ReplacedTwice, a, "%s has already replaced %s", before.NextAllocation, previous.ID)
	case previous.NextAllocation != a.ID:
		p.report(ReplacedTwice, a, "it replaces %s, whose replacement is %s", previous.ID, previous.NextAllocation)
	}
	if previous.JobID != a.JobID || previous.Namespace != a.Namespace || previous.TaskGroup != a.TaskGroup ||
		opinion.Canary(previous) != opinion.Canary(a) || opinion.Canary(a) && previous.DeploymentID != a.DeploymentID {
		p.report(BrokenLineage, a, "it replaces %s, which belongs to another group or deployment", previous.ID)
	}
	if judgeBeside(p, a) && runs(previous) && (previous.ClientStatus != "unknown" || opinion.Reachable(p.after.Node(previous.NodeID))) {
		p.report(StillRunning, a, "it replaces %s, which still runs", previous.ID)
	}
	if group := p.groups[a.TaskGroup]; group != nil {
		p.judgeRetry(a, previous, group.group)
		if failures := Rescheduled(p.after, previous, group.group); group.group.Reschedule == nil && failures > maxReschedules && SameWork(previous, group.group) {
			p.report(ReplacedOften, a, "it replaces %s, after %d failures in a row", previous.ID, failures)
		}
	}
}

// judgeCapacity checks the capacity of the nodes that got new allocations.
func (p *plan) judgeCapacity() {
	for i, a := range p.placed {
		n := p.after.Node(a.NodeID)
		judged := slices.ContainsFunc(p.placed[:i], func(b *cluster.Allocation) bool { return b.NodeID == a.NodeID })
		if n == nil || judged {
			continue
		}
		live, sum := p.used(n)
		if !fits(n, sum) {
			p.report(Overcommitted, a, "the node has %+v, and its allocations use %+v", n.Resources, sum)
		}
		if n.MaxAllocs > 0 && live > n.MaxAllocs {
			p.report(Overcommitted, a, "the node may have %d allocations, and has %d", n.MaxAllocs, live)
		}
	}
}

// used returns how many allocations a node has, and what they and the node itself use.
func (p *plan) used(n *cluster.Node) (live int, sum cluster.Resources) {
	sum = n.Reserved
	for on := range p.after.WorkView().LiveAllocsByNode(n.ID) {
		live, sum = live+1, plus(sum, on.Resources)
	}
	return live, sum
}
