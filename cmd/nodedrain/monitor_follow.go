package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// follower knows what has been seen of a drain, and says of what is seen next what is new
// in it. It neither waits nor speaks to anybody.
type follower struct {
	node string
	// skipSystem leaves system jobs out of what has to stop, whatever the strategy says.
	skipSystem bool
	// strategy was seen last, or nil if none has been yet.
	strategy *wire.DrainStrategy
	// allocs are the node's allocations as seen last, by id, or nil if they have not been.
	allocs map[string]*wire.Allocation
	pace   pacer

	// drainEnded and allStopped say what of the drain is over; cancelled how it ended.
	drainEnded, allStopped, cancelled bool
	// held are the groups that have not moved, and why; endsBy is when the drain ends at
	// the latest, or zero. Both are the server's word.
	held   []heldGroup
	endsBy time.Time
}

// over reports whether there is nothing left to be seen.
func (f *follower) over() bool { return f.drainEnded && (f.allStopped || f.cancelled) }

// sawNode tells of the node. The record is that of its last drain if it does not drain any
// more, or nil.
func (f *follower) sawNode(n *wire.Node, record *wire.Drain) (lines []string) {
	if n.Status == string(cluster.NodeDown) && !f.drainEnded {
		lines = append(lines, fmt.Sprintf("Node %q down", n.ID))
	}
	strategy := n.DrainStrategy
	switch {
	case strategy == nil:
		f.drainEnded = true
		return append(lines, f.ended(n, record)...)
	case f.strategy != nil && !sameStrategy(f.strategy, strategy):
		lines = append(lines, fmt.Sprintf("Node %q drain updated: %s", n.ID, strategyText(strategy)))
	}
	f.strategy = strategy
	return lines
}

func sameStrategy(a, b *wire.DrainStrategy) bool {
	return a.Deadline == b.Deadline && a.ForceDeadline.Equal(b.ForceDeadline.Time) && a.IgnoreSystemJobs == b.IgnoreSystemJobs
}

func strategyText(s *wire.DrainStrategy) string {
	if s.IgnoreSystemJobs {
		return fmt.Sprintf("drain ignoring system jobs and deadline at %s", s.ForceDeadline)
	}
	return fmt.Sprintf("drain with deadline at %s", s.ForceDeadline)
}

// ended tells how the drain ended. One that was cancelled is not complete.
func (f *follower) ended(n *wire.Node, record *wire.Drain) []string {
	if n.LastDrain == nil || n.LastDrain.Status != string(cluster.DrainStatusCanceled) {
		return append([]string{fmt.Sprintf("Drain complete for node %s", n.ID)}, outcomeText(record)...)
	}
	f.cancelled = true
	line := fmt.Sprintf("Drain of node %q was cancelled", n.ID)
	if why := n.LastDrain.Meta["cancel_message"]; why != "" {
		line += ": " + singleLine(why)
	}
	return []string{line}
}

// outcomeText says of a drain that ended what "complete" does not, if anything.
func outcomeText(record *wire.Drain) []string {
	switch {
	case record == nil || record.Outcome == string(cluster.OutcomeNone):
		return nil
	case record.StillStopping > 0:
		return []string{fmt.Sprintf("Outcome: %s; %s still stopping", record.Outcome, counted(record.StillStopping, "allocation"))}
	case record.Outcome == string(cluster.OutcomeComplete):
		return nil
	}
	return []string{"Outcome: " + record.Outcome}
}

// sawAllocs tells of the allocations on the node.
func (f *follower) sawAllocs(list []*wire.Allocation, now time.Time) (lines []string) {
	before := f.allocs
	f.allocs = make(map[string]*wire.Allocation, len(list))
	for _, a := range list {
		if was := before[a.ID]; was != nil {
			lines = append(lines, changes(was, a)...)
		}
		f.allocs[a.ID] = a
	}
	left := f.left()
	f.pace.saw(left, now)
	if left == 0 {
		f.allStopped = true
		lines = append(lines, fmt.Sprintf("All allocations on node %q have stopped", f.node))
	}
	return lines
}

