package volumes

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// FailedCall is a due call of a controller whose attempts have all failed so far. Only the caller that made
// them knows of it: the next leader makes the call again.
type FailedCall struct {
	Volume cluster.VolumeKey
	Plugin cluster.PluginID
	// Node is the node to which the controller attaches the volume, or from which it detaches it.
	Node   cluster.NodeID
	Detach bool
	// Failures counts the attempts, from 1.
	Failures int
	// Controller is the node of the controller that was called last. LastError is why that attempt failed,
	// in at most [cluster.MaxTaskEventBytes], and LastAt when.
	Controller cluster.NodeID
	LastError  string
	LastAt     time.Time
	// NextAt is when the next attempt begins at the earliest. It begins later if no controller can be called,
	// or if too many calls are in flight. InFlight says that it has begun.
	NextAt   time.Time
	InFlight bool
}

// Failing returns the due calls that have failed, by volume and node.
func (c *Caller) Failing() []FailedCall {
	failing := make([]FailedCall, 0, len(c.failed))
	for k, f := range c.failed {
		flies := c.flying[k.volume]
		f.InFlight = flies != nil && keyOfCall(flies) == k
		failing = append(failing, f)
	}
	slices.SortFunc(failing, func(a, b FailedCall) int {
		// A volume is either attached to a node or detached from it.
		return cmp.Or(a.Volume.Compare(b.Volume), cmp.Compare(a.Node, b.Node))
	})
	return failing
}
