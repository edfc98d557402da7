package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// RegisterNode registers a node, or updates a known one. It leaves out the devices that the cluster version
// does not have: the client registers again when the version has grown. If the known node has another secret,
// the error is [statestore.ErrNodeSecret].
func (s *Server) RegisterNode(ctx context.Context, n *cluster.Node) (cluster.Written, error) {
	if n == nil {
		return cluster.Written{}, errors.New("registering a node: node is missing")
	}
	n = n.At(s.Store().Snapshot().ClusterVersion()).Copy()
	n.Canonicalize()
	return ask(ctx, s, &shims.NodeRegister{At: time.Now(), Node: n})
}

// DeregisterNode deletes a node and ends its drain as node gone. The error is
// [statestore.ErrNodeNotFound].
func (s *Server) DeregisterNode(ctx context.Context, id cluster.NodeID) (cluster.Written, error) {
	m := &shims.NodeDeregister{At: time.Now(), Nodes: []cluster.NodeID{id}}
	response, index, err := shims.Apply(ctx, s.requests, m)
	if err == nil && len(response.Missing) > 0 {
		err = statestore.ErrNodeNotFound
	}
	return written(index, response.Evals, err)
}

// UpdateNodeStatus sets the status of a node, which follows from its heartbeats.
func (s *Server) UpdateNodeStatus(ctx context.Context, id cluster.NodeID, status cluster.NodeStatus) (cluster.Written, error) {
	return ask(ctx, s, &shims.NodeUpdateStatus{At: time.Now(), Node: id, Status: status})
}

// UpdateEligibility sets whether a scheduler may use a node. It writes nothing if the node has that
// eligibility already, and the index is zero.
func (s *Server) UpdateEligibility(ctx context.Context, id cluster.NodeID, e cluster.Eligibility) (cluster.Written, error) {
	already, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
		n := state.Node(id)
		return n != nil && n.SchedulingEligibility == e
	})
	if already || err != nil {
		return cluster.Written{}, err
	}
	return ask(ctx, s, &shims.NodeUpdateEligibility{At: time.Now(), Node: id, Eligibility: e})
}

// EvaluateNode makes evaluations of the jobs that have an allocation on a node or may use it.
// Without such jobs it writes nothing, and the index is zero. The error is
// [statestore.ErrNodeNotFound].
func (s *Server) EvaluateNode(ctx context.Context, id cluster.NodeID) (cluster.Written, error) {
	var known bool
	var evals []*cluster.Evaluation
	nothing, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
		evals = nil
		if known = state.Node(id) != nil; known {
			evals = scheduler.NodeEvals(state.WorkView(), id, cluster.TriggerNodeUpdate, time.Now(), newEvalID)
		}
		return len(evals) == 0
	})
	switch {
	case err != nil:
		return cluster.Written{}, err
	case !known:
		return cluster.Written{}, statestore.ErrNodeNotFound
	case nothing:
		return cluster.Written{}, nil
	}
	return ask(ctx, s, &shims.EvalUpdate{Evals: evals})
}

// RegisterJob registers a job or its next version, and has it scheduled. If at is not nil, the
// registered job must have that JobModifyIndex when the change is applied, and must not exist for
// zero. Otherwise the error wraps [cluster.ErrModifyIndex]. A registration of the same work makes no new
// version: the job is only scheduled again.
func (s *Server) RegisterJob(ctx context.Context, j *cluster.Job, at *uint64) (cluster.Written, error) {
	j = j.Copy()
	if j != nil {
		j.Canonicalize()
	}
	err := j.Validate()
	if err == nil {
		err = feasible.Check(j)
	}
	if err != nil {
		return cluster.Written{}, fmt.Errorf("registering a job: %w", err)
	}
	evals, unchanged := jobEval(j, cluster.TriggerJobRegister), uint64(0)
	same, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
		before := state.Job(j.Key())
		if !before.SameWork(j) || at != nil && before.CheckModifyIndex(*at) != nil {
			return false
		}
		unchanged = before.JobModifyIndex
		return true
	})
	if err != nil {
		return cluster.Written{}, err
	}
	if same {
		w, err := ask(ctx, s, &shims.EvalUpdate{Evals: evals})
		w.Unchanged = unchanged
		return w, err
	}
	m := &shims.JobRegister{Job: j, Evals: evals}
	if at != nil {
		m.EnforceIndex, m.JobModifyIndex = true, *at
	}
	return ask(ctx, s, m)
}

