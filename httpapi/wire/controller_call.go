package wire

import "github.com/seed-f9cf0b39/nodedrain/cluster/volumes"

// ControllerCall is a call of a storage plugin's controller that a claim waits for and that has failed so
// far, or that no controller can serve. The leader repeats it until it succeeds. Ours.
type ControllerCall struct {
	// Call is attach or detach.
	Call      string
	Namespace string
	Volume    string
	PluginID  string
	// NodeID is the node to which the volume is attached, or from which it is detached.
	NodeID string
	// NoController means that no healthy controller of the plugin attaches volumes. The next attempt waits for
	// one.
	NoController bool
	// Failures counts the attempts, all of which failed. A new leader counts from zero. Without any, the
	// fields that follow are zero.
	Failures int
	// ControllerNodeID is the node of the controller that was called last. LastError is why that attempt
	// failed, and LastAt when.
	ControllerNodeID string
	LastError        string
	LastAt           Time
	// NextAt is when the next attempt begins at the earliest, and InFlight means that one has begun.
	NextAt   Time
	InFlight bool
}

// NewControllerCall returns the call.
func NewControllerCall(c volumes.FailedCall) ControllerCall {
	w := ControllerCall{
		Call: "attach", Namespace: string(c.Volume.Namespace), Volume: string(c.Volume.ID), PluginID: string(c.Plugin), NodeID: string(c.Node),
		NoController: c.NoController, Failures: c.Failures, ControllerNodeID: string(c.Controller), LastError: c.LastError, LastAt: NewTime(c.LastAt), NextAt: NewTime(c.NextAt),
		InFlight: c.InFlight,
	}
	if c.Detach {
		w.Call = "detach"
	}
	return w
}
