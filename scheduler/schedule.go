package scheduler

import (
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// Schedule compares the evaluation's job with its allocations and returns the plan that
// corrects the difference. The plan answers every open evaluation of the job in the view,
// even if it has no stops and placements. Schedule is pure: equal arguments give equal plans.
func Schedule(v View, eval *cluster.Evaluation, now time.Time, ids IDs) *cluster.Plan {
	plan, _ := schedule(newWorld(v, new(arrays)), eval, now, ids, math.MaxInt)
	return plan
}

// nextEval is an evaluation that a job needs at a time although nothing changes: a disconnected allocation
// becomes lost then, or a replacement is due. The zero value is none.
type nextEval struct {
	at      time.Time
	trigger cluster.EvalTrigger
	// longest is the longest wait until at, or zero if it has no bound. A longer one shows that the clock was
	// set back, which ends the wait.
	longest time.Duration
}

// due reports whether the job needs the evaluation now.
func (n nextEval) due(now time.Time) bool {
	return !now.Before(n.at) || n.longest > 0 && !now.After(n.at.Add(-n.longest))
}

// or returns the earlier of two evaluations.
func (n nextEval) or(o nextEval) nextEval {
	if n.at.IsZero() || !o.at.IsZero() && o.at.Before(n.at) {
		return o
	}
	return n
}

// schedule is [Schedule], and subtracts its placements from the world. again is when the plan changes
// although nothing else does. It
// places at most most new allocations: a job may need a million, and the caller writes
// only the first part of the plan.
func schedule(w *world, eval *cluster.Evaluation, now time.Time, ids IDs, most int) (plan *cluster.Plan, again nextEval) {
	state := jobView{view: w, job: w.Job(eval.JobKey()), now: now}
	d := &draft{jobView: state, world: w, eval: eval, ids: ids, most: most, plan: &cluster.Plan{At: now, SnapshotIndex: w.Index()}}
	p := &planner{jobView: state, world: w, draft: d}
	groups := p.sortAllocs()
	if !p.job.Stopped() {
		for _, g := range p.job.TaskGroups {
			allocs := groups[g.Name]
			sortByName(allocs)
			if p.job.Type.EveryNode() {
				p.planEveryNode(g, allocs)
			} else {
				p.planCount(g, allocs)
			}
		}
	}
	d.conclude()
	return d.plan, d.again
}

// planner decides the stops and placements of one job.
type planner struct {
	jobView
	world *world
	draft *draft
	// feasible has read the constraints of the job, or is nil.
	feasible *feasible.Job
}

// demands returns what the group demands of a node. It reads each constraint once for all nodes.
func (p *planner) demands(g *cluster.TaskGroup) *feasible.Demands {
	if p.feasible == nil {
		p.feasible = feasible.Of(p.job)
	}
	return p.feasible.Group(g)
}

// sortAllocs stops the allocations that no group needs and returns the rest by group.
func (p *planner) sortAllocs() map[string][]*cluster.Allocation {
	groups := make(map[string][]*cluster.Allocation)
	var unwanted []*cluster.Allocation
	for a := range p.view.UnconcludedAllocs(p.draft.eval.JobKey()) {
		if p.group(a) == nil {
			unwanted = append(unwanted, a)
			continue
		}
		groups[a.TaskGroup] = append(groups[a.TaskGroup], a)
	}
	sortByName(unwanted)
	for _, a := range unwanted {
		p.dismiss(a)
	}
	return groups
}

// dismiss stops an allocation that no group needs.
func (p *planner) dismiss(a *cluster.Allocation) {
	switch dead := isDead(p.view.Node(a.NodeID)); {
	case a.ClientTerminal():
	case dead:
		p.draft.lose(a)
	case !a.ServerTerminal():
		p.draft.stop(a, cluster.DescNotNeeded)
	}
}
