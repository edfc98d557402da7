package rolled

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/placement"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness/opinion"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 100

// stopped is the description of an allocation that a rollout stops.
const stopped = "alloc is being updated due to job update"

// firstVersion is the cluster version from which on jobs roll out.
const firstVersion = 9

// Judge collects the violations of one run. The zero value is ready to use. A Judge is not safe for
// concurrent use. It never changes the rows that it reads.
type Judge struct{ invariant.Findings }

// Applied checks an entry, if it is a plan. Call it once for each entry, in the order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	m, isPlan := a.Message.(*shims.ApplyPlan)
	if !isPlan || m.Eval == nil {
		return
	}
	job := a.After.Job(cluster.JobKey{Namespace: m.Eval.Namespace, ID: m.Eval.JobID})
	taken := make(map[string][]*cluster.Allocation)
	for _, s := range m.Stops {
		before, after := a.Before.Alloc(s.Alloc), a.After.Alloc(s.Alloc)
		if before != nil && after != nil && !opinion.Stopping(before) && opinion.Stopping(after) && after.DesiredDescription == stopped {
			taken[before.TaskGroup] = append(taken[before.TaskGroup], before)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		g := read(a.After, job, name)
		for _, was := range taken[name] {
			if g.spec == nil || !g.outdated(was) {
				j.report(now, a.Index, NotOutdated, was, "it has the tasks of the present version")
			}
		}
		if g.spec != nil && g.most() > 0 {
			j.judgeGroup(now, a, g, taken[name])
		}
	}
}

// judgeGroup checks what a plan has left of a group.
func (j *Judge) judgeGroup(now time.Time, a shims.Applied, g *group, taken []*cluster.Allocation) {
	waiting := g.waiting()
	if onEveryNode(g.job) {
		waiting = g.unproven - g.createdAt(a.Index) + g.vacated(a.After, taken) + len(taken)
	}
	if waiting > g.most() {
		j.report(now, a.Index, TooMany, taken[0], "%d slots wait for health, and the update permits %d", waiting, g.most())
	}
	tookHealthy := slices.ContainsFunc(taken, func(was *cluster.Allocation) bool { return opinion.Healthy(was, a.Before.Node(was.NodeID)) })
	if limit := g.spec.Count - g.most(); tookHealthy && !onEveryNode(g.job) && g.healthy < limit {
		j.report(now, a.Index, BelowLimit, taken[0], "%d are healthy, and the limit is %d", g.healthy, limit)
	}
	if g.sick != nil {
		j.report(now, a.Index, AfterFailure, taken[0], "allocation %s of the present version is unhealthy", g.sick.ID)
	}
}

// Still checks a state in which nothing happens. Call it when the effects of all faults have ended.
func (j *Judge) Still(now time.Time, s *statestore.Snapshot) {
	if s.ClusterVersion() < firstVersion {
		return
	}
	for job := range s.Jobs() {
		if job.Stop || open(s, job.Key()) {
			continue
		}
		for _, spec := range job.TaskGroups {
			g := read(s, job, spec.Name)
			if !onEveryNode(job) && len(g.old)+len(g.present) > spec.Count {
				continue // another party has placed one more, without an evaluation
			}
			for _, a := range g.old {
				healthy := opinion.Healthy(a, s.Node(a.NodeID))
				waiting := g.waiting()
				if onEveryNode(job) {
					waiting = g.unproven
				}
				if next := opinion.LastSuccessor(a, s.Alloc); next != nil && next.Standby {
					continue // a drain replaces it
				}
				may := g.most() == 0 || g.sick == nil && waiting < g.most() &&
					(!healthy || onEveryNode(job) || g.healthy > spec.Count-g.most())
				if may && opinion.Reachable(s.Node(a.NodeID)) && (!onEveryNode(job) || takes(s.Node(a.NodeID)) && !mayLack(s.Node(a.NodeID), spec)) {
					j.report(now, s.Index(), LeftOutdated, a, "its job has other tasks")
				}
			}
		}
	}
}

// takes reports whether a node takes allocations. A system job keeps what runs on another one.
func takes(n *cluster.Node) bool {
	return n != nil && n.Status == "ready" && n.SchedulingEligibility == "eligible" && n.Drain == nil
}

// mayLack reports whether a node lacks cores or ports that a group requests. A system job keeps what runs there. The
// judge does not read which devices a node has: a node may lack them.
func mayLack(n *cluster.Node, g *cluster.TaskGroup) bool {
	cores, ports := 0, len(g.Ports)
	for _, t := range g.Tasks {
		cores += t.Cores
		ports += len(t.Ports)
		if len(t.Devices) > 0 {
			return true
		}
	}
	return cores > len(n.Cores) || ports > 0 && n.Network == nil
}

