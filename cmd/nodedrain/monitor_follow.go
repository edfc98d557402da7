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

// follower holds the last known state of a drain and returns a line for each change. It
// does no input or output.
type follower struct {
	node string
	// skipSystem means that system jobs need not stop, for every strategy.
	skipSystem bool
	// strategy is the last one read, or nil before the first.
	strategy *wire.DrainStrategy
	// allocs are the node's allocations as last read, by id, or nil before the first read.
	allocs  map[string]*wire.Allocation
	leaving leaving

	// drainEnded and allStopped are the two conditions of the monitor's end. cancelled
	// means that the drain ended by a cancel.
	drainEnded, allStopped, cancelled bool
	// held are the groups that have not moved, with their reasons; endsBy is the latest
	// end of the drain, or zero. Both come from the server.
	held   []heldGroup
	endsBy time.Time
	// reported are the allocations left as the server last reported them.
	reported []wire.DrainAlloc
}

// over reports whether the monitor can end.
func (f *follower) over() bool { return f.drainEnded && (f.allStopped || f.cancelled) }

// sawNode returns the changes of the node. The record is that of its last drain if the node
// no longer drains, or nil.
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

// ended returns how the drain ended. A cancelled drain is not complete.
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

// outcomeText returns the outcome of an ended drain if it says more than "complete".
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

// sawAllocs returns the changes of the node's allocations.
func (f *follower) sawAllocs(list []*wire.Allocation) (lines []string) {
	before := f.allocs
	f.allocs = make(map[string]*wire.Allocation, len(list))
	for _, a := range list {
		if was := before[a.ID]; was != nil {
			lines = append(lines, changes(was, a)...)
		}
		f.allocs[a.ID] = a
	}
	left := f.left()
	f.leaving.saw(left)
	if left == 0 {
		f.allStopped = true
		lines = append(lines, fmt.Sprintf("All allocations on node %q have stopped", f.node))
	}
	return lines
}

// changes returns the changes of an allocation between two reads, oldest first. A slow read
// can find several.
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

// left counts the allocations that still have to stop.
func (f *follower) left() (n int) {
	for _, a := range f.allocs {
		if alive(a) && !f.stays(a) {
			n++
		}
	}
	return n
}

// alive reports whether an allocation runs or starts.
func alive(a *wire.Allocation) bool {
	return a.ClientStatus == string(cluster.ClientPending) || a.ClientStatus == string(cluster.ClientRunning)
}

// stays reports whether the allocation need not leave: the drain may ignore system jobs,
// except storage plugins.
func (f *follower) stays(a *wire.Allocation) bool {
	skip := f.skipSystem || f.strategy != nil && f.strategy.IgnoreSystemJobs
	return skip && jobType(a) == string(cluster.JobSystem) && !isPlugin(a.Job)
}

// jobType returns the type of an allocation's job, or empty if it is not known.
func jobType(a *wire.Allocation) string {
	if a.Job == nil || a.Job.Type == nil {
		return ""
	}
	return *a.Job.Type
}

// isPlugin reports whether a job has a storage plugin. Then all its allocations count as
// plugins.
func isPlugin(j *wire.Job) bool {
	return slices.ContainsFunc(j.TaskGroups, func(g *wire.TaskGroup) bool {
		return slices.ContainsFunc(g.Tasks, func(t *wire.Task) bool { return t.CSIPluginConfig != nil })
	})
}

// marked reports whether a drain marked the allocation.
func marked(a *wire.Allocation) bool {
	return a.DesiredTransition != nil && a.DesiredTransition.Migrate != nil && *a.DesiredTransition.Migrate
}

// look returns the progress of the drain.
func (f *follower) look(now time.Time) drainLook {
	l := drainLook{leaving: f.leaving, rounds: roundsLeft(f.reported, f.strategy, now), endsBy: f.endsBy, held: f.held, at: now}
	if f.drainEnded {
		l.held, l.endsBy, l.rounds = nil, time.Time{}, 0
	}
	return l
}

// heldGroup counts the allocations of a group that have not moved for one reason.
type heldGroup struct {
	group, reason string
	count         int
	// detail is the detail of the group's first allocation.
	detail string
}

func (h heldGroup) String() string {
	text := fmt.Sprintf("%d of %s: %s", h.count, h.group, h.reason)
	if h.detail != "" && h.detail != h.reason {
		text += ": " + h.detail
	}
	return singleLine(text)
}

// sawReport stores why allocations have not moved, and returns a line for each group with
// a new reason.
func (f *follower) sawReport(r *wire.NodeDrain) (lines []string) {
	if r.Progress == nil {
		return nil // the drain has ended, or this server does not lead
	}
	before := f.held
	f.held, f.endsBy, f.reported = heldGroups(r.Allocs), r.Progress.EndsBy.Time, r.Allocs
	for _, h := range f.held {
		known := slices.ContainsFunc(before, func(o heldGroup) bool { return o.group == h.group && o.reason == h.reason })
		if !known && !onItsWay(h.reason) {
			lines = append(lines, "Waiting: "+h.String())
		}
	}
	return lines
}

// onItsWay reports whether an allocation with this reason is moving. Lines of its own
// report it.
func onItsWay(reason string) bool {
	moving := [...]rules.Reason{rules.ReasonLeftByRequest, rules.ReasonWritePending, rules.ReasonStopping, rules.ReasonWaitingForScheduler}
	return slices.ContainsFunc(moving[:], func(r rules.Reason) bool { return r.String() == reason })
}

// heldGroups sums up the allocations left: first the groups that do not move, then by
// count, largest first, then by name.
func heldGroups(allocs []wire.DrainAlloc) (held []heldGroup) {
	for _, a := range allocs {
		group := a.Namespace + "/" + a.JobID + "." + a.TaskGroup
		i := slices.IndexFunc(held, func(h heldGroup) bool { return h.group == group && h.reason == a.Reason })
		if i < 0 {
			i = len(held)
			held = append(held, heldGroup{group: group, reason: a.Reason, detail: localTimes(a.Detail)})
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
