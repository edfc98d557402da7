package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Written is what became of a request.
type Written struct {
	// Index is the raft index of its entry, or zero if none was needed.
	Index uint64
	// Evals are the evaluations that the entry made, or nil.
	Evals []cluster.EvalID
}

// DrainWritten is what became of a request about a drain.
type DrainWritten struct {
	Written
	statestore.DrainUpdated
}

// RegisterNode registers a node, or what a known one now says of itself, and
// makes the evaluations that its capacity calls for.
func (s *Server) RegisterNode(ctx context.Context, n *cluster.Node) (Written, error) {
	if n == nil {
		return Written{}, errors.New("registering a node: node is missing")
	}
	now := time.Now()
	n = n.Copy()
	n.Canonicalize()
	evals := s.nodeEvals(n.ID, n, now)
	return ask(ctx, s, &shims.NodeRegister{At: now, Node: n, Evals: evals}, evals)
}

// DeregisterNode deletes a node, ends its drain as node gone, and has the jobs
// looked at that had something on it. The error is [statestore.ErrNodeNotFound].
func (s *Server) DeregisterNode(ctx context.Context, id cluster.NodeID) (Written, error) {
	now := time.Now()
	m := &shims.NodeDeregister{At: now, Nodes: []cluster.NodeID{id}, Evals: s.nodeEvals(id, nil, now)}
	response, index, err := shims.Ask(ctx, s.requests, m)
	if err == nil && len(response.Missing) > 0 {
		err = statestore.ErrNodeNotFound
	}
	return written(index, m.Evals, err)
}

// UpdateNodeStatus sets what is known of a node's heartbeat, and has the jobs
// looked at that this concerns.
func (s *Server) UpdateNodeStatus(ctx context.Context, id cluster.NodeID, status cluster.NodeStatus) (Written, error) {
	now := time.Now()
	m := &shims.NodeUpdateStatus{At: now, Node: id, Status: status}
	if n := s.Store().Snapshot().Node(id).Copy(); n != nil {
		n.Status = status
		m.Evals = s.nodeEvals(id, n, now)
	}
	return ask(ctx, s, m, m.Evals)
}

// UpdateEligibility says whether a scheduler may use a node. One that becomes
// eligible has the jobs looked at that may use it; one that is so already is not
// written to, and the index is zero.
func (s *Server) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (Written, error) {
	now := time.Now()
	m := &shims.NodeUpdateEligibility{At: now, Node: id, Eligibility: e}
	if n := s.Store().Snapshot().Node(id).Copy(); n != nil {
		if n.SchedulingEligibility == e {
			return Written{}, nil
		}
		if n.SchedulingEligibility = e; e == cluster.NodeEligible {
			m.Evals = s.nodeEvals(id, n, now)
		}
	}
	return ask(ctx, s, m, m.Evals)
}

// EvaluateNode has the jobs looked at that have something on a node or may use
// it. Without such jobs nothing is written, and the index is zero. The error is
// [statestore.ErrNodeNotFound].
func (s *Server) EvaluateNode(ctx context.Context, id cluster.NodeID) (Written, error) {
	n := s.Store().Snapshot().Node(id)
	if n == nil {
		return Written{}, statestore.ErrNodeNotFound
	}
	evals := s.nodeEvals(id, n, time.Now())
	if len(evals) == 0 {
		return Written{}, nil
	}
	return ask(ctx, s, &shims.EvalUpdate{Evals: evals}, evals)
}

// RegisterJob registers a job or its next version, and has it scheduled.
func (s *Server) RegisterJob(ctx context.Context, j *cluster.Job) (Written, error) {
	j = j.Copy()
	if j != nil {
		j.Canonicalize()
	}
	if err := j.Validate(); err != nil {
		return Written{}, fmt.Errorf("registering a job: %w", err)
	}
	evals := jobEval(j, cluster.TriggerJobRegister)
	return ask(ctx, s, &shims.JobRegister{Job: j, Evals: evals}, evals)
}