// open reports whether the job has an open evaluation: a plan may come, or it waits for room.
func open(s *statestore.Snapshot, k cluster.JobKey) bool {
	for e := range s.EvalsByJob(k) {
		if e.Status == "pending" || e.Status == "blocked" {
			return true
		}
	}
	return false
}

// group is a group of the present version of a job in a state.
type group struct {
	job  *cluster.Job
	spec *cluster.TaskGroup
	// old are the outdated allocations that stay, and present are the others.
	old, present []*cluster.Allocation
	// proven and unproven count the healthy allocations of present and the others. healthy counts those of
	// both kinds.
	proven, unproven, healthy int
	// sick is an unhealthy one of present, or nil.
	sick *cluster.Allocation
}

func read(s *statestore.Snapshot, job *cluster.Job, name string) *group {
	g := &group{job: job}
	if job == nil || job.Stop {
		return g
	}
	if at := slices.IndexFunc(job.TaskGroups, func(spec *cluster.TaskGroup) bool { return spec.Name == name }); at >= 0 {
		g.spec = job.TaskGroups[at]
	}
	for a := range s.AllocsByJob(job.Key()) {
		if g.spec == nil || a.TaskGroup != name || opinion.Leaving(a) || opinion.Canary(a) || a.Standby || a.Job == nil || a.Job.Type != job.Type {
			continue
		}
		if !opinion.Live(a) {
			if a.NextAllocation == "" && !opinion.Stopping(a) && !g.outdated(a) && placement.GaveUp(s, a, g.spec) {
				g.sick = a // it has failed too often
			}
			continue
		}
		healthy := opinion.Healthy(a, s.Node(a.NodeID))
		verdict, judged := opinion.Verdict(a)
		if healthy {
			g.healthy++
		}
		switch {
		case g.outdated(a):
			g.old = append(g.old, a)
			continue
		case healthy:
			g.proven++
		case judged && !verdict:
			g.sick = a
			g.unproven++
		default:
			g.unproven++
		}
		g.present = append(g.present, a)
	}
	return g
}

func onEveryNode(j *cluster.Job) bool { return j.Type == "system" || j.Type == "sysbatch" }

// most is how many slots may wait, or zero for all.
func (g *group) most() int {
	switch {
	case g.job.Type == "batch" || g.job.Type == "sysbatch":
		return 0
	case g.spec.Update == nil:
		return 1
	}
	return g.spec.Update.MaxParallel
}

// waiting counts the slots without a healthy allocation of the present version and without an outdated one.
func (g *group) waiting() int { return max(0, g.spec.Count-g.proven-len(g.old)) }

// createdAt counts the allocations that the entry has placed.
func (g *group) createdAt(index uint64) (n int) {
	for _, a := range g.present {
		if a.CreateIndex == index {
			n++
		}
	}
	return n
}

// vacated counts the nodes that take allocations, on which a rollout has stopped one of the group, and on which none
// of it runs or starts. It leaves out those of the allocations that the plan has taken.
func (g *group) vacated(s *statestore.Snapshot, taken []*cluster.Allocation) int {
	empty := make(map[cluster.NodeID]bool)
	for a := range s.AllocsByJob(g.job.Key()) {
		same := a.TaskGroup == g.spec.Name && a.Job != nil && a.Job.Type == g.job.Type
		if same && opinion.Stopping(a) && a.DesiredDescription == stopped && a.NextAllocation == "" && takes(s.Node(a.NodeID)) {
			empty[a.NodeID] = true
		}
	}
	for a := range s.AllocsByJob(g.job.Key()) {
		if a.TaskGroup == g.spec.Name && opinion.Live(a) && !opinion.Stopping(a) && !opinion.Canary(a) {
			delete(empty, a.NodeID)
		}
	}
	for _, a := range taken {
		delete(empty, a.NodeID)
	}
	return len(empty)
}

// outdated reports whether an allocation has other tasks than the group. The worlds change environments only.
func (g *group) outdated(a *cluster.Allocation) bool {
	at := slices.IndexFunc(a.Job.TaskGroups, func(was *cluster.TaskGroup) bool { return was.Name == g.spec.Name })
	return at < 0 || !reflect.DeepEqual(a.Job.TaskGroups[at].Tasks, g.spec.Tasks)
}

func (j *Judge) report(now time.Time, index uint64, c invariant.Check, a *cluster.Allocation, format string, args ...any) {
	v := invariant.Violation{At: now, Index: index, Node: a.NodeID, Alloc: a.ID, Group: cluster.GroupKey{Job: a.JobKey(), Name: a.TaskGroup}}
	j.Add(maxViolations, c, v, format, args...)
}
