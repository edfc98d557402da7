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
	// Evals are the evaluations that the entry made, or nil: of the jobs that the
	// change concerned when it was applied.
	Evals []cluster.EvalID
}

// DrainWritten is what became of a request about a drain.
type DrainWritten struct {
	Written
	statestore.DrainResult
}

// RegisterNode registers a node, or what a known one now says of itself. One that
// is known by another secret is somebody else's, and the error is
// [statestore.ErrNodeSecret].
func (s *Server) RegisterNode(ctx context.Context, n *cluster.Node) (Written, error) {
	if n == nil {
		return Written{}, errors.New("registering a node: node is missing")
	}
	n = n.Copy()
	n.Canonicalize()
	return ask(ctx, s, &shims.NodeRegister{At: time.Now(), Node: n})
}

// DeregisterNode deletes a node and ends its drain as node gone. The error is
// [statestore.ErrNodeNotFound].
func (s *Server) DeregisterNode(ctx context.Context, id cluster.NodeID) (Written, error) {
	m := &shims.NodeDeregister{At: time.Now(), Nodes: []cluster.NodeID{id}}
	response, index, err := shims.Apply(ctx, s.requests, m)
	if err == nil && len(response.Missing) > 0 {
		err = statestore.ErrNodeNotFound
	}
	return written(index, response.Evals, err)
}

// UpdateNodeStatus sets what is known of a node's heartbeat.
func (s *Server) UpdateNodeStatus(ctx context.Context, id cluster.NodeID, status cluster.NodeStatus) (Written, error) {
	return ask(ctx, s, &shims.NodeUpdateStatus{At: time.Now(), Node: id, Status: status})
}

// UpdateEligibility says whether a scheduler may use a node. One that is so
// already is not written to, and the index is zero.
func (s *Server) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (Written, error) {
	already, err := s.surely(ctx, func(state *statestore.Snapshot) bool {
		n := state.Node(id)
		return n != nil && n.SchedulingEligibility == e
	})
	if already || err != nil {
		return Written{}, err
	}
	return ask(ctx, s, &shims.NodeUpdateEligibility{At: time.Now(), Node: id, Eligibility: e})
}

// EvaluateNode has the jobs looked at that have something on a node or may use
// it. Without such jobs nothing is written, and the index is zero. The error is
// [statestore.ErrNodeNotFound].
func (s *Server) EvaluateNode(ctx context.Context, id cluster.NodeID) (Written, error) {
	var known bool
	var evals []*cluster.Evaluation
	nothing, err := s.surely(ctx, func(state *statestore.Snapshot) bool {
		evals = nil
		if known = state.Node(id) != nil; known {
			evals = scheduler.NodeEvals(state, id, cluster.TriggerNodeUpdate, time.Now(), newEvalID)
		}
		return len(evals) == 0
	})
	switch {
	case err != nil:
		return Written{}, err
	case !known:
		return Written{}, statestore.ErrNodeNotFound
	case nothing:
		return Written{}, nil
	}
	return ask(ctx, s, &shims.EvalUpdate{Evals: evals})
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
	return ask(ctx, s, &shims.JobRegister{Job: j, Evals: jobEval(j, cluster.TriggerJobRegister)})
}

// EvaluateJob has a job looked at. The error is [statestore.ErrJobNotFound].
func (s *Server) EvaluateJob(ctx context.Context, key cluster.JobKey) (Written, error) {
	j, err := s.job(ctx, key)
	if err != nil {
		return Written{}, err
	}
	return ask(ctx, s, &shims.EvalUpdate{Evals: jobEval(j, cluster.TriggerJobRegister)})
}

// StopJob stops a job and has that seen to, or with purge deletes it with all
// that hangs on it. The error is [statestore.ErrJobNotFound].
func (s *Server) StopJob(ctx context.Context, key cluster.JobKey, purge bool) (Written, error) {
	m := &shims.JobDeregister{Job: key, Purge: purge}
	if !purge { // the entry has no time, so its evaluation brings it
		j, err := s.job(ctx, key)
		if err != nil {
			return Written{}, err
		}
		m.Evals = jobEval(j, cluster.TriggerJobDeregister)
	}
	return ask(ctx, s, m)
}

