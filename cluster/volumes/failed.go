package volumes

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// FailedCall is a due call of a controller whose attempts have all failed so far, or that no controller can
// serve. Only the caller that made the attempts has their results: the next leader makes the call again.
type FailedCall struct {
	Volume cluster.VolumeKey
	Plugin cluster.PluginID
	// Node is the node to which the controller attaches the volume, or from which it detaches it.
	Node   cluster.NodeID
	Detach bool
	// NoController means that no healthy controller of the plugin attaches volumes. The next attempt waits for one.
	NoController bool
	// Failures counts the attempts. Without any, the fields that follow are zero.
	Failures int
	// Controller is the node of the controller that was called last. LastError is why that attempt failed,
	// in at most [cluster.MaxTaskEventBytes], and LastAt when.
	Controller cluster.NodeID
	LastError  string
	LastAt     time.Time
	// NextAt is when the next attempt begins at the earliest. It begins later if no controller can be called,
	// or if too many calls are in flight. InFlight means that an attempt has begun.
	NextAt   time.Time
	InFlight bool
}

// Failing returns the state of those of the due calls that have failed or have no controller, in their
// order.
func (c *Caller) Failing(due []*Call) (failing []FailedCall) {
	for _, call := range due {
		k := keyOfCall(call)
		f, failed := c.failed[k]
		if !failed {
			f = FailedCall{Volume: k.volume, Plugin: call.Volume.Plugin, Node: k.node, Detach: k.detach}
		}
		flies := c.flying[k.volume]
		f.InFlight = flies != nil && keyOfCall(flies) == k
		f.NoController = len(call.Controllers) == 0
		if failed || f.NoController {
			failing = append(failing, f)
		}
	}
	return failing
}
