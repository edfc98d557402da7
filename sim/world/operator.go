package world

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Commit puts a message into the log at once, as if a step had. It is for what a
// world begins with; what happens later is asked for, and takes a step.
func (w *World) Commit(m shims.Message) error {
	answer, err := w.log.commit(m)
	if err != nil {
		return err
	}
	if refused, is := answer.Response.(shims.Refused); is {
		return fmt.Errorf("%s refused: %w", m.Type(), refused.Err)
	}
	return answer.Err
}

// Propose asks the leader for a write. reply is told what became of it; nil if
// nobody wants to know.
//
// Between plan and apply of another write, see [World.Before], it is committed at
// once.
func (w *World) Propose(m shims.Message, reply func(shims.Answer)) {
	if !w.racing {
		w.log.propose(nil, FromOperator, m, reply)
		return
	}
	answer, err := w.log.commit(m)
	if err != nil {
		answer = shims.Answer{Outcome: drainer.Rejected, Err: err}
	}
	if reply != nil {
		reply(answer)
	}
}

// NewNode returns a ready node with room for anything. Change it before it is
// registered.
func NewNode(id cluster.NodeID) *cluster.Node {
	plenty := cluster.Resources{CPU: math.MaxInt32, MemoryMB: math.MaxInt32, DiskMB: math.MaxInt32}
	return &cluster.Node{ID: id, Name: string(id), Status: cluster.NodeReady, Resources: plenty}
}

// NewJob returns a job with one group, named as the job, that asks for nothing.
// Change it before it is registered.
func NewJob(t cluster.JobType, id cluster.JobID, count int) *cluster.Job {
	j := &cluster.Job{ID: id, Type: t, TaskGroups: []*cluster.TaskGroup{NewGroup(string(id), count)}}
	j.Canonicalize()
	return j
}

// NewGroup returns a group of one task that asks for nothing.
func NewGroup(name string, count int) *cluster.TaskGroup {
	return &cluster.TaskGroup{Name: name, Count: count, Tasks: []*cluster.Task{{Name: name}}}
}

// NewAlloc returns an allocation of the job's group that runs well on the node,
// and has for long. index is its place in the group.
func (w *World) NewAlloc(j *cluster.Job, group string, index int, node cluster.NodeID) *cluster.Allocation {
	a := &cluster.Allocation{
		ID: w.ids.alloc(), Namespace: j.Namespace, JobID: j.ID, TaskGroup: group, Job: j,
		Name:   fmt.Sprintf("%s.%s[%d]", j.ID, group, index),
		NodeID: node, NodeName: string(node), Resources: j.Group(group).Resources(),
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		CreateTime: w.now.Add(-time.Hour),
	}
	if j.Type == cluster.JobService || j.Type == cluster.JobSystem {
		healthy := true
		a.DeploymentStatus = &cluster.DeploymentStatus{Healthy: &healthy, Timestamp: a.CreateTime}
	}
	return a
}

// Begin writes what a world begins with, past all that a scheduler or a client
// would ask first. Nobody is told but those who read the state. do is called for
// each server, some much later, and does the same each time.
func (w *World) Begin(do func(*statestore.Txn) error) error {
	w.log.entries = append(w.log.entries, logEntry{begin: do})
	_, err := w.leader.server.machine.catchUp(w.log.entries)
	return err
}

// Placement is a job with allocations, on nodes of the caller's choice.
type Placement struct {
	Job    *cluster.Job
	Allocs []*cluster.Allocation
}

// Place begins with a job and allocations of it.
func (w *World) Place(j *cluster.Job, allocs ...*cluster.Allocation) error {
	return w.PlaceAll([]Placement{{j, allocs}})
}

// placementsAtOnce is how many jobs are written in one transaction: beyond some
// thousand rows each costs many times more.
const placementsAtOnce = 10

// PlaceAll begins with many jobs at once.
func (w *World) PlaceAll(placements []Placement) error {
	at := w.now
	var err error
	for chunk := range slices.Chunk(placements, placementsAtOnce) {
		err = errors.Join(err, w.Begin(func(txn *statestore.Txn) error {
			for _, p := range chunk {
				if err := p.write(txn, at); err != nil {
					return fmt.Errorf("placing %s: %w", p.Job.Key(), err)
				}
			}
			return nil
		}))
	}
	for _, p := range placements {
		for _, a := range p.Allocs {
			w.clients.clients.Changed(a.NodeID)
		}
	}
	return err
}

// PlaceOrphans begins with allocations whose job is not there.
func (w *World) PlaceOrphans(allocs ...*cluster.Allocation) error {
	at := w.now
	return w.Begin(func(txn *statestore.Txn) error {
		dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: allocs})
		if err == nil && len(dropped) > 0 {
			err = fmt.Errorf("placing orphans: %v were refused", dropped)
		}
		return err
	})
}

func (p Placement) write(txn *statestore.Txn, at time.Time) error {
	if err := txn.UpsertJob(p.Job); err != nil {
		return err
	}
	dropped, err := txn.ApplyPlan(&cluster.Plan{At: at, Places: p.Allocs})
	if err == nil && len(dropped) > 0 {
		err = fmt.Errorf("%v were refused", dropped)
	}
	return err
}

// NewAllocID makes the id of an allocation.
func (w *World) NewAllocID() cluster.AllocID { return w.ids.alloc() }

// JobEvals are the evaluations that go with a job's registration.
func (w *World) JobEvals(j *cluster.Job) []*cluster.Evaluation {
	return w.jobEvals(j, cluster.TriggerJobRegister)
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

// StopAlloc has the servers stop an allocation, and look at its job.
func (w *World) StopAlloc(a *cluster.Allocation) {
	eval := scheduler.JobEval(a.Job, cluster.TriggerJobRegister, w.Clock(), w.ids.eval())
	w.Propose(&shims.ApplyPlan{Plan: cluster.Plan{
		At: w.Clock(), Eval: eval, Stops: []cluster.PlanStop{{Alloc: a.ID, Description: cluster.DescNotNeeded}},
	}}, nil)
}

// SetNodeStatus tells the servers what has become of a node.
func (w *World) SetNodeStatus(id cluster.NodeID, s cluster.NodeStatus) {
	w.SetNodeStatusUnnoticed(id, s, false)
}

// SetNodeStatusUnnoticed is SetNodeStatus, of which the scheduler is told or not.
func (w *World) SetNodeStatusUnnoticed(id cluster.NodeID, s cluster.NodeStatus, unnoticed bool) {
	m := &shims.NodeUpdateStatus{At: w.Clock(), Node: id, Status: s}
	if !unnoticed {
		m.Evals = w.nodeEvals(id)
	}
	w.Propose(m, nil)
}

// SetEligibility asks for a node to be used, or not.
func (w *World) SetEligibility(id cluster.NodeID, e cluster.Eligibility) {
	w.Propose(&shims.NodeUpdateEligibility{At: w.Clock(), Node: id, Eligibility: e, Evals: w.nodeEvals(id)}, nil)
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
	if w.racing {
		return nil
	}
	return scheduler.NodeEvals(w.Truth(), id, cluster.TriggerNodeUpdate, w.Clock(), w.ids.eval)
}

func (w *World) jobEvals(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	if w.racing {
		return nil
	}
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, w.Clock(), w.ids.eval())}
}
