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

// RegisterNode registers a node, or what a known one now says of itself, and
// makes the evaluations that its capacity calls for.
func (s *Server) RegisterNode(ctx context.Context, n *cluster.Node) error {
	if n == nil {
		return errors.New("registering a node: node is missing")
	}
	now := time.Now()
	n = n.Copy()
	n.Canonicalize()
	_, _, err := shims.Ask(ctx, s.requests, &shims.NodeRegister{At: now, Node: n, Evals: s.nodeEvals(n, now)})
	return err
}

// UpdateNodeStatus sets what is known of a node's heartbeat, and has the jobs
// looked at that this concerns.
func (s *Server) UpdateNodeStatus(ctx context.Context, id cluster.NodeID, status cluster.NodeStatus) error {
	now := time.Now()
	m := &shims.NodeUpdateStatus{At: now, Node: id, Status: status}
	if n := s.Store().Snapshot().Node(id).Copy(); n != nil {
		n.Status = status
		m.Evals = s.nodeEvals(n, now)
	}
	_, _, err := shims.Ask(ctx, s.requests, m)
	return err
}

// RegisterJob registers a job or its next version, and has it scheduled.
func (s *Server) RegisterJob(ctx context.Context, j *cluster.Job) error {
	j = j.Copy()
	if j != nil {
		j.Canonicalize()
	}
	if err := j.Validate(); err != nil {
		return fmt.Errorf("registering a job: %w", err)
	}
	eval := scheduler.JobEval(j, cluster.TriggerJobRegister, time.Now(), newEvalID())
	_, _, err := shims.Ask(ctx, s.requests, &shims.JobRegister{Job: j, Evals: []*cluster.Evaluation{eval}})
	return err
}

// UpdateDrain starts, updates or ends the drain of a node. The time is set here,
// and so is the id of the drain if there is none. A node that returns has its
// jobs looked at. Ask again with the same Key after an error: a request that was
// applied is not applied twice.
func (s *Server) UpdateDrain(ctx context.Context, u statestore.DrainUpdate) (statestore.DrainUpdated, error) {
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
		m.Evals = s.nodeEvals(n, u.At)
	}
	response, _, err := shims.Ask(ctx, s.requests, m)
	return response.DrainUpdated, err
}

// ReportAllocs takes what clients report of their allocations, many clients in
// one, and has the jobs looked at of which something ended that should run.
func (s *Server) ReportAllocs(ctx context.Context, reports []cluster.AllocReport) error {
	m := &shims.AllocClientUpdate{Reports: reports}
	m.Evals = scheduler.ReportEvals(s.Store().Snapshot(), reports, time.Now(), newEvalID)
	_, _, err := shims.Ask(ctx, s.requests, m)
	return err
}

// nodeEvals are the evaluations that a node calls for that is about to be as n.
func (s *Server) nodeEvals(n *cluster.Node, now time.Time) []*cluster.Evaluation {
	view := viewWith{View: s.Store().Snapshot(), node: n}
	return scheduler.NodeEvals(view, n.ID, cluster.TriggerNodeUpdate, now, newEvalID)
}

// viewWith is a view in which one node is as it is about to be.
type viewWith struct {
	scheduler.View
	node *cluster.Node
}

func (v viewWith) Node(id cluster.NodeID) *cluster.Node {
	if id == v.node.ID {
		return v.node
	}
	return v.View.Node(id)
}

func newEvalID() cluster.EvalID { return cluster.EvalID(uuid.NewString()) }
