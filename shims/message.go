package shims

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// MessageType is the first byte of a raft entry. The numbers are those of the
// compatible system.
type MessageType uint8

// The types of messages.
const (
	NodeRegisterType                 MessageType = 0
	NodeUpdateStatusType             MessageType = 2
	NodeUpdateDrainType              MessageType = 3
	JobRegisterType                  MessageType = 4
	JobDeregisterType                MessageType = 5
	EvalUpdateType                   MessageType = 6
	AllocClientUpdateType            MessageType = 9
	ApplyPlanType                    MessageType = 13
	AllocUpdateDesiredTransitionType MessageType = 27
	NodeUpdateEligibilityType        MessageType = 28
	NodesDrainCompleteType           MessageType = 29
	NodeDeregisterType               MessageType = 31
	// RaiseClusterVersionType is none of the compatible system's.
	RaiseClusterVersionType MessageType = 100
)

// IgnorableFlag is the bit of a type whose entries are skipped by a server that
// does not know the type. Only what changes nothing that servers must agree on
// may have it: no type of this version does.
const IgnorableFlag MessageType = 1 << 7

// Ignorable reports whether a server that does not know the type skips it.
func (t MessageType) Ignorable() bool { return t&IgnorableFlag != 0 }

// String returns the type's name.
func (t MessageType) String() string {
	switch m := newMessage(t).(type) {
	case nil:
		return fmt.Sprintf("message type %d", uint8(t))
	default:
		return fmt.Sprintf("%T", m)[len("*shims."):]
	}
}

// Message is one change to the replicated state, as it stands in the log. The
// set is closed: [NodeRegister], [NodeDeregister], [NodeUpdateStatus],
// [NodeUpdateEligibility], [NodeUpdateDrain], [JobRegister], [JobDeregister],
// [EvalUpdate], [AllocClientUpdate], [ApplyPlan],
// [AllocUpdateDesiredTransition], [NodesDrainComplete] and [RaiseClusterVersion], each
// as a pointer.
//
// A message carries every time and id that its effect needs, because applying it
// reads neither clock nor randomness. Most can carry evaluations, so that they are
// never in the state without the change, nor it without them. Those that a change
// calls for and that did not come with it are made when it is applied, in the state
// that it is applied in; only their ids follow from the index of the entry.
type Message interface {
	// Type says which of them it is.
	Type() MessageType
	// check names what must be there and is not, or returns nil. Encode and
	// Decode call it: what fails it is in no log.
	check() error
	// apply writes the message's effect. After [Refused] the transaction is
	// aborted.
	apply(*statestore.Txn) Response
}

// Request is a message whose response is an R, unless it is [Refused].
type Request[R Response] interface {
	Message
	responds(R)
}

// newMessage returns an empty message of the type, or nil if there is none.
func newMessage(t MessageType) Message {
	switch t {
	case NodeRegisterType:
		return new(NodeRegister)
	case NodeDeregisterType:
		return new(NodeDeregister)
	case NodeUpdateStatusType:
		return new(NodeUpdateStatus)
	case NodeUpdateEligibilityType:
		return new(NodeUpdateEligibility)
	case NodeUpdateDrainType:
		return new(NodeUpdateDrain)
	case JobRegisterType:
		return new(JobRegister)
	case JobDeregisterType:
		return new(JobDeregister)
	case EvalUpdateType:
		return new(EvalUpdate)
	case AllocClientUpdateType:
		return new(AllocClientUpdate)
	case ApplyPlanType:
		return new(ApplyPlan)
	case AllocUpdateDesiredTransitionType:
		return new(AllocUpdateDesiredTransition)
	case NodesDrainCompleteType:
		return new(NodesDrainComplete)
	case RaiseClusterVersionType:
		return new(RaiseClusterVersion)
	}
	return nil
}

// checkEvals refuses a list with a missing evaluation.
func checkEvals(evals []*cluster.Evaluation) error { return checkList("evaluation", evals) }

// checkList refuses a list with a missing item.
func checkList[T any](what string, list []*T) error {
	for i, item := range list {
		if item == nil {
			return fmt.Errorf("%s %d is missing", what, i)
		}
	}
	return nil
}
