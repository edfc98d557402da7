package shims

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// NodeRegister registers a node, or updates a registered one. The fields that servers own
// (drain, eligibility, events) stay.
type NodeRegister struct {
	At   time.Time
	Node *cluster.Node
	// Evals are evaluations to write, or nil. The FSM adds the other required ones.
	Evals []*cluster.Evaluation
}

func (*NodeRegister) Type() MessageType      { return NodeRegisterType }
func (*NodeRegister) responds(ChangeApplied) {}

// needs is the version of the node's fields.
func (m *NodeRegister) needs() cluster.Version { return m.Node.NeededVersion() }

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
	return done(evaluate(txn, m.Evals, nodeEvals(txn, m.At, m.Node.ID)))
}

// NodeDeregister deletes nodes. Their running drains end as node gone.
type NodeDeregister struct {
	At    time.Time
	Nodes []cluster.NodeID
	// Evals are evaluations to write, or nil. The FSM adds those of other jobs with
	// allocations on the nodes.
	Evals []*cluster.Evaluation
}

func (*NodeDeregister) Type() MessageType          { return NodeDeregisterType }
func (*NodeDeregister) responds(NodesDeregistered) {}
func (m *NodeDeregister) check() error             { return checkEvals(m.Evals) }

func (m *NodeDeregister) apply(txn *statestore.Txn) Response {
	missing := txn.DeleteNodes(m.Nodes, m.At)
	evals, err := evaluate(txn, m.Evals, nodeEvals(txn, m.At, m.Nodes...))
	if err != nil {
		return Refused{Err: err}
	}
	return NodesDeregistered{Missing: missing, Evals: evals}
}

