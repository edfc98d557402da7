package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// StartDrain returns the next row of a node that does not drain. The proposer makes the id of the
// drain, so that it is the same on every server. No node and no record has that id: the store
// checks this.
//
// The error means that the update has no id or no spec, or that the node is nil or drains. It
// depends only on the arguments, so every server returns it. The entry then changes nothing except
// the index.
func StartDrain(n *cluster.Node, u cluster.DrainUpdate, index uint64) (*cluster.Node, error) {
	switch {
	case n == nil:
		return nil, errors.New("starting a drain of a node that does not exist")
	case n.Draining():
		return nil, fmt.Errorf("starting a drain: node %s already drains", n.ID)
	case u.Drain == "":
		return nil, errors.New("starting a drain without an id")
	case u.Spec == nil:
		return nil, errors.New("starting a drain without a strategy")
	}
	d := &cluster.Drain{ID: u.Drain, NodeID: n.ID, CreateIndex: index}
	d.Strategy.StartedAt = u.At.UTC()
	return setDrain(n, d, cluster.EventDrainSet, u, index), nil
}

// NoteEligibility records in the drain of a node that [StartDrain] returned whether the node was eligible before. A server
// of an older build does not record it, so a store calls NoteEligibility from [cluster.VersionOfPauses] on. Without it a
// cancel with Undo leaves the node ineligible.
func NoteEligibility(started, before *cluster.Node) {
	started.Drain.EligibleBefore = before.SchedulingEligibility == cluster.NodeEligible
}

// UpdateDrain returns the next row of a node that drains, with the spec of the update. The drain
// keeps its id, its marks, its pause and the time at which it started. Its revision moves. An update by force ends the pause.
func UpdateDrain(n *cluster.Node, u cluster.DrainUpdate, index uint64) *cluster.Node {
	return setDrain(n, n.Drain.Copy(), cluster.EventDrainUpdated, u, index)
}

func setDrain(n *cluster.Node, d *cluster.Drain, message string, u cluster.DrainUpdate, index uint64) *cluster.Node {
	at := u.At.UTC()
	d.Strategy.DrainSpec = *u.Spec
	d.Strategy.ForceDeadline = time.Time{}
	if u.Spec.Deadline > 0 {
		d.Strategy.ForceDeadline = at.Add(u.Spec.Deadline)
	}
	if u.Spec.Deadline < 0 {
		d.Paused = nil // a forced drain is not paused
	}
	d.Revision, d.UpdatedAt = cluster.Revision(index), at
	d.NodeName = n.Name
	noteRequest(d, u)

	after := touch(n, at, index)
	after.Drain = d
	after.SchedulingEligibility = cluster.NodeIneligible
	after.LastDrain = lastDrain(n, cluster.DrainStatusDraining, at, u.Meta, u.UpdatedBy)
	appendEvent(after, message, nil, at, index)
	return after
}

// Cancelled holds the changes of CancelDrain.
type Cancelled struct {
	// Node is the node's next row.
	Node *cluster.Node
	// Record is the record of the drain, or nil if the node did not drain.
	Record *cluster.Drain
	// Withdrawn are the next rows of the allocations whose marks or requests for a replacement were withdrawn, by id.
	Withdrawn []*cluster.Allocation
	// Stopping are, by id, the allocations whose mark could not be withdrawn: the servers already
	// stop them, and they have not stopped yet.
	Stopping []cluster.AllocID
	// Moved are, by job, the allocations that the drain has moved off the node or is stopping.
	Moved []cluster.MovedAllocs
}

// CancelDrain ends the node's drain on request. It withdraws the drain's marks on allocations that
// the servers have not stopped, and its requests for replacements. Marks of other writers stay. The view is the state in which the
// entry is applied. If the node does not drain, CancelDrain changes only the eligibility, if the
// update requires it.
//
// The entry has an evaluation of each job with a withdrawn mark or request, because a scheduler may
// have to change its plan, and stops the replacements that stand by.
func CancelDrain(v rules.View, n *cluster.Node, u cluster.DrainUpdate, index uint64) Cancelled {
	at := u.At.UTC()
	c := Cancelled{Node: touch(n, at, index)}
	if u.MarkEligible || u.Undo && n.Draining() && n.Drain.EligibleBefore {
		c.Node.SchedulingEligibility = cluster.NodeEligible
	}
	if !n.Draining() {
		return c
	}
	for a := range v.DrainAllocs(n.Drain.ID) {
		switch {
		case a.ClientTerminal():
		case a.ServerTerminal():
			c.Stopping = append(c.Stopping, a.ID)
		default:
			c.Withdrawn = append(c.Withdrawn, withdrawn(a, at, index))
		}
	}
	c.Withdrawn = append(c.Withdrawn, requestsOf(v, n, at, index)...)
	slices.SortFunc(c.Withdrawn, func(a, b *cluster.Allocation) int { return cmp.Compare(a.ID, b.ID) })
	c.Moved = movedBy(v, n.Drain.ID)
	c.Record = record(n, cluster.OutcomeCancelled, len(c.Stopping), rules.Unconfirmed(v, n, cluster.OutcomeCancelled), at, index)
	noteRequest(c.Record, u)
	c.Node.Drain = nil
	c.Node.LastDrain = lastDrain(n, cluster.DrainStatusCanceled, at, u.Meta, u.UpdatedBy)
	appendEvent(c.Node, cluster.EventDrainDisabled, nil, at, index)
	return c
}

// requestsOf returns the next rows of the allocations on a draining node with a requested replacement, without the
// request. The scheduler then stops the replacements.
func requestsOf(v rules.View, n *cluster.Node, at time.Time, index uint64) (rows []*cluster.Allocation) {
	for _, s := range cluster.Stages() {
		for a := range v.NodeAllocs(n.ID, s, false) {
			if cluster.SurgeRequested(a, n) {
				rows = append(rows, withdrawn(a, at, index))
			}
		}
	}
	return rows
}

// movedBy counts, by job, the marked allocations of a drain that have left its node or are stopping.
func movedBy(v rules.View, id cluster.DrainID) (moved []cluster.MovedAllocs) {
	counts := map[cluster.JobKey]int{}
	for a := range v.DrainAllocs(id) {
		if a.Terminal() {
			counts[a.JobKey()]++
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(counts), cluster.JobKey.Compare) {
		moved = append(moved, cluster.MovedAllocs{Job: key, Allocs: counts[key]})
	}
	return moved
}

// noteRequest records a request in the drain that it started, changed or cancelled.
func noteRequest(d *cluster.Drain, u cluster.DrainUpdate) {
	if u.Key != "" {
		d.Keys = append(d.Keys, u.Key)
		d.Keys = d.Keys[max(0, len(d.Keys)-cluster.MaxDrainKeys):]
	}
	if len(u.Meta) > 0 {
		d.Meta = maps.Clone(u.Meta)
	}
	if u.UpdatedBy != "" {
		d.UpdatedBy = u.UpdatedBy
	}
}
