package world

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Propose asks the leader for a write. reply is told what became of it; nil if
// nobody wants to know.
//
// Between plan and apply of another write, see [World.Before], it is committed at
// once.
func (w *World) Propose(m shims.Message, reply func(shims.Answer)) {
	if reply == nil {
		reply = func(shims.Answer) {}
	}
	if w.racing == 0 {
		if !w.log.propose(nil, FromOperator, m, reply) {
			reply(rejected())
		}
		return
	}
	answer, err := w.log.commit(m)
	if err != nil {
		w.broken = err
		return
	}
	reply(answer)
}

// DrainRequest is a request to drain a node, or to end its drain if the spec is
// nil. A drain that it begins has an id of its own.
func (w *World) DrainRequest(id cluster.NodeID, spec *cluster.DrainSpec, key string) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{
		Node: id, Spec: spec, Drain: w.ids.drain(), At: w.Clock(), Key: key,
	}}
}

// Drain asks for a drain of a node, or for another strategy of the one it has.
func (w *World) Drain(id cluster.NodeID, spec cluster.DrainSpec, key string) {
	w.Propose(w.DrainRequest(id, &spec, key), nil)
}

// CancelDrain asks for the end of a node's drain.
func (w *World) CancelDrain(id cluster.NodeID, markEligible bool, key string) {
	m := w.DrainRequest(id, nil, key)
	m.MarkEligible = markEligible
	if markEligible {
		m.Evals = w.nodeEvals(id)
	}
	w.Propose(m, nil)
}

// RegisterJob asks for a job, or for another version of it.
func (w *World) RegisterJob(j *cluster.Job) {
	j.Canonicalize()
	w.Propose(&shims.JobRegister{Job: j, Evals: w.jobEvals(j, cluster.TriggerJobRegister)}, nil)
}

// EditJob asks for another version of the job that there is.
func (w *World) EditJob(key cluster.JobKey, edit func(*cluster.Job)) error {
	j := w.Truth().Job(key).Copy()
	if j == nil {
		return fmt.Errorf("editing job %s: there is none", key)
	}
	edit(j)
	w.RegisterJob(j)
	return nil
}

// StopJob asks for a job to be stopped, and with purge for it to be forgotten.
func (w *World) StopJob(key cluster.JobKey, purge bool) error {
	j := w.Truth().Job(key)
	if j == nil {
		return fmt.Errorf("stopping job %s: there is none", key)
	}
	m := &shims.JobDeregister{Job: key, Purge: purge}
	if !purge { // nobody would look at an evaluation of a job that is forgotten
		m.Evals = w.jobEvals(j, cluster.TriggerJobDeregister)
	}
	w.Propose(m, nil)
	return nil
}

// FailAlloc has an allocation end by itself, as its client then reports.
func (w *World) FailAlloc(a *cluster.Allocation) {
	w.Propose(w.exit(a, cluster.ClientFailed), nil)
}

// FinishAlloc has an allocation end well by itself.
func (w *World) FinishAlloc(a *cluster.Allocation) {
	w.Propose(w.exit(a, cluster.ClientComplete), nil)
}

// exit is the report of an allocation that has ended by itself.
func (w *World) exit(a *cluster.Allocation, as cluster.ClientStatus) *shims.AllocClientUpdate {
	reports := []cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: as, At: w.now}}
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(w.Truth(), reports, w.Clock(), w.ids.eval)
	return m
}

// StopAlloc has the servers stop an allocation, and look at its job.
func (w *World) StopAlloc(a *cluster.Allocation) {
	eval := scheduler.JobEval(a.Job, cluster.TriggerJobRegister, w.Clock(), w.ids.eval())
	w.Propose(&shims.ApplyPlan{Plan: cluster.Plan{
		At: w.Clock(), Eval: eval, Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescNotNeeded}},
	}}, nil)
}

// SetNodeStatus tells the servers what has become of a node; of something unnoticed the
// scheduler is not told.
func (w *World) SetNodeStatus(id cluster.NodeID, s cluster.NodeStatus, unnoticed bool) {
	w.Propose(w.nodeStatus(id, s, !unnoticed), nil)
}

// nodeStatus says what has become of a node, and if it is noticed has the scheduler
// look at what that concerns.
func (w *World) nodeStatus(id cluster.NodeID, s cluster.NodeStatus, noticed bool) *shims.NodeUpdateStatus {
	m := &shims.NodeUpdateStatus{At: w.Clock(), Node: id, Status: s}
	if noticed {
		m.Evals = w.nodeEvals(id)
	}
	return m
}

// SetEligibility asks for a node to be used, or not.
func (w *World) SetEligibility(id cluster.NodeID, e cluster.Eligibility) {
	w.Propose(w.eligibility(id, e), nil)
}

func (w *World) eligibility(id cluster.NodeID, e cluster.Eligibility) *shims.NodeUpdateEligibility {
	return &shims.NodeUpdateEligibility{At: w.Clock(), Node: id, Eligibility: e, Evals: w.nodeEvals(id)}
}

// RegisterNode has a node registered, anew or again.
func (w *World) RegisterNode(n *cluster.Node) {
	w.Propose(&shims.NodeRegister{At: w.Clock(), Node: n, Evals: w.nodeEvals(n.ID)}, nil)
}

// DeleteNode asks for a node to be forgotten.
func (w *World) DeleteNode(id cluster.NodeID) {
	w.Propose(&shims.NodeDeregister{At: w.Clock(), Nodes: []cluster.NodeID{id}, Evals: w.nodeEvals(id)}, nil)
}

// nodeEvals are the evaluations that go with a change of a node. What comes between
// plan and apply is the bare write.
func (w *World) nodeEvals(id cluster.NodeID) []*cluster.Evaluation {
	if w.racing > 0 {
		return nil
	}
	return scheduler.NodeEvals(w.Truth(), id, cluster.TriggerNodeUpdate, w.Clock(), w.ids.eval)
}

// JobEvals are the evaluations that go with a job's registration.
func (w *World) JobEvals(j *cluster.Job) []*cluster.Evaluation {
	return w.jobEvals(j, cluster.TriggerJobRegister)
}

func (w *World) jobEvals(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	if w.racing > 0 {
		return nil
	}
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, w.Clock(), w.ids.eval())}
}
