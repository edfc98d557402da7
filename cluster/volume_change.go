package cluster

import "time"

// ClaimUpdate moves claims on.
type ClaimUpdate struct {
	// At is the proposer's time.
	At      time.Time
	Changes []ClaimChange
}

// ClaimChange is what became true of one claim.
type ClaimChange struct {
	Claim ClaimKey
	// Node is the node of the claim. A change that names another one is ignored.
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
	// CauseNode: the client has taken the volume off the node for the allocation.
	CauseNode ClaimCause = "node"
	// CauseUnreachable: the servers cannot reach the node, and its client has surely stopped the
	// allocation. It is judged again when it is applied.
	CauseUnreachable ClaimCause = "unreachable"
	// CauseDetached: a controller has detached the volume from the node.
	CauseDetached ClaimCause = "detached"
)

// Valid reports whether c is one of the four values.
func (c ClaimCause) Valid() bool {
	return c == CauseAttached || c == CauseNode || c == CauseUnreachable || c == CauseDetached
}

// MaxClaimChanges bounds the changes of one update.
const MaxClaimChanges = 1000

// ClaimRefusal says why a change of a claim was not applied.
type ClaimRefusal struct {
	Claim ClaimKey
	Why   string
}
