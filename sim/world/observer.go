package world

import (
	"reflect"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// Observer holds functions that a world calls when something happens. They must not change the
// world. The world does not call nil functions.
type Observer struct {
	// Applied is called once for each entry, in the order of the log, when the first
	// server applies it.
	Applied func(shims.Applied)
	// ReplicaApplied is called for each entry that a server applies.
	ReplicaApplied func(server int, a shims.Applied)
	// Elected is called when a server begins to lead.
	Elected func(server int)
	// TermEnded is called when a term has ended and its leader has stepped down.
	TermEnded func(term int)
	// ClockSet is called with the time by which the clock of a term's server is ahead: by
	// [World.Observe] for the current term, when a term begins, and when the clock is set.
	ClockSet func(term int, ahead time.Duration)
	// Restored is called with the state before a snapshot was taken, and with the state that
	// was restored from the snapshot.
	Restored func(taken, restored *statestore.Snapshot)
	// Proposed is called for every write that a drainer proposes.
	Proposed func(Proposal)
	// Answered is called when a drainer gets the answer to its n-th write.
	Answered func(term, n int, a shims.Answer)
	// Stepped is called after every step of a drainer.
	Stepped func(DrainerStep)
	// Struck is called for every strike of a fault.
	Struck func(Strike)
	// NodeChanged is called when a real client dies, freezes or starts, or its machine is switched off.
	NodeChanged func(cluster.NodeID, NodeChange)
	// Called is called when a leader calls a controller. open are the calls before that may still
	// take effect, or whose leader waits for the answer.
	Called func(call ControllerCall, open []ControllerCall)
}

// NodeChange is a change of a node with a real client.
type NodeChange string

// The changes of nodes.
const (
	ClientStarts     NodeChange = "the client starts"
	ClientDies       NodeChange = "the client dies"
	ClientFreezes    NodeChange = "the client freezes"
	ClientContinues  NodeChange = "the client continues"
	DriverDies       NodeChange = "the driver dies"
	DevicePluginDies NodeChange = "a device plugin dies"
	DevicesChange    NodeChange = "its devices change"
	StorageDies      NodeChange = "a storage plugin dies"
	RecordIsLost     NodeChange = "a record is lost"
	DiskIsWiped      NodeChange = "its disk is wiped"
	MachineHalts     NodeChange = "the machine halts"
	MachineStarts    NodeChange = "the machine starts"
)

// noObserver returns an observer whose functions do nothing.
func noObserver() (o Observer) {
	for _, f := range reflect.ValueOf(&o).Elem().Fields() {
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	}
	return o
}

// Observe adds an observer.
func (w *World) Observe(o Observer) {
	before, added, all := reflect.ValueOf(w.observer), reflect.ValueOf(o), reflect.ValueOf(&w.observer).Elem()
	for i := range all.NumField() {
		f := added.Field(i)
		switch {
		case f.IsNil():
			continue
		case !w.observed[i]: // a call without reflection
			all.Field(i).Set(f)
		default:
			all.Field(i).Set(reflect.MakeFunc(f.Type(), func(args []reflect.Value) []reflect.Value {
				before.Field(i).Call(args)
				return f.Call(args)
			}))
		}
		w.observed[i] = true
	}
	if o.ClockSet != nil {
		o.ClockSet(w.Term(), w.Servers.leader.server.ahead)
	}
}

// Applied is one applied entry.
type Applied = shims.Applied

// DrainerStep is one step of a drainer.
type DrainerStep struct {
	Server int // from 0
	// Term is the drainer's term, from 1.
	Term int
	// Woken: a wake-up caused the step. Otherwise its timer did.
	Woken bool
	// At is the time on the server's clock. WakeAt is the result of the step.
	At, WakeAt time.Time
	// View is the last state that the step read, or nil. Reads is the number of states that
	// the step read.
	View  *statestore.Snapshot
	Reads int
	// Held: the world hid the newest state from the drainer.
	Held bool
}
