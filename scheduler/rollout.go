package scheduler

import (
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// rollout is the replacement of a group's allocations by those of the present version of the job. It
// follows from the rows alone, so a new leader continues it. An allocation is outdated if it cannot run on
// as one of the present version: see [cluster.RunsLike].
//
// At most MaxParallel slots are outstanding: those without a healthy allocation of the present version
// and without an outdated one. The stop of a healthy allocation leaves at least count - MaxParallel healthy
// ones. Drains have such a limit, too, and both count the same healthy allocations. A stop of an unhealthy
// one needs no healthy others. An allocation of the present version that is unhealthy stops the rollout
// until it has recovered, or a newer version has come. Batch and sysbatch jobs have no health: all their
// allocations are replaced at once.
type rollout struct {
	group *cluster.TaskGroup
	// most is how many slots may be outstanding, or zero if all may.
	most int
	// outstanding are the outstanding slots. healthy are the healthy allocations of all versions, and
	// floor is how many the stop of a healthy one must leave.
	outstanding, healthy, floor int
	// sick is an unhealthy allocation of the present version, or nil. unproven is one that has no verdict
	// yet, or nil.
	sick, unproven *cluster.Allocation
}

// isOutdated reports whether a new version of the job replaces an allocation of the group. A system
// allocation stays on a node that takes no other one: see [isStranded], too. A drain replaces an allocation with a standby.
func isOutdated(v jobView, g *cluster.TaskGroup, a *cluster.Allocation) bool {
	return differs(v, g, a) && !hasStandby(v, a) && (!v.job.Type.EveryNode() || v.view.Node(a.NodeID).Ready())
}

// differs reports whether an allocation cannot run on as one of the present version. Below the cluster
// version of rollouts each can.
func differs(v jobView, g *cluster.TaskGroup, a *cluster.Allocation) bool {
	return v.view.ClusterVersion() >= cluster.VersionOfRollouts && a.Job != nil && a.Job != v.job && !a.Canary() &&
		!cluster.RunsLike(a.Job, v.job, g.Name)
}

// isStranded reports whether an outdated system allocation is on a node that lacks what the present version
// demands, for example a driver that is unhealthy. It stays, and no replacement is awaited there. The re-check of
// a plan does not judge that: constraints of devices have regular expressions, and servers must decide alike.
func isStranded(v jobView, d *feasible.Demands, a *cluster.Allocation) bool {
	return v.job.Type.EveryNode() && d.Refusal(v.view.Node(a.NodeID)) != ""
}

// rolloutOf returns the rollout of a group. allocs contains all allocations of the group that are not
// client-terminal, and all that hold a slot. left are those that the plan stops.
func rolloutOf(v jobView, g *cluster.TaskGroup, allocs []*cluster.Allocation, left map[cluster.AllocID]bool) *rollout {
	r := &rollout{group: g}
	if v.job.Type.ToCompletion() {
		return r
	}
	r.most = g.UpdateOf().MaxParallel
	current, pending, outdated := 0, 0, 0
	for _, a := range allocs {
		if a.Leaving() || a.Canary() || a.Standby || left[a.ID] {
			continue
		}
		healthy := a.Healthy(v.view.Node(a.NodeID))
		switch outdates := differs(v, g, a); {
		case a.ClientTerminal() && !outdates && v.standEnded(a) == spent:
			r.note(a)
		case a.ClientTerminal():
		case outdates:
			outdated++
		case healthy:
			current++
		default:
			pending++
			if a.HasVerdict() && !a.JudgedHealthy() {
				r.note(a)
			}
			if !a.HasVerdict() && (r.unproven == nil || a.ID < r.unproven.ID) {
				r.unproven = a
			}
		}
		if healthy {
			r.healthy++
		}
	}
	if v.job.Type.EveryNode() {
		r.outstanding = pending + emptyBerths(v, g, allocs, left)
		return r
	}
	r.outstanding = max(0, g.Count-current-outdated)
	r.floor = g.Count - r.most
	return r
}

// sharesSlot reports whether an allocation starts as a replacement of one that runs again and that the plan does
// not stop. Its stop leaves its slot to that one.
func sharesSlot(v jobView, a *cluster.Allocation, left func(cluster.AllocID) bool) bool {
	if a.ClientStatus != cluster.ClientPending {
		return false
	}
	previous := livePredecessor(v, a)
	return previous != nil && runs(v.view, previous) && !previous.Marked() && !left(previous.ID)
}

// leavesSlot reports whether an allocation came back, and the plan keeps the allocation that replaces it. A stop of
// the one that came back leaves the slot to the other one.
func leavesSlot(v jobView, a *cluster.Allocation, kept []*cluster.Allocation, left func(cluster.AllocID) bool) bool {
	next := cluster.LastSuccessor(a, v.view.Alloc)
	return next != nil && !left(next.ID) && slices.ContainsFunc(kept, func(k *cluster.Allocation) bool { return k.ID == next.ID })
}

// emptyBerths counts the ready nodes on which no allocation of a system job's group runs or starts since one
// of the present version ended, or since a rollout stopped an outdated one. The node of the latter counts only if it
// takes the present version, which may be a later one than that of the rollout.
func emptyBerths(v jobView, g *cluster.TaskGroup, allocs []*cluster.Allocation, left map[cluster.AllocID]bool) (n int) {
	taken := make(map[cluster.NodeID]bool)
	for _, a := range allocs {
		taken[a.NodeID] = taken[a.NodeID] || !a.Terminal() && !a.Canary() && !left[a.ID]
	}
	client := feasible.ClientOf(g)
	takes := func(a *cluster.Allocation) bool {
		n := v.view.Node(a.NodeID)
		return n != nil && accepts(n, v.job, g, v.view.ClusterVersion()) && client.Refusal(n) == "" && feasible.MissingCores(g, n) == "" && feasible.MissingPorts(g, n) == ""
	}
	for _, a := range allocs {
		vacated := a.DesiredDescription == cluster.DescNewerVersion && takes(a) || !a.ServerTerminal() && !differs(v, g, a)
		if a.Terminal() && vacated && a.NextAllocation == "" && !taken[a.NodeID] && v.view.Node(a.NodeID).Ready() {
			taken[a.NodeID] = true
			n++
		}
	}
	return n
}

// leavers are the allocations that a plan stops. One on a node that is disconnected may come back.
func leavers(stops []cluster.PlanStop) map[cluster.AllocID]bool {
	all := make(map[cluster.AllocID]bool)
	for _, s := range stops {
		if !s.Unknown {
			all[s.Alloc] = true
		}
	}
	return all
}

// note remembers the first unhealthy allocation by id.
func (r *rollout) note(a *cluster.Allocation) {
	if r.sick == nil || a.ID < r.sick.ID {
		r.sick = a
	}
}

// refusal returns why an outdated allocation must not be stopped now, or the empty string.
func (r *rollout) refusal(v jobView, a *cluster.Allocation) string {
	healthy := a.Healthy(v.view.Node(a.NodeID))
	switch {
	case r.most <= 0:
		return ""
	case r.sick != nil:
		return fmt.Sprintf("allocation %s of the new version is unhealthy", r.sick.ID)
	case r.outstanding >= r.most:
		text := fmt.Sprintf("group %s already replaces %d, and max_parallel of its update is %d", r.group.Name, r.outstanding, r.most)
		if r.unproven != nil {
			text += fmt.Sprintf("; allocation %s has no health verdict yet", r.unproven.ID)
		}
		return text
	case healthy && r.healthy <= r.floor:
		return fmt.Sprintf("%d of group %s are healthy, and its update must leave %d", r.healthy, r.group.Name, r.floor)
	}
	return ""
}

// take counts the stop of an outdated allocation.
func (r *rollout) take(v jobView, a *cluster.Allocation) {
	r.outstanding++
	if a.Healthy(v.view.Node(a.NodeID)) {
		r.healthy--
	}
}

// replaceOutdated stops as many outdated allocations as the rollout of the group permits, the least worth
// first, and returns the kept ones and the stopped ones to replace. surplus is how many more the group has than its
// count: they share slots with others.
func replaceOutdated(p *planner, g *cluster.TaskGroup, allocs, kept []*cluster.Allocation, surplus int) (left, replaced []*cluster.Allocation) {
	outdates := func(a *cluster.Allocation) bool {
		return isOutdated(p.jobView, g, a) && !isStranded(p.jobView, p.demands(g), a)
	}
	if !slices.ContainsFunc(kept, outdates) {
		return kept, nil
	}
	stops := leavers(p.draft.plan.Stops)
	r := rolloutOf(p.jobView, g, allocs, stops)
	slices.SortStableFunc(kept, p.byWorth)
	for _, a := range slices.Backward(kept) {
		if !outdates(a) || r.refusal(p.jobView, a) != "" {
			continue
		}
		p.draft.stop(a, cluster.DescNewerVersion)
		stopped := func(id cluster.AllocID) bool { return stops[id] }
		switch {
		case surplus > 0 && sharesSlot(p.jobView, a, stopped):
			surplus--
		case surplus > 0 && leavesSlot(p.jobView, a, kept, stopped):
			surplus--
			r.take(p.jobView, a)
		default:
			r.take(p.jobView, a)
			replaced = append(replaced, a)
		}
		stops[a.ID] = true
	}
	left = slices.DeleteFunc(kept, func(a *cluster.Allocation) bool { return stops[a.ID] })
	return left, replaced
}

// groupRollout returns the rollout of a group for the re-check of a plan, and caches it.
func groupRollout(c *checker, g *cluster.TaskGroup) *rollout {
	r := c.rollouts[g.Name]
	if r == nil {
		var allocs []*cluster.Allocation
		for a := range c.view.UnconcludedAllocs(c.plan.Eval.JobKey()) {
			if a.TaskGroup == g.Name && c.group(a) != nil {
				allocs = append(allocs, a)
			}
		}
		r = rolloutOf(c.jobView, g, allocs, leavers(c.accepted.Stops))
		c.rollouts[g.Name] = r
	}
	return r
}

// outdatedReason returns why an allocation must not be stopped for a newer version, or the empty string.
func outdatedReason(c *checker, g *cluster.TaskGroup, a *cluster.Allocation) string {
	switch {
	case !isOutdated(c.jobView, g, a):
		return "it runs like the present version of its job"
	case a.Marked():
		return "a drain has marked it" // and decides whether it is replaced
	}
	r := groupRollout(c, g)
	if why := r.refusal(c.jobView, a); why != "" {
		return why
	}
	stopped := func(id cluster.AllocID) bool {
		return slices.ContainsFunc(c.accepted.Stops, func(s cluster.PlanStop) bool { return s.Alloc == id && !s.Unknown })
	}
	if c.tally.groups[g.Name] <= g.Count || !sharesSlot(c.jobView, a, stopped) {
		r.take(c.jobView, a)
	}
	return ""
}

// rolling reports which jobs have outdated allocations. It reads each job once.
type rolling struct {
	view View
	jobs map[cluster.JobKey]bool
}

func (r rolling) has(k cluster.JobKey) bool {
	found, cached := r.jobs[k]
	if !cached {
		found = hasOutdated(jobView{view: r.view, job: r.view.Job(k)}, k)
		r.jobs[k] = found
	}
	return found
}

// hasOutdated reports whether a new version of the job replaces an allocation that runs.
func hasOutdated(v jobView, k cluster.JobKey) bool {
	if v.view.ClusterVersion() < cluster.VersionOfRollouts || v.job == nil {
		return false
	}
	for a := range v.view.UnconcludedAllocs(k) {
		if g := v.group(a); g != nil && !a.Leaving() && !a.ClientTerminal() && differs(v, g, a) {
			return true
		}
	}
	return false
}

// Rollouts returns the rollouts of a job, in the order of its groups.
func Rollouts(v View, k cluster.JobKey) (all []cluster.GroupRollout) {
	job := jobView{view: v, job: v.Job(k)}
	if !hasOutdated(job, k) {
		return nil
	}
	demands := feasible.Of(job.job)
	for _, g := range job.job.TaskGroups {
		var allocs []*cluster.Allocation
		for a := range v.UnconcludedAllocs(k) {
			if a.TaskGroup == g.Name && job.group(a) != nil {
				allocs = append(allocs, a)
			}
		}
		r, one := rolloutOf(job, g, allocs, nil), cluster.GroupRollout{Group: g.Name}
		var next *cluster.Allocation
		for _, a := range allocs {
			if a.Leaving() || a.ClientTerminal() || !isOutdated(job, g, a) || isStranded(job, demands.Group(g), a) {
				continue
			}
			one.Outdated++
			if next == nil || worth(a) < worth(next) {
				next = a
			}
		}
		if next == nil {
			continue
		}
		if r.most > 0 && r.sick != nil {
			one.Unhealthy = r.sick.ID
		}
		one.Why = r.refusal(job, next)
		all = append(all, one)
	}
	return all
}