// UpdateDrain starts, updates or ends the drain of a node. The time is set here,
// and so is the id of the drain if there is none. Ask again with the same Key after
// an error: a request that was applied is not applied twice.
func (s *Server) UpdateDrain(ctx context.Context, u statestore.DrainUpdate) (DrainWritten, error) {
	u.At = time.Now()
	if u.Drain == "" {
		u.Drain = cluster.DrainID(uuid.NewString())
	}
	response, index, err := shims.Apply(ctx, s.requests, &shims.NodeUpdateDrain{DrainUpdate: u})
	w, err := written(index, response.Evals, err)
	return DrainWritten{Written: w, DrainResult: response.DrainResult}, err
}

// ReportAllocs takes what clients report of their allocations, many clients in
// one. What is said of an allocation that does not exist, or is another node's, is
// passed over; if nothing is left nothing is written, and the index is zero.
func (s *Server) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (Written, error) {
	var own []cluster.AllocReport
	_, err := s.surely(ctx, func(state *statestore.Snapshot) bool {
		own = ownReports(state, reports)
		return len(own) < len(reports) || len(own) == 0
	})
	if err != nil || len(own) == 0 {
		return Written{}, err
	}
	return ask(ctx, s, &shims.AllocClientUpdate{Reports: own})
}

// ownReports are the reports of allocations by the nodes that they are on.
func ownReports(state *statestore.Snapshot, reports []cluster.AllocReport) (own []cluster.AllocReport) {
	for _, r := range reports {
		if a := state.Alloc(r.Alloc); a != nil && a.NodeID == r.Node {
			own = append(own, r)
		}
	}
	return own
}

// RaiseVersion raises the cluster version. Every server of the cluster must understand it:
// one that does not stops at the entry. So the caller asks them first, and lets no server
// in that does not understand it. An error that wraps [shims.ErrUnknown] may mean that the
// version rises all the same.
func (s *Server) RaiseVersion(ctx context.Context, v cluster.Version) (Written, error) {
	return ask(ctx, s, &shims.RaiseClusterVersion{Version: v})
}

// ask proposes a message and waits for it.
func ask(ctx context.Context, s *Server, m shims.Request[shims.ChangeApplied]) (Written, error) {
	response, index, err := shims.Apply(ctx, s.requests, m)
	return written(index, response.Evals, err)
}

// written is what is said of an entry, unless it failed.
func written(index uint64, evals []cluster.EvalID, err error) (Written, error) {
	if err != nil {
		return Written{}, err
	}
	return Written{Index: index, Evals: evals}, nil
}

// surely reports whether something holds of the state that is to be answered
// without an entry. Where it seems so, it is looked at again in a state that shows
// whatever was acknowledged before: that of a leader of a new term may not yet, and
// that of one that was deposed and does not know it never will.
func (s *Server) surely(ctx context.Context, holds func(*statestore.Snapshot) bool) (bool, error) {
	if !holds(s.Store().Snapshot()) {
		return false, nil
	}
	if err := s.Consistent(ctx); err != nil {
		return false, err
	}
	return holds(s.Store().Snapshot()), nil
}

// job is the job, or the error that there surely is none.
func (s *Server) job(ctx context.Context, key cluster.JobKey) (j *cluster.Job, err error) {
	missing, err := s.surely(ctx, func(state *statestore.Snapshot) bool {
		j = state.Job(key)
		return j == nil
	})
	if missing {
		err = statestore.ErrJobNotFound
	}
	return j, err
}

func jobEval(j *cluster.Job, trigger cluster.EvalTrigger) []*cluster.Evaluation {
	return []*cluster.Evaluation{scheduler.JobEval(j, trigger, time.Now(), newEvalID())}
}

func newEvalID() cluster.EvalID { return cluster.EvalID(uuid.NewString()) }
