package world

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// Requests builds the writes of operators and clients, with their evaluations. A write between the
// plan and the apply of another one has no evaluations.
type Requests struct{ world *World }

// Drain is a request to drain a node, or to end its drain if the spec is nil. It has a new drain
// id.
func (r *Requests) Drain(id cluster.NodeID, spec *cluster.DrainSpec, key string) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: id, Spec: spec, Drain: r.world.ids.drain(), At: r.world.Clock(), Key: key,
	}}
}

// Cancel is a request to end a node's drain. With eligible it also makes the node eligible, and with undo if it was
// before.
func (r *Requests) Cancel(id cluster.NodeID, eligible, undo bool, key string) *shims.NodeUpdateDrain {
	m := r.Drain(id, nil, key)
	m.MarkEligible = eligible
	if undo && r.world.Truth().ClusterVersion() >= cluster.VersionOfPauses {
		m.Undo = true
	}
	if eligible {
		m.Evals = r.nodeEvals(id)
	}
	return m
}

// Pause pauses or resumes the drain of a node, or all drains if the id is empty.
func (r *Requests) Pause(id cluster.NodeID, pause bool) *shims.PauseDrains {
	return &shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: id, Pause: pause, At: r.world.Clock(), By: "operator"}}
}

// Again repeats a drain request with its key.
func (r *Requests) Again(m *shims.NodeUpdateDrain) *shims.NodeUpdateDrain {
	if m.Spec == nil {
		return r.Cancel(m.Node, m.MarkEligible, m.Undo, m.Key)
	}
	return r.Drain(m.Node, m.Spec, m.Key)
}

// Register canonicalizes and registers a job.
func (r *Requests) Register(j *cluster.Job) *shims.JobRegister {
	j.Canonicalize()
	return &shims.JobRegister{Job: j, Evals: r.jobEvals(j, cluster.TriggerJobRegister)}
}

// Stop stops a job. With purge it deletes the job and carries no evaluation.
func (r *Requests) Stop(j *cluster.Job, purge bool) *shims.JobDeregister {
	m := &shims.JobDeregister{Job: j.Key(), Purge: purge}
	switch {
	case !purge:
		m.Evals = r.jobEvals(j, cluster.TriggerJobDeregister)
	case r.world.Truth().ClusterVersion() >= cluster.VersionOfConfirmation:
		m.At = r.world.Clock()
	}
	return m
}

// StopAlloc is a plan that stops an allocation. The servers refuse it: they have no such
// evaluation.
func (r *Requests) StopAlloc(a *cluster.Allocation) *shims.ApplyPlan {
	return &shims.ApplyPlan{Plan: cluster.Plan{
		At: r.world.Clock(), Eval: scheduler.JobEval(a.Job, cluster.TriggerJobRegister, r.world.Clock(), r.world.ids.eval()),
		Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescNotNeeded}},
	}}
}

// Exit reports that an allocation has ended by itself.
func (r *Requests) Exit(a *cluster.Allocation, as cluster.ClientStatus) *shims.AllocClientUpdate {
	reports := []cluster.AllocReport{{Alloc: a.ID, Node: a.NodeID, ClientStatus: as, At: r.world.now}}
	return &shims.AllocClientUpdate{At: r.world.Clock(), Reports: reports, Evals: scheduler.ReportEvals(r.world.Truth().WorkView(), reports, r.world.Clock(), r.world.ids.eval)}
}

// NodeStatus sets the status of a node, with evaluations of its jobs unless unnoticed is set.
func (r *Requests) NodeStatus(id cluster.NodeID, s cluster.NodeStatus, unnoticed bool) *shims.NodeUpdateStatus {
	m := &shims.NodeUpdateStatus{At: r.world.Clock(), Node: id, Status: s}
	if !unnoticed {
		m.Evals = r.nodeEvals(id)
	}
	return m
}

// Eligibility sets the eligibility of a node.
func (r *Requests) Eligibility(id cluster.NodeID, e cluster.Eligibility) *shims.NodeUpdateEligibility {
	return &shims.NodeUpdateEligibility{At: r.world.Clock(), Node: id, Eligibility: e, Evals: r.nodeEvals(id)}
}

// RegisterNode registers a node with the fields that the cluster version has.
func (r *Requests) RegisterNode(n *cluster.Node) *shims.NodeRegister {
	return &shims.NodeRegister{At: r.world.Clock(), Node: n.At(r.world.Truth().ClusterVersion()), Evals: r.nodeEvals(n.ID)}
}

// DeleteNode deletes a node.
func (r *Requests) DeleteNode(id cluster.NodeID) *shims.NodeDeregister {
	return &shims.NodeDeregister{At: r.world.Clock(), Nodes: []cluster.NodeID{id}, Evals: r.nodeEvals(id)}
}

// nodeEvals returns the evaluations for a change of a node.
func (r *Requests) nodeEvals(id cluster.NodeID) []*cluster.Evaluation {
	if r.world.Log.hookDepth > 0 {
		return nil
	}
	return scheduler.NodeEvals(r.world.Truth().WorkView(), id, cluster.TriggerNodeUpdate, r.world.Clock(), r.world.ids.eval)
}

// jobEvals returns the evaluations for a change of a job.
func (r *Requests) jobEvals(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	if r.world.Log.hookDepth > 0 {
		return nil
	}
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, r.world.Clock(), r.world.ids.eval())}
}
