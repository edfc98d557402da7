package statestore

import "errors"

var (
	// ErrNodeNotFound: there is no such node.
	ErrNodeNotFound = errors.New("node not found")
	// ErrJobNotFound: there is no such job.
	ErrJobNotFound = errors.New("job not found")
	// ErrNodeDraining: a node cannot be made eligible while it drains. End the
	// drain first.
	ErrNodeDraining = errors.New("can not set node's scheduling eligibility to eligible while it is draining")
	// ErrNodeSecret: the node is known by another secret. It is somebody else's, and
	// stays so until it is deleted.
	ErrNodeSecret = errors.New("node is registered with another secret")
	// ErrAbandoned: the store was replaced. Ask the one that replaced it.
	ErrAbandoned = errors.New("state store was abandoned")
)
