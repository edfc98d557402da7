package statestore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
)

// UpdateClaims applies changes of claims, one after the other. A change is ignored if its claim
// does not exist, is of another node, or has already reached the state. A change because of an
// unreachable node is checked again with [volumes.ExpiryOf]. It returns the refused changes with
// their reasons.
func (t *Txn) UpdateClaims(u *cluster.ClaimUpdate) (refused []cluster.ClaimRefusal) {
	for _, ch := range u.Changes {
		c := t.State().WorkView().Claim(ch.Claim)
		if c == nil || c.Node != ch.Node {
			continue
		}
		if why := (claimEdits{&t.rows}).change(c, ch, u); why != "" {
			refused = append(refused, cluster.ClaimRefusal{Claim: ch.Claim, Why: why})
		}
	}
	return refused
}

// claimEdits changes claims in a transaction.
type claimEdits struct{ rows *rowWrites }

// change applies one change to its claim, or returns why it is refused.
func (t claimEdits) change(c *cluster.VolumeClaim, ch cluster.ClaimChange, u *cluster.ClaimUpdate) (why string) {
	switch ch.Cause {
	case cluster.CauseAttached:
		if !c.State.OnNode() || !c.Controller {
			return "it waits for no controller"
		}
		if err := cluster.CheckPublishContext(ch.PublishContext); err != nil {
			return err.Error()
		}
		if c.Attached && maps.Equal(c.PublishContext, ch.PublishContext) {
			return ""
		}
		after := c.Copy()
		after.Attached, after.PublishContext = true, maps.Clone(ch.PublishContext)
		if len(after.PublishContext) == 0 {
			after.PublishContext = nil
		}
		t.put(c, after)
	case cluster.CauseNode:
		t.advance(c, cluster.ClaimNodeDetached)
	case cluster.CauseUnreachable:
		if !c.State.OnNode() {
			return ""
		}
		if expiry := volumes.ExpiryOf(c, t.rows.state().Alloc(c.Alloc), t.rows.state().Node(c.Node)); !expiry.Passed(u.At) {
			return "its node may still use the volume"
		}
		t.advance(c, cluster.ClaimNodeDetached)
	case cluster.CauseDetached:
		if c.State.OnNode() {
			return "its node may still use the volume"
		}
		t.advance(c, cluster.ClaimControllerDetached)
	default:
		return "the cause is unknown"
	}
	return ""
}

// advance moves a claim to a later state. It deletes the claim if nothing is left to do.
func (t claimEdits) advance(c *cluster.VolumeClaim, to cluster.ClaimState) {
	if !c.State.Before(to) {
		return
	}
	if to == cluster.ClaimControllerDetached || to == cluster.ClaimNodeDetached && (!c.Controller || t.otherAttaches(c)) {
		t.put(c, nil)
		return
	}
	after := c.Copy()
	after.State = to
	t.put(c, after)
}

// otherAttaches reports whether another claim of the volume on the same node needs the controller:
// its allocation still uses the volume, or it waits for the controller.
func (t claimEdits) otherAttaches(c *cluster.VolumeClaim) bool {
	for o := range t.rows.state().ClaimsOnNode(c.Node) {
		if o.Volume == c.Volume && o.Alloc != c.Alloc && o.Controller {
			return true
		}
	}
	return false
}

// put writes or deletes a claim. The store owns after: the caller must not change it.
func (t claimEdits) put(before, after *cluster.VolumeClaim) {
	if after == nil {
		t.rows.counters.Capacity = t.rows.written.index // another allocation may have the volume now
	} else {
		after.ModifyIndex = t.rows.written.index
		if before == nil {
			after.CreateIndex = t.rows.written.index
		}
	}
	put(t.rows, TableClaims, before, after)
	t.note(cmp.Or(before, after).Volume)
	t.noteForFeeds(cmp.Or(after, before))
}

// note sets the volume's ClaimsIndex, because claims of the volume have changed.
func (t claimEdits) note(k cluster.VolumeKey) {
	v := t.rows.state().Volume(k)
	if v == nil || v.ClaimsIndex == t.rows.written.index {
		return
	}
	changed := *v
	changed.ClaimsIndex = t.rows.written.index
	put(t.rows, TableVolumes, v, &changed)
}

// noteForFeeds notes a changed claim for feeds, if it is of an allocation that a drain leaves on
// the node. The drain also leaves the storage plugin while such a claim exists.
func (t claimEdits) noteForFeeds(c *cluster.VolumeClaim) {
	if !t.rows.written.changes.drains(c.Node) {
		return
	}
	n, a := t.rows.state().Node(c.Node), t.rows.state().Alloc(c.Alloc)
	if n.Draining() && live(a) && !n.Drain.Leaves(a.Stage()) {
		t.rows.written.changes.claiming = append(t.rows.written.changes.claiming, c.Node)
	}
}

// claim writes the claims of new allocations. The caller has checked them.
func (t claimEdits) claim(placed []*cluster.Allocation) {
	var book *volumes.Book
	for _, a := range placed {
		g, n := a.Job.Group(a.TaskGroup), t.rows.state().Node(a.NodeID)
		if g == nil || len(g.Volumes) == 0 || n == nil {
			continue
		}
		if book == nil {
			book = volumes.NewBook(t.rows.state())
		}
		for _, c := range book.Claims(a, g, n) {
			t.put(t.rows.state().WorkView().Claim(c.Key()), c)
		}
	}
}

// release moves the claims of an allocation to later states when its client ends it, or its row is
// deleted. Volumes that the client still has on the node stay claimed. A later report does not free
// them.
func (t claimEdits) release(before, after *cluster.Allocation) {
	switch {
	case before == nil || after != nil && (endedByClient(before) || !endedByClient(after)):
		return
	case t.rows.counters.Claims == 0: // most clusters have no volumes
		return
	}
	for _, c := range slices.Collect(t.rows.state().WorkView().ClaimsOfAlloc(before.ID)) {
		if after == nil || after.VolumeHolds.Holds(c.Key()) {
			t.advance(c, cluster.ClaimUnpublishing)
		} else {
			t.advance(c, cluster.ClaimNodeDetached)
		}
	}
}

// nodeGone records, in the claims that the deleted node may still use, the values that their expiry
// depends on.
func (t claimEdits) nodeGone(n *cluster.Node, at time.Time) {
	for _, c := range slices.Collect(t.rows.state().ClaimsOnNode(n.ID)) {
		a := t.rows.state().Alloc(c.Alloc)
		if !c.State.OnNode() || a == nil {
			continue // only force frees the claim of a purged allocation
		}
		after := c.Copy()
		after.NodeGoneAt, after.NodeStopTime = at, a.StopTimeOn(n)
		t.put(c, after)
	}
}
