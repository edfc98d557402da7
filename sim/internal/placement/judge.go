package placement

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// maxViolations is the largest number of violations that a judge keeps.
const maxViolations = 100

// Judge collects the violations of one run. The zero value is ready to use. A Judge is not safe
// for concurrent use. It never changes the rows that it reads.
type Judge struct{ invariant.Findings }

// Applied checks an entry, if it is a plan for an evaluation. Call it once for each entry, in the
// order of the log.
func (j *Judge) Applied(now time.Time, a shims.Applied) {
	m, isPlan := a.Message.(*shims.ApplyPlan)
	if !isPlan || m.Eval == nil {
		return
	}
	key := cluster.JobKey{Namespace: m.Eval.Namespace, ID: m.Eval.JobID}
	p := &plan{judge: j, now: now, at: m.At, index: a.Index, snapshot: m.SnapshotIndex, before: a.Before, after: a.After, key: key, job: a.After.Job(key)}
	p.collect(&m.Plan)
	for _, placed := range p.placed {
		p.judgeRow(placed)
		p.judgeNode(placed)
		p.judgeDevices(placed)
		p.judgePorts(placed)
		judgeCores(p, placed)
		p.judgeLineage(placed)
	}
	p.judgeGivenUp(&m.Plan)
	p.judgeCapacity()
	p.judgeSlots()
	p.judgeUnfinished()
}

// plan is one applied plan, and the state of its job after it.
type plan struct {
	judge *Judge
	now   time.Time
	// at is the time of the scheduler that planned.
	at    time.Time
	index uint64
	// snapshot is the index of the state from which the scheduler planned.
	snapshot      uint64
	before, after *statestore.Snapshot
	key           cluster.JobKey
	// job is the current version of the job, or nil if the job was purged.
	job *cluster.Job
	// placed are the allocations that the plan created.
	placed []*cluster.Allocation
	// groups are the slots of each group of the job, by the group's name.
	groups map[string]*slots
	// effective means that the plan changed the state. A plan for a closed evaluation does not.
	effective bool
	// unwanted are the running allocations that belong to no group of the current job.
	unwanted []*cluster.Allocation
}

// collect finds the allocations that the plan created, and the slots of the job's groups.
func (p *plan) collect(m *cluster.Plan) {
	for _, planned := range m.Places {
		if planned == nil || p.before.Alloc(planned.ID) != nil {
			continue
		}
		if a := p.after.Alloc(planned.ID); a != nil {
			p.placed = append(p.placed, a)
		}
	}
	eval := p.after.Eval(m.Eval.ID)
	p.effective = eval != nil && eval.ModifyIndex == p.index
	p.groups = make(map[string]*slots)
	if p.job != nil && !p.job.Stop {
		for _, g := range p.job.TaskGroups {
			p.groups[g.Name] = &slots{group: g}
		}
	}
	for a := range p.after.AllocsByJob(p.key) {
		s := p.groups[a.TaskGroup]
		switch {
		case s == nil || a.Job != nil && a.Job.Type != p.job.Type:
			if runs(a) {
				p.unwanted = append(p.unwanted, a)
			}
		case Holds(p.after, a, s.group, p.at):
			s.held = append(s.held, a)
		}
	}
}

// report records a violation. The allocation may be nil.
func (p *plan) report(c invariant.Check, a *cluster.Allocation, format string, args ...any) {
	v := invariant.Violation{}
	if a != nil {
		v.Node, v.Alloc = a.NodeID, a.ID
		v.Group = cluster.GroupKey{Job: p.key, Name: a.TaskGroup}
	}
	p.add(c, v, format, args...)
}

// add records a violation.
func (p *plan) add(c invariant.Check, v invariant.Violation, format string, args ...any) {
	v.At, v.Index = p.now, p.index
	p.judge.Add(maxViolations, c, v, format, args...)
}
