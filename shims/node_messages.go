package shims

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// NodeRegister registers a node, or brings what a known one says of itself up to
// date. What belongs to the servers (drain, eligibility, events) stays as it is.
type NodeRegister struct {
	At   time.Time
	Node *cluster.Node
	// Evals are the evaluations that new capacity calls for, or nil.
	Evals []*cluster.Evaluation
}

func (*NodeRegister) Type() MessageType { return NodeRegisterType }
func (*NodeRegister) responds(Done)     {}

func (m *NodeRegister) check() error {
	switch {
	case m.Node == nil:
		return errors.New("node is missing")
	case m.Node.Drain != nil:
		return errors.New("a registration cannot carry a drain")
	}
	return checkEvals(m.Evals)
}

func (m *NodeRegister) apply(txn *statestore.Txn) Response {
	if err := txn.UpsertNode(m.Node, m.At); err != nil {
		return Refused{Err: err}
	}
	return done(txn.UpsertEvals(m.Evals))
}

// NodeDeregister deletes nodes. Their running drains end as node gone.
type NodeDeregister struct {
	At    time.Time
	Nodes []cluster.NodeID
	// Evals are the evaluations of jobs with allocations on the nodes, or nil.
	Evals []*cluster.Evaluation
}

func (*NodeDeregister) Type() MessageType          { return NodeDeregisterType }
func (*NodeDeregister) responds(NodesDeregistered) {}
func (m *NodeDeregister) check() error             { return checkEvals(m.Evals) }

func (m *NodeDeregister) apply(txn *statestore.Txn) Response {
	missing := txn.DeleteNodes(m.Nodes, m.At)
	if err := txn.UpsertEvals(m.Evals); err != nil {
		return Refused{Err: err}
	}
	return NodesDeregistered{Missing: missing}
}

// NodeUpdateStatus sets what the servers know of a node's heartbeat.
type NodeUpdateStatus struct {
	At     time.Time
	Node   cluster.NodeID
	Status cluster.NodeStatus
	// Evals are the evaluations of jobs with allocations on the node, and of
	// those that new capacity calls for, or nil.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateStatus) Type() MessageType { return NodeUpdateStatusType }
func (*NodeUpdateStatus) responds(Done)     {}
func (m *NodeUpdateStatus) check() error    { return checkEvals(m.Evals) }

func (m *NodeUpdateStatus) apply(txn *statestore.Txn) Response {
	if err := txn.UpdateNodeStatus(m.Node, m.Status, m.At); err != nil {
		return Refused{Err: err}
	}
	return done(txn.UpsertEvals(m.Evals))
}

// NodeUpdateEligibility says whether a scheduler may use a node. A draining node
// cannot become eligible.
type NodeUpdateEligibility struct {
	At          time.Time
	Node        cluster.NodeID
	Eligibility cluster.Eligibility
	// Evals are the evaluations that new capacity calls for, or nil.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateEligibility) Type() MessageType { return NodeUpdateEligibilityType }
func (*NodeUpdateEligibility) responds(Done)     {}
func (m *NodeUpdateEligibility) check() error    { return checkEvals(m.Evals) }

func (m *NodeUpdateEligibility) apply(txn *statestore.Txn) Response {
	if err := txn.UpdateNodeEligibility(m.Node, m.Eligibility, m.At); err != nil {
		return Refused{Err: err}
	}
	return done(txn.UpsertEvals(m.Evals))
}

// NodeUpdateDrain starts, updates or cancels the drain of one node.
type NodeUpdateDrain struct {
	statestore.DrainUpdate
	// Evals are the evaluations that a cancelled drain calls for, or nil. They
	// are dropped if the request changes nothing.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateDrain) Type() MessageType     { return NodeUpdateDrainType }
func (*NodeUpdateDrain) responds(DrainUpdated) {}
func (m *NodeUpdateDrain) check() error        { return checkEvals(m.Evals) }

func (m *NodeUpdateDrain) apply(txn *statestore.Txn) Response {
	updated, err := txn.UpdateNodeDrain(m.DrainUpdate)
	if err != nil {
		return Refused{Err: err}
	}
	if !updated.Repeated {
		if err := txn.UpsertEvals(m.Evals); err != nil {
			return Refused{Err: err}
		}
	}
	return DrainUpdated{updated}
}