// EvaluateJob has a job looked at. The error is [statestore.ErrJobNotFound].
func (s *Server) EvaluateJob(ctx context.Context, key cluster.JobKey) (Written, error) {
	j := s.Store().Snapshot().Job(key)
	if j == nil {
		return Written{}, statestore.ErrJobNotFound
	}
	evals := jobEval(j, cluster.TriggerJobRegister)
	return ask(ctx, s, &shims.EvalUpdate{Evals: evals}, evals)
}

// StopJob stops a job and has that seen to, or with purge deletes it with all
// that hangs on it. The error is [statestore.ErrJobNotFound].
func (s *Server) StopJob(ctx context.Context, key cluster.JobKey, purge bool) (Written, error) {
	m := &shims.JobDeregister{Job: key, Purge: purge}
	if j := s.Store().Snapshot().Job(key); j != nil && !purge {
		m.Evals = jobEval(j, cluster.TriggerJobDeregister)
	}
	return ask(ctx, s, m, m.Evals)
}

// UpdateDrain starts, updates or ends the drain of a node. The time is set here,
// and so is the id of the drain if there is none. A node that returns has its
// jobs looked at. Ask again with the same Key after an error: a request that was
// applied is not applied twice.
func (s *Server) UpdateDrain(ctx context.Context, u statestore.DrainUpdate) (DrainWritten, error) {
	u.At = time.Now()
	if u.Drain == "" {
		u.Drain = cluster.DrainID(uuid.NewString())
	}
	m := &shims.NodeUpdateDrain{DrainUpdate: u}
	if n := s.Store().Snapshot().Node(u.Node).Copy(); n != nil && u.Spec == nil {
		n.Drain = nil
		if u.MarkEligible {
			n.SchedulingEligibility = cluster.NodeEligible
		}
		m.Evals = s.nodeEvals(n.ID, n, u.At)
	}
	response, index, err := shims.Ask(ctx, s.requests, m)
	if response.Repeated {
		m.Evals = nil
	}
	w, err := written(index, m.Evals, err)
	return DrainWritten{Written: w, DrainUpdated: response.DrainUpdated}, err
}

// ReportAllocs takes what clients report of their allocations, many clients in
// one, and has the jobs looked at of which something ended that should run.
func (s *Server) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (Written, error) {
	evals := scheduler.ReportEvals(s.Store().Snapshot(), reports, time.Now(), newEvalID)
	return ask(ctx, s, &shims.AllocClientUpdate{Reports: reports, Evals: evals}, evals)
}

// ask proposes a message that makes evaluations, and waits for it.
func ask(ctx context.Context, s *Server, m shims.Request[shims.Done], evals []*cluster.Evaluation) (Written, error) {
	_, index, err := shims.Ask(ctx, s.requests, m)
	return written(index, evals, err)
}

// written is what is said of an entry that made evaluations, unless it failed.
func written(index uint64, evals []*cluster.Evaluation, err error) (Written, error) {
	if err != nil {
		return Written{}, err
	}
	w := Written{Index: index}
	for _, e := range evals {
		w.Evals = append(w.Evals, e.ID)
	}
	return w, nil
}

func jobEval(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, time.Now(), newEvalID())}
}

// nodeEvals are the evaluations that a node calls for that is about to be as n,
// or about to be gone if n is nil.
func (s *Server) nodeEvals(id cluster.NodeID, n *cluster.Node, now time.Time) []*cluster.Evaluation {
	view := viewWith{View: s.Store().Snapshot(), id: id, node: n}
	return scheduler.NodeEvals(view, id, cluster.TriggerNodeUpdate, now, newEvalID)
}

// viewWith is a view in which one node is as it is about to be.
type viewWith struct {
	scheduler.View
	id   cluster.NodeID
	node *cluster.Node // or nil
}

func (v viewWith) Node(id cluster.NodeID) *cluster.Node {
	if id == v.id {
		return v.node
	}
	return v.View.Node(id)
}

func newEvalID() cluster.EvalID { return cluster.EvalID(uuid.NewString()) }
