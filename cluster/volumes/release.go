package volumes

import (
	"cmp"
	"fmt"
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Expiry is when the leader frees a claim on a node that the servers cannot reach.
type Expiry struct {
	// At is when the claim is freed, or zero for never.
	At time.Time
	// Why is a text about what the claim waits for. It is empty if the servers reach the node.
	Why string
}

// Passed reports whether the claim is freed at the time.
func (e Expiry) Passed(now time.Time) bool { return !e.At.IsZero() && !now.Before(e.At) }

// ExpiryOf returns when a claim is freed that the node may still use. alloc is the claim's
// allocation and node is its node; both may be nil. If the servers reach the node, only its client
// frees the claim.
//
// If a second user could damage the volume, the claim is freed when the node must have stopped the
// allocation: see [cluster.StoppedByNodeAt]. The node counts from the last answered
// heartbeat. The state does not contain heartbeats. It contains the time when the servers marked the
// node disconnected or down, or when its row was deleted, and this is later than the heartbeat. All leaders count from that time, so a new leader continues. If a second user
// does no harm, the claim is freed when the allocation is lost.
func ExpiryOf(c *cluster.VolumeClaim, alloc *cluster.Allocation, node *cluster.Node) Expiry {
	if node.Reachable() {
		return Expiry{}
	}
	where := fmt.Sprintf("node %s cannot be reached", c.Node)
	if alloc == nil {
		return Expiry{Why: where + ", and its allocation is gone: only volume detach -force frees the claim"}
	}
	since, stopTime := c.NodeGoneAt, c.NodeStopTime
	if node != nil {
		since, stopTime = cmp.Or(node.AwaySince, node.StatusChangedAt), alloc.StopTimeOn(node)
	}
	if !exclusive(c) {
		if alloc.ClientTerminal() {
			return Expiry{At: since, Why: where}
		}
		return Expiry{Why: where + ", and its allocation is not lost yet"}
	}
	g := alloc.Job.Group(alloc.TaskGroup)
	if g == nil || g.Disconnect.StopOnClientAfter <= 0 {
		return Expiry{Why: where + ", and its group has no stop_on_client_after: only volume detach -force frees the claim"}
	}
	if since.IsZero() {
		return Expiry{Why: where + " since an unknown time: only volume detach -force frees the claim"}
	}
	at := cluster.StoppedByNodeAt(alloc, since, stopTime)
	return Expiry{At: at, Why: fmt.Sprintf("%s, and the leader frees the claim at %s: the node itself has stopped the allocation by then", where, at.UTC().Format(time.RFC3339))}
}

// exclusive reports whether a second user of the volume could harm it while the claim is in use.
func exclusive(c *cluster.VolumeClaim) bool {
	return c.Capability.Access.SingleNode() || c.Writes() && c.Capability.Access.SingleWriter()
}

// Claims is the part of the state that [Expired] reads.
type Claims interface {
	// Claims yields all claims by volume and allocation.
	Claims() iter.Seq[*cluster.VolumeClaim]
	// Alloc and Node return the row, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	Node(cluster.NodeID) *cluster.Node
}

// AnyExpires reports whether time alone will free a claim on a node that the servers cannot reach.
func AnyExpires(v Claims) bool {
	for c := range v.Claims() {
		if c.State.OnNode() && !ExpiryOf(c, v.Alloc(c.Alloc), v.Node(c.Node)).At.IsZero() {
			return true
		}
	}
	return false
}

// Expired returns the changes that free claims on unreachable nodes whose time has passed, at most
// [cluster.MaxClaimChanges]. It reads all claims.
func Expired(v Claims, now time.Time) (changes []cluster.ClaimChange) {
	for c := range v.Claims() {
		if !c.State.OnNode() || !ExpiryOf(c, v.Alloc(c.Alloc), v.Node(c.Node)).Passed(now) {
			continue
		}
		changes = append(changes, cluster.ClaimChange{Claim: c.Key(), Node: c.Node, Cause: cluster.CauseUnreachable})
		if len(changes) == cluster.MaxClaimChanges {
			break
		}
	}
	return changes
}
