package live

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// ask asks whoever leads for a write, and does not wait for an answer.
func (p *player) ask(m shims.Message) {
	p.servers.propose(world.FromOperator, m, func(shims.Answer) {})
}

// drainRequest is a request to drain a node, or to end its drain if the spec is nil.
func (p *player) drainRequest(id cluster.NodeID, spec *cluster.DrainSpec, key string) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
		Node: id, Spec: spec, Drain: p.ids.drain(), At: time.Now(), Key: key,
	}}
}

func (p *player) cancel(id cluster.NodeID, eligible bool, key string) {
	m := p.drainRequest(id, nil, key)
	m.MarkEligible = eligible
	if eligible {
		m.Evals = p.nodeEvals(id)
	}
	p.ask(m)
}

func (p *player) register(j *cluster.Job) {
	j.Canonicalize()
	p.ask(&shims.JobRegister{Job: j, Evals: p.jobEvals(j, cluster.TriggerJobRegister)})
}

// stopJob stops a job, and with purge has it forgotten: nobody would look at an
// evaluation of it then.
func (p *player) stopJob(j *cluster.Job, purge bool) {
	m := &shims.JobDeregister{Job: j.Key(), Purge: purge}
	if !purge {
		m.Evals = p.jobEvals(j, cluster.TriggerJobDeregister)
	}
	p.ask(m)
}

// stopAlloc has the servers stop an allocation, and look at its job.
func (p *player) stopAlloc(a *cluster.Allocation) {
	now := time.Now()
	p.ask(&shims.ApplyPlan{Plan: cluster.Plan{
		At: now, Eval: scheduler.JobEval(a.Job, cluster.TriggerJobRegister, now, p.ids.eval()),
		Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescNotNeeded}},
	}})
}

// exit is the report of an allocation that has ended by itself.
func (p *player) exit(a *cluster.Allocation, as cluster.ClientStatus) *shims.AllocClientUpdate {
	now := time.Now()
	reports := []cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: as, At: now}}
	evals := scheduler.ReportEvals(p.servers.truth(), reports, now, p.ids.eval)
	return &shims.AllocClientUpdate{Reports: reports, Evals: evals}
}

// setStatus tells the servers what has become of a node; the scheduler looks unless it
// goes unnoticed.
func (p *player) setStatus(id cluster.NodeID, s cluster.NodeStatus, unnoticed bool) {
	m := &shims.NodeUpdateStatus{At: time.Now(), Node: id, Status: s}
	if !unnoticed {
		m.Evals = p.nodeEvals(id)
	}
	p.ask(m)
}

// setEligibility asks for a node to be used, or not.
func (p *player) setEligibility(id cluster.NodeID, e cluster.Eligibility) {
	p.ask(&shims.NodeUpdateEligibility{At: time.Now(), Node: id, Eligibility: e, Evals: p.nodeEvals(id)})
}

// nodeEvals are the evaluations that go with a change of a node. What comes between plan
// and apply of another write is the bare write.
func (p *player) nodeEvals(id cluster.NodeID) []*cluster.Evaluation {
	if p.servers.races() {
		return nil
	}
	return scheduler.NodeEvals(p.servers.truth(), id, cluster.TriggerNodeUpdate, time.Now(), p.ids.eval)
}

// jobEvals are those that go with a change of a job.
func (p *player) jobEvals(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	if p.servers.races() {
		return nil
	}
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, time.Now(), p.ids.eval())}
}
