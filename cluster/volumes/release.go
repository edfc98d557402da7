package volumes

import (
	"fmt"
	"iter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// ReleaseMargin is how long the leader waits, beyond what the client of an unreachable node needs to
// stop an allocation, before it frees a claim of the allocation. It covers clocks that differ. It is no
// option, because all servers judge by it.
const ReleaseMargin = time.Minute

// Fate says when the claim of an allocation on a node that the servers cannot reach is over.
type Fate struct {
	// At is when the claim is over, or zero: never.
	At time.Time
	// Why says what the claim waits for, in words; empty if the servers reach the node.
	Why string
}

// Over reports whether the claim is over at the time.
func (f Fate) Over(now time.Time) bool { return !f.At.IsZero() && !now.Before(f.At) }

// Unreachable returns the fate of a claim that the node may still use. alloc is the claim's allocation
// and node its node; both may be nil. If the servers reach the node, only its client frees the claim.
//
// A claim that another writer could harm is over when the client has surely stopped the allocation: its
// group says that the client stops it when it reaches no server (StopOnClientAfter), and since the last
// answered heartbeat this time, the stop time and [ReleaseMargin] have passed. The state knows when the
// servers gave up the node, or when its row was deleted, which is later than that heartbeat. All leaders
// count from that time: a new one goes on where the last one was. The claim of a reader of a volume with
// several claims is over when the allocation is lost.
func Unreachable(c *cluster.VolumeClaim, alloc *cluster.Allocation, node *cluster.Node) Fate {
	if node.Reachable() {
		return Fate{}
	}
	where := fmt.Sprintf("node %s cannot be reached", c.Node)
	if alloc == nil {
		return Fate{Why: where + ", and its allocation is gone: only volume detach -force frees the claim"}
	}
	since, stopTime := c.NodeGoneAt, c.NodeStopTime
	if node != nil {
		since, stopTime = node.StatusChangedAt, alloc.StopTimeOn(node)
	}
	if !exclusive(c) {
		if alloc.ClientTerminal() {
			return Fate{At: since, Why: where}
		}
		return Fate{Why: where + ", and its allocation is not lost yet"}
	}
	g := alloc.Job.Group(alloc.TaskGroup)
	if g == nil || g.Disconnect.StopOnClientAfter <= 0 {
		return Fate{Why: where + ", and its group has no stop_on_client_after: only volume detach -force frees the claim"}
	}
	if since.IsZero() {
		return Fate{Why: where + " since an unknown time: only volume detach -force frees the claim"}
	}
	// Added one by one: the sum of durations may wrap around.
	at := since.Add(g.Disconnect.StopOnClientAfter).Add(stopTime).Add(ReleaseMargin)
	return Fate{At: at, Why: fmt.Sprintf("%s, and a client that runs there has surely stopped the allocation at %s", where, at.UTC().Format(time.RFC3339))}
}

// exclusive reports whether a second user of the volume could harm it while the claim is in use.
func exclusive(c *cluster.VolumeClaim) bool {
	return c.Capability.Access.SingleNode() || c.Writes() && c.Capability.Access.SingleWriter()
}

// Claims are the claims of one state, and what their fate depends on.
type Claims interface {
	// Claims yields all claims by volume and allocation.
	Claims() iter.Seq[*cluster.VolumeClaim]
	// Alloc and Node return the row, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	Node(cluster.NodeID) *cluster.Node
}

// AnyWaits reports whether a claim waits for a node that the servers cannot reach, and will be over by
// itself.
func AnyWaits(v Claims) bool {
	for c := range v.Claims() {
		if c.State.OnNode() && !Unreachable(c, v.Alloc(c.Alloc), v.Node(c.Node)).At.IsZero() {
			return true
		}
	}
	return false
}

// Overdue returns the changes of the claims that are over at the time although the servers cannot
// reach their nodes, at most [cluster.MaxClaimChanges]. It reads all claims.
func Overdue(v Claims, now time.Time) (changes []cluster.ClaimChange) {
	for c := range v.Claims() {
		if !c.State.OnNode() || !Unreachable(c, v.Alloc(c.Alloc), v.Node(c.Node)).Over(now) {
			continue
		}
		changes = append(changes, cluster.ClaimChange{Claim: c.Key(), Node: c.Node, Cause: cluster.CauseUnreachable})
		if len(changes) == cluster.MaxClaimChanges {
			break
		}
	}
	return changes
}
