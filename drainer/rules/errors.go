package rules

import "errors"

// The reasons why there is no report of a drain.
var (
	// ErrNotEnabled means that this drainer decides nothing, because its server does not lead. Send the
	// request to the leader, or use [Explain] with any state.
	ErrNotEnabled = errors.New("node drainer is not enabled")
	// ErrAbandoned means that the store that this drainer reads was replaced. It decides nothing
	// until its server enables it with the new store.
	ErrAbandoned = errors.New("node drainer reads a store that was replaced")
	// ErrNotDraining means that the node does not drain, or does not exist. The record of its last
	// drain is in the state.
	ErrNotDraining = errors.New("node is not draining")
)