// NodeUpdateStatus sets a node's status. From [cluster.VersionOfConfirmation] on, the status
// disconnected means that the node sends no heartbeats. The FSM then writes the status of
// [scheduler.AwayStatus], which is disconnected or down.
type NodeUpdateStatus struct {
	At     time.Time
	Node   cluster.NodeID
	Status cluster.NodeStatus
	// Evals are evaluations to write, or nil. If the status changes, the FSM adds those of
	// other jobs that have allocations on the node or may use it now.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateStatus) Type() MessageType      { return NodeUpdateStatusType }
func (*NodeUpdateStatus) responds(ChangeApplied) {}
func (m *NodeUpdateStatus) check() error         { return checkEvals(m.Evals) }

func (m *NodeUpdateStatus) apply(txn *statestore.Txn) Response {
	before, status := txn.State().Node(m.Node), m.Status
	if status == cluster.NodeDisconnected && txn.State().ClusterVersion() >= cluster.VersionOfConfirmation {
		status, _ = scheduler.AwayStatus(txn.State().WorkView(), m.Node, m.At)
	}
	if err := txn.UpdateNodeStatus(m.Node, status, m.At); err != nil {
		return Refused{Err: err}
	}
	var required []*cluster.Evaluation
	if before.Status != status {
		required = nodeEvals(txn, m.At, m.Node)
	}
	return done(evaluate(txn, m.Evals, required))
}

// NodeAppendEvent appends an event to a node's history.
type NodeAppendEvent struct {
	Node cluster.NodeID
	// Event has the time of the entry.
	Event cluster.NodeEvent
}

func (*NodeAppendEvent) Type() MessageType      { return NodeAppendEventType }
func (*NodeAppendEvent) responds(ChangeApplied) {}
func (*NodeAppendEvent) needs() cluster.Version { return cluster.VersionOfConfirmation }
func (*NodeAppendEvent) check() error           { return nil }

func (m *NodeAppendEvent) apply(txn *statestore.Txn) Response {
	if err := statestore.AppendNodeEvent(txn, m.Node, m.Event); err != nil {
		return Refused{Err: err}
	}
	return ChangeApplied{}
}

// NodeUpdateEligibility sets a node's eligibility. A draining node cannot become eligible.
type NodeUpdateEligibility struct {
	At          time.Time
	Node        cluster.NodeID
	Eligibility cluster.Eligibility
	// Evals are evaluations to write, or nil. If the node becomes eligible, the FSM adds
	// the other required ones.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateEligibility) Type() MessageType      { return NodeUpdateEligibilityType }
func (*NodeUpdateEligibility) responds(ChangeApplied) {}
func (m *NodeUpdateEligibility) check() error         { return checkEvals(m.Evals) }

func (m *NodeUpdateEligibility) apply(txn *statestore.Txn) Response {
	before := txn.State().Node(m.Node)
	if err := txn.UpdateNodeEligibility(m.Node, m.Eligibility, m.At); err != nil {
		return Refused{Err: err}
	}
	return done(evaluate(txn, m.Evals, returnEvals(txn, m.At, before)))
}

// returnEvals are the evaluations that a written change requires if it makes a node eligible.
func returnEvals(txn *statestore.Txn, at time.Time, before *cluster.Node) []*cluster.Evaluation {
	after := txn.State().Node(before.ID)
	if before.SchedulingEligibility == after.SchedulingEligibility || after.SchedulingEligibility != cluster.NodeEligible {
		return nil
	}
	return nodeEvals(txn, at, before.ID)
}

// requested are the allocations on a node for which its drain has requested a replacement.
func requested(txn *statestore.Txn, n *cluster.Node) (ids []cluster.AllocID) {
	if !n.Draining() {
		return nil
	}
	for a := range txn.State().WorkView().LiveAllocsByNode(n.ID) {
		if cluster.SurgeRequested(a, n) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// NodeUpdateDrain starts, updates or cancels the drain of one node.
type NodeUpdateDrain struct {
	cluster.DrainUpdate
	// Evals are evaluations to write, or nil. They are dropped if the request changes
	// nothing. The FSM adds the other required ones, if the node becomes eligible or if a cancel withdraws requests
	// for replacements.
	Evals []*cluster.Evaluation
}

func (*NodeUpdateDrain) Type() MessageType            { return NodeUpdateDrainType }
func (*NodeUpdateDrain) responds(DrainRequestApplied) {}

// needs is the version of the fields of the request.
func (m *NodeUpdateDrain) needs() cluster.Version {
	switch {
	case m.Spec != nil && m.Spec.MaxSurge != 0:
		return cluster.VersionOfSurge
	case m.Undo:
		return cluster.VersionOfPauses
	case m.Plan != nil:
		return cluster.VersionOfJournals
	}
	return cluster.MinVersion
}

func (m *NodeUpdateDrain) check() error {
	if m.Plan != nil && len(m.Plan.Sentence) > cluster.MaxPlanSentence {
		return fmt.Errorf("the sentence of a plan has at most %d bytes but found %d", cluster.MaxPlanSentence, len(m.Plan.Sentence))
	}
	return checkEvals(m.Evals)
}

func (m *NodeUpdateDrain) apply(txn *statestore.Txn) Response {
	before := txn.State().Node(m.Node)
	var withdrawn []cluster.AllocID
	if m.Spec == nil {
		withdrawn = requested(txn, before)
	}
	updated, err := txn.UpdateNodeDrain(m.DrainUpdate)
	switch {
	case err != nil:
		return Refused{Err: err}
	case updated.Repeated:
		return DrainRequestApplied{DrainResult: updated}
	}
	required := returnEvals(txn, m.At, before)
	for _, id := range withdrawn { // the scheduler stops their replacements
		required = append(required, scheduler.AllocEval(txn.State().WorkView(), id, cluster.TriggerNodeDrain, m.At, "")...)
	}
	evals, err := evaluate(txn, m.Evals, required)
	if err != nil {
		return Refused{Err: err}
	}
	return DrainRequestApplied{DrainResult: updated, Evals: evals}
}
