package scheduler

import (
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// draft is the plan of one evaluation while it is made.
type draft struct {
	jobView
	world *world
	eval  *cluster.Evaluation
	ids   IDs
	plan  *cluster.Plan
	// most bounds the further placements that replace no allocation.
	most int
	// queued counts the placements that fit nowhere, by group; nil if there are none.
	queued map[string]int
	// again is the next evaluation that the job needs, or zero.
	again nextEval
}

// stop stops an allocation.
func (d *draft) stop(a *cluster.Allocation, description string) {
	d.plan.Stops = append(d.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description})
}

// lose marks an allocation as lost, because its client cannot report its end. A stopped
// allocation keeps its description. If a mark excludes a replacement, the allocation comes here only
// as surplus or because no group needs it: [draft.migrate] loses the others.
func (d *draft) lose(a *cluster.Allocation) {
	description := cluster.DescLost
	switch {
	case a.ServerTerminal():
		description = a.DesiredDescription
	case isStopOnly(a):
		description = cluster.DescNotNeeded
	}
	d.plan.Stops = append(d.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description, Lost: true})
}

// await marks an allocation on a disconnected node as unknown, and notes when it becomes
// lost.
func (d *draft) await(g *cluster.TaskGroup, a *cluster.Allocation) {
	d.again = d.again.or(nextEval{at: lostAt(g, a, d.view.Node(a.NodeID)), trigger: cluster.TriggerNodeUpdate})
	if a.ClientStatus == cluster.ClientUnknown {
		return
	}
	d.plan.Stops = append(d.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: cluster.DescUnknown, Unknown: true})
}

// delay notes when the replacement of an allocation that ended is due.
func (d *draft) delay(a *cluster.Allocation) {
	d.again = d.again.or(retryOf(d.job.Rescheduling(a, d.view.Alloc)))
}

// retryOf returns the evaluation at which a replacement is due.
func retryOf(r *cluster.Rescheduling) nextEval {
	return nextEval{at: r.DueAt, trigger: cluster.TriggerAllocFailure, longest: r.LongestWait()}
}

// migrate stops a marked allocation. [Check] refuses the stop if the mark was withdrawn.
func (d *draft) migrate(a *cluster.Allocation, description string, lose bool) {
	d.plan.Stops = append(d.plan.Stops, cluster.PlanStop{Alloc: a.ID, Description: description, Migrate: true, Lost: lose})
}

// place adds an allocation at the spot. previous is the allocation it replaces,
// or nil.
func (d *draft) place(g *cluster.TaskGroup, name string, previous *cluster.Allocation, at spot) {
	a := &cluster.Allocation{
		ID:            d.ids.Alloc(),
		Namespace:     d.job.Namespace,
		EvalID:        d.eval.ID,
		Name:          name,
		NodeID:        at.node.ID,
		NodeName:      at.node.Name,
		JobID:         d.job.ID,
		Job:           d.job,
		TaskGroup:     g.Name,
		Resources:     g.Resources(),
		Devices:       at.devices,
		DesiredStatus: cluster.DesiredRun,
		ClientStatus:  cluster.ClientPending,
		CreateTime:    d.now,
		ModifyTime:    d.now,
	}
	if g.RequestsPorts() || g.Cores() > 0 { // the caller has checked that they are free
		held := d.world.heldOn(at.node.ID)
		a.Ports, _ = feasible.AssignPorts(g, at.node, a.ID, held.ports)
		a.Cores, _ = feasible.AssignCores(g, at.node, held.cores)
		held.add(a)
	}
	if previous == nil {
		d.most--
	} else {
		a.PreviousAllocation = previous.ID
		if previous.Canary() {
			a.DeploymentID = previous.DeploymentID
			a.DeploymentStatus = &cluster.DeploymentStatus{Canary: true}
		}
		if s, _ := d.stand(g, previous); s == ended {
			d.stop(previous, cluster.DescRescheduled)
		}
	}
	d.plan.Places = append(d.plan.Places, a)
	if len(g.Volumes) > 0 {
		d.world.claims().Add(a, g)
	}
}

// placeBeside adds a standby allocation at the spot: the replacement of an allocation that keeps its slot, or of a
// standby.
func (d *draft) placeBeside(g *cluster.TaskGroup, previous *cluster.Allocation, at spot) {
	d.place(g, previous.Name, previous, at)
	d.plan.Places[len(d.plan.Places)-1].Standby = true
}

// queue counts placements that fit nowhere.
func (d *draft) queue(g *cluster.TaskGroup, n int) {
	if n <= 0 {
		return
	}
	if d.queued == nil {
		d.queued = make(map[string]int)
	}
	d.queued[g.Name] += n
}

// conclude sets the status of the evaluation and of the job's other open evaluations.
func (d *draft) conclude() {
	e := d.eval.Copy()
	e.ModifyTime = d.now
	e.Queued = d.queued
	d.plan.Eval = e
	waiting := d.answerOthers()
	switch {
	case d.queued == nil:
		e.Status, e.StatusDescription = cluster.EvalComplete, ""
	case e.Status == cluster.EvalBlocked:
		e.SnapshotIndex = d.plan.SnapshotIndex
	default:
		d.plan.Blocked = d.blocked(waiting)
		e.Status, e.StatusDescription = cluster.EvalComplete, ""
		e.BlockedEval = d.plan.Blocked.ID
	}
}

// answerOthers closes the job's other open evaluations. If placements still wait, it returns
// a blocked evaluation for an update instead of closing it.
func (d *draft) answerOthers() (waiting *cluster.Evaluation) {
	for other := range d.view.OpenEvals(d.eval.JobKey()) {
		if other.ID == d.eval.ID {
			continue
		}
		c := other.Copy()
		c.ModifyTime = d.now
		if other.Status == cluster.EvalBlocked && d.queued != nil && d.eval.Status != cluster.EvalBlocked && waiting == nil {
			waiting = c
			continue
		}
		c.Status = cluster.EvalCancelled
		c.StatusDescription = fmt.Sprintf("answered with evaluation %s", d.eval.ID)
		d.plan.Answers = append(d.plan.Answers, c)
	}
	return waiting
}

// blocked returns the job's blocked evaluation: the existing one with new values, or a new
// one.
func (d *draft) blocked(waiting *cluster.Evaluation) *cluster.Evaluation {
	b := waiting
	if b == nil {
		b = d.eval.Copy()
		b.ID = d.ids.Eval()
		b.TriggeredBy = cluster.TriggerQueuedAllocs
		b.NodeID = ""
		b.Status = cluster.EvalBlocked
		b.StatusDescription = cluster.BlockedEvalDescription
		b.PreviousEval = d.eval.ID
		b.BlockedEval = ""
		b.CreateTime = d.now
		b.CreateIndex, b.ModifyIndex = 0, 0
	}
	b.Queued = d.queued
	b.SnapshotIndex = d.plan.SnapshotIndex
	b.ModifyTime = d.now
	return b
}

// earliest returns the earlier of two times; zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