// EvaluateJob makes an evaluation of a job. The error is [statestore.ErrJobNotFound].
func (s *Server) EvaluateJob(ctx context.Context, key cluster.JobKey) (cluster.Written, error) {
	j, err := s.job(ctx, key)
	if err != nil {
		return cluster.Written{}, err
	}
	return ask(ctx, s, &shims.EvalUpdate{Evals: jobEval(j, cluster.TriggerJobRegister)})
}

// StopJob stops a job and makes an evaluation of it. With purge it deletes the job, its allocations
// and its evaluations. The error is [statestore.ErrJobNotFound].
func (s *Server) StopJob(ctx context.Context, key cluster.JobKey, purge bool) (cluster.Written, error) {
	m := &shims.JobDeregister{Job: key, Purge: purge}
	if !purge { // the entry has no time, so its evaluation brings it
		j, err := s.job(ctx, key)
		if err != nil {
			return cluster.Written{}, err
		}
		m.Evals = jobEval(j, cluster.TriggerJobDeregister)
	}
	return ask(ctx, s, m)
}

// StopAlloc stops an allocation, which is replaced: its node may get the replacement. One that is leaving
// or has ended is only evaluated again. The error is [statestore.ErrAllocNotFound].
func StopAlloc(ctx context.Context, s *Server, id cluster.AllocID) (cluster.Written, error) {
	var evals []*cluster.Evaluation
	at := time.Now()
	_, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
		evals = scheduler.AllocEval(state.WorkView(), id, cluster.TriggerAllocStop, at, newEvalID())
		return len(evals) == 0
	})
	switch {
	case err != nil:
		return cluster.Written{}, err
	case len(evals) == 0:
		return cluster.Written{}, statestore.ErrAllocNotFound
	}
	return ask(ctx, s, &shims.AllocStop{At: at, Alloc: id, Evals: evals})
}

// UpdateDrain starts, updates or ends the drain of a node. The time is set here,
// and so is the id of the drain if there is none. Ask again with the same Key after
// an error: a request that was applied is not applied twice.
func (s *Server) UpdateDrain(ctx context.Context, u cluster.DrainUpdate) (cluster.DrainWritten, error) {
	u.At = time.Now()
	if u.Drain == "" {
		u.Drain = cluster.DrainID(uuid.NewString())
	}
	response, index, err := shims.Apply(ctx, s.requests, &shims.NodeUpdateDrain{DrainUpdate: u})
	w, err := written(index, response.Evals, err)
	return cluster.DrainWritten{Written: w, DrainResult: response.DrainResult}, err
}

// ReportAllocs writes the reports of clients; one call may hold those of many clients. It leaves
// out reports of allocations that do not exist or are on another node. If no report is left it
// writes nothing, and the index is zero.
func (s *Server) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) (cluster.Written, error) {
	var own []cluster.AllocReport
	_, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
		own = ownReports(state, reports)
		return len(own) < len(reports) || len(own) == 0
	})
	if err != nil || len(own) == 0 {
		return cluster.Written{}, err
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

// RaiseVersion raises the cluster version. Every server of the cluster must understand it: a server
// that does not stops at the entry. So the caller asks the servers first, and admits no server that
// does not understand it. After an error that wraps [shims.ErrUnknown] the version may still rise.
func (s *Server) RaiseVersion(ctx context.Context, v cluster.Version) (cluster.Written, error) {
	return ask(ctx, s, &shims.RaiseClusterVersion{Version: v})
}

// ask proposes a message and waits for it.
func ask(ctx context.Context, s *Server, m shims.Request[shims.ChangeApplied]) (cluster.Written, error) {
	response, index, err := shims.Apply(ctx, s.requests, m)
	return written(index, response.Evals, err)
}

// written is the result of an entry, unless it failed.
func written(index uint64, evals []cluster.EvalID, err error) (cluster.Written, error) {
	if err != nil {
		return cluster.Written{}, err
	}
	return cluster.Written{Index: index, Evals: evals}, nil
}

// certainly reports whether a condition holds in the newest state. A true condition is checked
// again in a state that shows every acknowledged write: the state of a new leader may not show them
// yet, and that of a deposed leader never will.
func (s *Server) certainly(ctx context.Context, holds func(*statestore.Snapshot) bool) (bool, error) {
	if !holds(s.Store().Snapshot()) {
		return false, nil
	}
	if err := s.Consistent(ctx); err != nil {
		return false, err
	}
	return holds(s.Store().Snapshot()), nil
}

// job returns the job, or [statestore.ErrJobNotFound] if the newest state does not have it.
func (s *Server) job(ctx context.Context, key cluster.JobKey) (j *cluster.Job, err error) {
	missing, err := s.certainly(ctx, func(state *statestore.Snapshot) bool {
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
