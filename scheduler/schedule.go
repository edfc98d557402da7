package scheduler

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// Schedule compares the evaluation's job with its allocations and returns the plan that
// corrects the difference. The plan answers every open evaluation of the job in the view,
// even if it has no stops and placements. Schedule is pure: equal arguments give equal plans.
func Schedule(v View, eval *cluster.Evaluation, now time.Time, ids IDs) *cluster.Plan {
	plan, _ := schedule(newWorld(v), eval, now, ids, math.MaxInt)
	return plan
}

// schedule is [Schedule], and subtracts its placements from the world. again is the time at
// which a disconnected allocation becomes lost and the plan changes; zero is never. It
// places at most most new allocations: a job may want a million, and the caller writes
// only the first part of the plan.
func schedule(w *world, eval *cluster.Evaluation, now time.Time, ids IDs, most int) (plan *cluster.Plan, again time.Time) {
	p := &planner{
		look:  look{view: w, job: w.Job(eval.JobKey()), now: now},
		world: w,
		eval:  eval,
		ids:   ids,
		most:  most,
		plan:  &cluster.Plan{At: now, SnapshotIndex: w.Index()},
	}
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
	p.conclude()
	return p.plan, p.again
}

// planner makes one plan.
type planner struct {
	look
	world *world
	eval  *cluster.Evaluation
	ids   IDs
	plan  *cluster.Plan
	// most bounds the further placements that replace no allocation.
	most int
	// queued counts the placements that fit nowhere, by group; nil if there are none.
	queued map[string]int
	// again is when the first disconnected allocation becomes lost, or zero.
	again time.Time
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

// sortAllocs stops the allocations that no group wants and returns the rest by group.
func (p *planner) sortAllocs() map[string][]*cluster.Allocation {
	groups := make(map[string][]*cluster.Allocation)
	var unwanted []*cluster.Allocation
	for a := range p.view.UnconcludedAllocs(p.eval.JobKey()) {
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

// dismiss stops an allocation that no group wants.
func (p *planner) dismiss(a *cluster.Allocation) {
	switch dead := isDead(p.view.Node(a.NodeID)); {
	case a.ClientTerminal():
	case dead:
		p.lose(a)
	case !a.ServerTerminal():
		p.stop(a, cluster.DescNotNeeded)
	}
}

// stop stops an allocation.
func (p *planner) stop(a *cluster.Allocation, description string) {
	p.plan.Stops = append(p.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description})
}

// lose marks an allocation as lost, because its client cannot report its end. A stopped
// allocation keeps its description. If a mark excludes a replacement, the allocation comes here only
// as surplus or because no group wants it: [planner.migrate] loses the others.
func (p *planner) lose(a *cluster.Allocation) {
	description := cluster.DescLost
	switch {
	case a.ServerTerminal():
		description = a.DesiredDescription
	case isStopOnly(a):
		description = cluster.DescNotNeeded
	}
	p.plan.Stops = append(p.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description, Lost: true})
}

// await marks an allocation on a disconnected node as unknown, and notes when it becomes
// lost.
func (p *planner) await(g *cluster.TaskGroup, a *cluster.Allocation) {
	p.again = earliest(p.again, lostAt(g, a, p.view.Node(a.NodeID)))
	if a.ClientStatus == cluster.ClientUnknown {
		return
	}
	p.plan.Stops = append(p.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: cluster.DescUnknown, Unknown: true})
}

// migrate stops a marked allocation. [Check] refuses the stop if the mark was withdrawn.
func (p *planner) migrate(a *cluster.Allocation, description string, lose bool) {
	p.plan.Stops = append(p.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description, Migrate: true, Lost: lose})
}

// place adds an allocation at the spot. previous is the allocation it replaces,
// or nil.
func (p *planner) place(g *cluster.TaskGroup, name string, previous *cluster.Allocation, at spot) {
	a := &cluster.Allocation{
		ID:            p.ids.Alloc(),
		Namespace:     p.job.Namespace,
		EvalID:        p.eval.ID,
		Name:          name,
		NodeID:        at.node.ID,
		NodeName:      at.node.Name,
		JobID:         p.job.ID,
		Job:           p.job,
		TaskGroup:     g.Name,
		Resources:     g.Resources(),
		Devices:       at.devices,
		DesiredStatus: cluster.DesiredRun,
		ClientStatus:  cluster.ClientPending,
		CreateTime:    p.now,
		ModifyTime:    p.now,
	}
	if previous == nil {
		p.most--
	} else {
		a.PreviousAllocation = previous.ID
		if previous.Canary() {
			a.DeploymentID = previous.DeploymentID
			a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
		}
		if s, _ := p.stand(g, previous); s == ended {
			p.stop(previous, cluster.DescRescheduled)
		}
	}
	p.plan.Places = append(p.plan.Places, a)
	if len(g.Volumes) > 0 {
		p.world.claims().Add(a, g)
	}
}

// queue counts placements that fit nowhere.
func (p *planner) queue(g *cluster.TaskGroup, n int) {
	if n <= 0 {
		return
	}
	if p.queued == nil {
		p.queued = make(map[string]int)
	}
	p.queued[g.Name] += n
}

// conclude sets the status of the evaluation and of the job's other open evaluations.
func (p *planner) conclude() {
	e := p.eval.Copy()
	e.ModifyTime = p.now
	e.Queued = p.queued
	p.plan.Eval = e
	waiting := p.answerOthers()
	switch {
	case p.queued == nil:
		e.Status, e.StatusDescription = cluster.EvalComplete, ""
	case e.Status == cluster.EvalBlocked:
		e.SnapshotIndex = p.plan.SnapshotIndex
	default:
		p.plan.Blocked = p.blocked(waiting)
		e.Status, e.StatusDescription = cluster.EvalComplete, ""
		e.BlockedEval = p.plan.Blocked.ID
	}
}

// answerOthers closes the job's other open evaluations. If placements still wait, it returns
// a blocked evaluation for an update instead of closing it.
func (p *planner) answerOthers() (waiting *cluster.Evaluation) {
	for other := range p.view.OpenEvals(p.eval.JobKey()) {
		if other.ID == p.eval.ID {
			continue
		}
		c := other.Copy()
		c.ModifyTime = p.now
		if other.Status == cluster.EvalBlocked && p.queued != nil && p.eval.Status != cluster.EvalBlocked && waiting == nil {
			waiting = c
			continue
		}
		c.Status = cluster.EvalCancelled
		c.StatusDescription = fmt.Sprintf("answered with evaluation %s", p.eval.ID)
		p.plan.Answers = append(p.plan.Answers, c)
	}
	return waiting
}

// blocked returns the job's blocked evaluation: the existing one with new values, or a new
// one.
func (p *planner) blocked(waiting *cluster.Evaluation) *cluster.Evaluation {
	b := waiting
	if b == nil {
		b = p.eval.Copy()
		b.ID = p.ids.Eval()
		b.TriggeredBy = cluster.TriggerQueuedAllocs
		b.NodeID = ""
		b.Status = cluster.EvalBlocked
		b.StatusDescription = cluster.BlockedEvalDescription
		b.PreviousEval = p.eval.ID
		b.BlockedEval = ""
		b.CreateTime = p.now
		b.CreateIndex, b.ModifyIndex = 0, 0
	}
	b.Queued = p.queued
	b.SnapshotIndex = p.plan.SnapshotIndex
	b.ModifyTime = p.now
	return b
}

// earliest returns the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
