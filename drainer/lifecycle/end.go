package lifecycle

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// EndDrain ends the node's drain with an ending of [rules.RecheckCompletions]. It returns the
// node's next row and the record of the drain. The node stays ineligible. It returns nil for both
// if the node is nil or is not in that drain.
func EndDrain(n *cluster.Node, e rules.Ending, at time.Time, index uint64) (after *cluster.Node, ended *cluster.Drain) {
	if !n.Draining() || n.Drain.ID != e.Drain {
		return nil, nil
	}
	at = at.UTC()
	after = touch(n, at, index)
	after.Drain = nil
	after.LastDrain = lastDrain(n, cluster.DrainStatusComplete, at, nil, "")
	appendEvent(after, cluster.EventDrainComplete, endDetails(e), at, index)
	ended = record(n, e.Outcome, e.StillStopping, e.Unconfirmed, at, index)
	ended.VolumesLeft, ended.DataNotCopied = e.VolumesLeft, e.DataNotCopied
	return after, ended
}

// endDetails returns the details of the event of a drain's end, or nil.
func endDetails(e rules.Ending) map[string]string {
	details := map[string]string{}
	if e.Outcome == cluster.OutcomeDeadlineReached || e.Outcome == cluster.OutcomeForced {
		details[cluster.EventDetailDeadlineReached] = "true"
	}
	if left := e.VolumesLeft.Names(volumesInEvent); left != "" {
		details[cluster.EventDetailVolumesLeft] = left
	}
	if e.Unconfirmed != nil {
		details[cluster.EventDetailUnconfirmed] = strconv.Itoa(e.Unconfirmed.Count)
	}
	if e.DataNotCopied != nil {
		details[cluster.EventDetailDataNotCopied] = strconv.Itoa(e.DataNotCopied.Count)
	}
	if len(details) == 0 {
		return nil
	}
	return details
}

// NameOutcome adds the outcome of a drain, and what its record counts, to the message of the event of its
// end: the last event of a node that [EndDrain] or [CancelDrain] returned. The message of a drain that ended
// without remarks stays. A server of an older build writes every message without the outcome, so a store
// calls NameOutcome from [cluster.VersionOfData] on.
func NameOutcome(after *cluster.Node, ended *cluster.Drain) {
	if text := outcomeText(ended); text != string(cluster.OutcomeComplete) && text != string(cluster.OutcomeCancelled) {
		after.Events[len(after.Events)-1].Message += ", outcome: " + text
	}
}

// outcomeText returns the outcome of an ended drain and what its record counts. Only a drain that is complete
// when all allocations are marked can be complete beside allocations that have not stopped.
func outcomeText(d *cluster.Drain) string {
	text := string(d.Outcome)
	if d.Outcome == cluster.OutcomeComplete && (d.StillStopping > 0 || d.CountUnconfirmed() > 0) {
		text += " (all were marked, not all had stopped)"
	}
	if d.StillStopping > 0 {
		text += fmt.Sprintf("; %d still stopping", d.StillStopping)
	}
	if n := d.CountUnconfirmed(); n > 0 {
		text += "; " + plural(n, "unconfirmed allocation")
	}
	if v := d.VolumesLeft; v != nil {
		text += "; " + plural(len(v.Volumes)+v.More, "volume") + " left on the node"
	}
	if d.DataNotCopied != nil {
		text += "; data of " + plural(d.DataNotCopied.Count, "allocation") + " not copied"
	}
	return text
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// volumesInEvent bounds the volumes that the event of a drain's end names, because a node keeps
// several events.
const volumesInEvent = 4

// NodeGone returns the record of the drain of a node that is deleted, or nil if the node does not
// drain. The view is the state in which the entry is applied. The node's allocations stay in the
// state, so that the scheduler finds that they are lost.
func NodeGone(v rules.View, n *cluster.Node, at time.Time, index uint64) *cluster.Drain {
	if !n.Draining() {
		return nil
	}
	d := record(n, cluster.OutcomeNodeGone, rules.CountLeft(v, n), rules.Unconfirmed(v, n, cluster.OutcomeNodeGone), at.UTC(), index)
	d.DataNotCopied = rules.DataNotCopied(v, n)
	return d
}

// record returns the record of the node's drain, which ends now.
func record(n *cluster.Node, o cluster.Outcome, stillStopping int, u *cluster.UnconfirmedAllocs, at time.Time, index uint64) *cluster.Drain {
	d := n.Drain.Copy()
	d.NodeName = n.Name
	d.Outcome, d.EndedAt, d.StillStopping, d.Unconfirmed = o, at, stillStopping, u
	d.EndIndex = index
	return d
}

// touch returns a copy of the node with the time and index of a write.
func touch(n *cluster.Node, at time.Time, index uint64) *cluster.Node {
	c := n.Copy()
	c.StatusUpdatedAt = at.Unix()
	c.ModifyIndex = index
	return c
}

func appendEvent(n *cluster.Node, message string, details map[string]string, at time.Time, index uint64) {
	n.AppendEvent(cluster.NodeEvent{Message: message, Subsystem: cluster.SubsystemDrain, Details: details, Timestamp: at}, index)
}

// lastDrain returns what the compatible API reports of the node's last drain, after a change of the
// drain.
func lastDrain(n *cluster.Node, s cluster.DrainStatus, at time.Time, meta map[string]string, by string) *cluster.DrainMetadata {
	at = at.Truncate(time.Second)
	last := n.LastDrain.Copy()
	switch {
	case !n.Draining(): // a new drain replaces it
		last = &cluster.DrainMetadata{StartedAt: at}
	case last == nil:
		last = &cluster.DrainMetadata{StartedAt: n.Drain.Strategy.StartedAt.Truncate(time.Second)}
	}
	last.UpdatedAt, last.Status = at, s
	if len(meta) > 0 {
		last.Meta = maps.Clone(meta)
	}
	if by != "" {
		last.AccessorID = by
	}
	return last
}
