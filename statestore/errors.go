package statestore

import "errors"

var (
	// ErrNodeNotFound means that no node has this id.
	ErrNodeNotFound = errors.New("node not found")
	// ErrJobNotFound means that no job has this id.
	ErrJobNotFound = errors.New("job not found")
	// ErrAllocNotFound means that no allocation has this id.
	ErrAllocNotFound = errors.New("allocation not found")
	// ErrVolumeNotFound means that no volume has this id.
	ErrVolumeNotFound = errors.New("volume not found")
	// ErrClaimNotFound means that no allocation on the node claims the volume.
	ErrClaimNotFound = errors.New("volume is not claimed on the node")
	// ErrVolumeInUse means that claims forbid the change. Stop the allocations that claim the
	// volume, or use force.
	ErrVolumeInUse = errors.New("volume in use")
	// ErrNodeDraining means that a node cannot be made eligible while it drains. End the
	// drain first.
	ErrNodeDraining = errors.New("can not set node's scheduling eligibility to eligible while it is draining")
	// ErrNodeSecret means that the node is registered with another secret. An operator must delete
	// the node before another client can register it.
	ErrNodeSecret = errors.New("node is registered with another secret")
	// ErrAbandoned means that the store was replaced. Use the store that replaced it.
	ErrAbandoned = errors.New("state store was abandoned")
)
