package shims

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// MessageType is the first byte of a raft entry. The numbers equal those of Nomad.
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
	// RaiseClusterVersionType does not exist in Nomad.
	RaiseClusterVersionType MessageType = 100
	// CollectType does not exist in Nomad.
	CollectType MessageType = 101
	// AllocStopType does not exist in Nomad.
	AllocStopType MessageType = 102
	// ConfirmStopsType and ConfirmDrainType do not exist in Nomad.
	ConfirmStopsType MessageType = 103
	ConfirmDrainType MessageType = 104
	// PauseDrainsType does not exist in Nomad.
	PauseDrainsType MessageType = 105
	// NodeAppendEventType does not exist in Nomad.
	NodeAppendEventType MessageType = 106
	// The types of volumes do not exist in Nomad.
	VolumeRegisterType   MessageType = 110
	VolumeDeregisterType MessageType = 111
	VolumeDetachType     MessageType = 112
	ClaimUpdateType      MessageType = 113
)

// IgnorableFlag is set in ignorable types. A server skips an entry of an unknown ignorable type.
// Such an entry must not change the state. No type of this build is ignorable.
const IgnorableFlag MessageType = 1 << 7

// Ignorable reports whether servers skip entries of the type if they do not have it.
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

// Message is one change to the replicated state, as the log holds it. The set is closed:
// [NodeRegister], [NodeDeregister], [NodeUpdateStatus], [NodeUpdateEligibility], [NodeUpdateDrain],
// [JobRegister], [JobDeregister], [EvalUpdate], [AllocClientUpdate], [ApplyPlan],
// [AllocUpdateDesiredTransition], [NodesDrainComplete], [RaiseClusterVersion], [Collect],
// [AllocStop], [ConfirmStops], [ConfirmDrain], [PauseDrains], [NodeAppendEvent],
// [VolumeRegister], [VolumeDeregister], [VolumeDetach] and [ClaimUpdate], each as a pointer.
//
// A message carries every time and id that its effect needs, because the FSM reads neither
// a clock nor randomness. Most messages can carry evaluations, so that change and evaluations
// take effect together. The FSM adds required evaluations that the message lacks. Their ids
// depend on the index of the entry.
type Message interface {
	// Type is the message's type.
	Type() MessageType
	// check returns an error if a required part is missing. Encode and Decode call it, so
	// that no log contains such a message.
	check() error
	// apply writes the message's effect. If it returns [Refused], the FSM aborts the
	// transaction.
	apply(*statestore.Txn) Response
}

// Request is a message whose response is an R, unless it is [Refused].
type Request[R Response] interface {
	Message
	responds(R)
}

// newMessage returns an empty message of the type, or nil if the type is unknown.
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
	case CollectType:
		return new(Collect)
	case AllocStopType:
		return new(AllocStop)
	case ConfirmStopsType:
		return new(ConfirmStops)
	case ConfirmDrainType:
		return new(ConfirmDrain)
	case PauseDrainsType:
		return new(PauseDrains)
	case NodeAppendEventType:
		return new(NodeAppendEvent)
	case VolumeRegisterType:
		return new(VolumeRegister)
	case VolumeDeregisterType:
		return new(VolumeDeregister)
	case VolumeDetachType:
		return new(VolumeDetach)
	case ClaimUpdateType:
		return new(ClaimUpdate)
	}
	return nil
}

// checkEvals refuses a list with a missing evaluation.
func checkEvals(evals []*cluster.Evaluation) error { return checkList("evaluation", evals) }

// checkList refuses a list with a missing item.
func checkList[T any](noun string, list []*T) error {
	for i, item := range list {
		if item == nil {
			return fmt.Errorf("%s %d is missing", noun, i)
		}
	}
	return nil
}