// changes are what happened to an allocation since it was seen before, oldest first:
// reads that were slow see several at once.
func changes(was, is *wire.Allocation) (lines []string) {
	if marked(is) && !marked(was) {
		lines = append(lines, fmt.Sprintf("Alloc %q marked for migration", is.ID))
	}
	if marked(is) && was.DesiredStatus != is.DesiredStatus && is.DesiredStatus == string(cluster.DesiredStop) {
		lines = append(lines, fmt.Sprintf("Alloc %q draining", is.ID))
	}
	if was.ClientStatus != is.ClientStatus {
		lines = append(lines, fmt.Sprintf("Alloc %q status %s -> %s", is.ID, was.ClientStatus, is.ClientStatus))
	}
	return lines
}

// left counts what has to stop and has not.
func (f *follower) left() (n int) {
	for _, a := range f.allocs {
		if alive := a.ClientStatus == string(cluster.ClientPending) || a.ClientStatus == string(cluster.ClientRunning); alive && !f.stays(a) {
			n++
		}
	}
	return n
}

// stays reports whether the allocation has not to leave: system jobs may be left where
// they are, unless others unmount through them.
func (f *follower) stays(a *wire.Allocation) bool {
	skip := f.skipSystem || f.strategy != nil && f.strategy.IgnoreSystemJobs
	return skip && jobType(a) == string(cluster.JobSystem) && !isPlugin(a.Job)
}

// jobType is the type of an allocation's job, or empty if it is not known.
func jobType(a *wire.Allocation) string {
	if a.Job == nil || a.Job.Type == nil {
		return ""
	}
	return *a.Job.Type
}

// isPlugin reports whether a job has a storage plugin, which all of it counts as then.
func isPlugin(j *wire.Job) bool {
	return slices.ContainsFunc(j.TaskGroups, func(g *wire.TaskGroup) bool {
		return slices.ContainsFunc(g.Tasks, func(t *wire.Task) bool { return t.CSIPluginConfig != nil })
	})
}

// marked reports whether an allocation was asked to leave.
func marked(a *wire.Allocation) bool {
	return a.DesiredTransition != nil && a.DesiredTransition.Migrate != nil && *a.DesiredTransition.Migrate
}

// look is how far the drain is.
func (f *follower) look(now time.Time) drainLook {
	l := drainLook{pace: f.pace, endsBy: f.endsBy, held: f.held, at: now}
	if f.drainEnded {
		l.held, l.endsBy = nil, time.Time{}
	}
	return l
}

// heldGroup is a group some of which has not moved, all for the same reason.
type heldGroup struct {
	group, reason string
	count         int
	// detail is that of its first allocation.
	detail string
}

func (h heldGroup) String() string {
	text := fmt.Sprintf("%d of %s: %s", h.count, h.group, h.reason)
	if h.detail != "" && h.detail != h.reason {
		text += ": " + h.detail
	}
	return singleLine(text)
}

// sawReport notes why what is left has not moved, and tells of groups that wait for
// something they did not wait for before.
func (f *follower) sawReport(r *wire.NodeDrain) (lines []string) {
	if r.Progress == nil {
		return nil // ended, or not said by this server
	}
	before := f.held
	f.held, f.endsBy = heldGroups(r.Allocs), r.Progress.EndsBy.Time
	for _, h := range f.held {
		known := slices.ContainsFunc(before, func(o heldGroup) bool { return o.group == h.group && o.reason == h.reason })
		if !known && !onItsWay(h.reason) {
			lines = append(lines, "Waiting: "+h.String())
		}
	}
	return lines
}

// onItsWay reports whether what has this reason moves: lines of its own tell of it.
func onItsWay(reason string) bool {
	moving := [...]rules.Reason{rules.ReasonLeftByRequest, rules.ReasonWritePending, rules.ReasonStopping, rules.ReasonWaitingForScheduler}
	return slices.ContainsFunc(moving[:], func(r rules.Reason) bool { return r.String() == reason })
}

// heldGroups sums up the allocations left: those that do not move first, the largest
// first, then by group.
func heldGroups(allocs []wire.DrainAlloc) (held []heldGroup) {
	for _, a := range allocs {
		group := a.Namespace + "/" + a.JobID + "." + a.TaskGroup
		i := slices.IndexFunc(held, func(h heldGroup) bool { return h.group == group && h.reason == a.Reason })
		if i < 0 {
			i = len(held)
			held = append(held, heldGroup{group: group, reason: a.Reason, detail: a.Detail})
		}
		held[i].count++
	}
	slices.SortStableFunc(held, func(a, b heldGroup) int {
		return cmp.Or(compareBools(onItsWay(a.reason), onItsWay(b.reason)), -cmp.Compare(a.count, b.count), strings.Compare(a.group, b.group))
	})
	return held
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
