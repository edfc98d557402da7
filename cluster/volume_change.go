package cluster

import "time"

// ClaimUpdate is a raft entry that changes claims.
type ClaimUpdate struct {
	// At is the proposer's time.
	At      time.Time
	Changes []ClaimChange
}

// ClaimChange is a change of one claim.
type ClaimChange struct {
	Claim ClaimKey
	// Node is the node of the claim. A change with another node is ignored.
	Node  NodeID
	Cause ClaimCause
	// PublishContext is the answer of a controller that has attached the volume, or nil.
	PublishContext map[string]string `codec:",omitempty"`
}

// ClaimCause says why a claim changes.
type ClaimCause string

// The values of [ClaimCause].
const (
	// CauseAttached: a controller has attached the volume to the node.
	CauseAttached ClaimCause = "attached"
	// CauseNode: the client has unmounted the volume for the allocation.
	CauseNode ClaimCause = "node"
	// CauseUnreachable: the servers cannot reach the node, and its client must have stopped the
	// allocation by now. The FSM checks this again when it applies the change.
	CauseUnreachable ClaimCause = "unreachable"
	// CauseDetached: a controller has detached the volume from the node.
	CauseDetached ClaimCause = "detached"
)

// Valid reports whether c is one of the four values.
func (c ClaimCause) Valid() bool {
	return c == CauseAttached || c == CauseNode || c == CauseUnreachable || c == CauseDetached
}

// MaxClaimChanges is the largest number of changes in one update.
const MaxClaimChanges = 1000

// ClaimRefusal says why a change of a claim was not applied.
type ClaimRefusal struct {
	Claim ClaimKey
	Why   string
}
