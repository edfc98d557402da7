package drain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// event is a change of a drain, and the time at which it happened by the servers' clocks. A zero time
// is not known.
type event struct {
	at   time.Time
	text string
}

// Follower holds the last known state of a drain and returns an event for each change. It
// does no input or output.
type Follower struct {
	Node string
	// Drain is the drain when the monitor begins, or empty if the servers are of an older build.
	Drain string
	// skipSystem means that system jobs need not stop, for every strategy.
	SkipSystem bool
	// strategy is the last one read, or nil before the first.
	Strategy *wire.DrainStrategy
	// allocs are the node's allocations as last read, by id, or nil before the first read.
	allocs  map[string]*wire.Allocation
	leaving leaving

	// drainEnded and allStopped are the two conditions of the monitor's end. cancelled
	// means that the drain ended by a cancel.
	DrainEnded, allStopped, cancelled bool
	// stoppedAt is the time of the last end of an allocation that was read, or zero. emptied means that
	// the event of an empty node was returned.
	stoppedAt time.Time
	emptied   bool
	// record is the record of the drain after its end, or nil. [FollowEnded] sets it before DrainEnded.
	record *wire.Drain
	// status is the node's status as last read, or empty. eligible means that it was eligible then.
	status   string
	eligible bool
	// held are the groups that have not moved, with their reasons; endsBy is the latest
	// end of the drain, or zero. Both come from the server. After the end of the drain held are
	// those that still stop.
	held   []heldGroup
	endsBy time.Time
	// endsAbout is when the drain ends about, or zero. endsLater is the reason of the last event about it.
	endsAbout time.Time
	endsLater string
	// stalled is why the leader could not write, as last read, or empty. placed is the number of
	// allocations placed on the node that the last event about them had.
	stalled string
	placed  int
	// paused is what pauses the drain, as last read, or empty.
	paused string
	// reported are the allocations left as the server last reported them.
	reported []wire.DrainAlloc
	// nothingLeft means that the drain ended, and that all that had to leave has stopped.
	nothingLeft bool
	// endObserved is when the end of the drain was read, by the clock of the monitor.
	endObserved time.Time
	// GaveUp means that the drain ended by its deadline or by force, and the monitor waits no longer for those that
	// still stop.
	GaveUp bool
}

// FollowEnded returns a Follower of a drain that has ended already, with its record.
func FollowEnded(n *wire.Node, record *wire.Drain) Follower {
	return Follower{Node: n.ID, Drain: record.ID, Strategy: record.Strategy, record: record, status: n.Status}
}

// over reports whether the monitor can end.
func (f *Follower) over() bool { return f.DrainEnded && (f.allStopped || f.cancelled || f.GaveUp) }

// updateNode returns the changes of the node. The record is that of its last drain if the node
// no longer drains, or nil.
func (f *Follower) updateNode(n *wire.Node, record *wire.Drain) (events []event) {
	const down = string(cluster.NodeDown)
	if n.Status == down && f.status != down && !f.DrainEnded {
		events = append(events, event{unixTime(n.StatusUpdatedAt, 0), fmt.Sprintf("Node %q down", n.ID)})
	}
	f.status, f.eligible = n.Status, n.SchedulingEligibility == string(cluster.NodeEligible)
	strategy := n.DrainStrategy
	switch {
	case f.DrainEnded:
		return nil // the node is read on only because it may become eligible
	case strategy == nil:
		f.DrainEnded, f.record = true, record
		left := f.Left() // those that came after the end do not count
		f.leaving.update(min(left, f.leaving.left))
		f.allStopped = f.allocs != nil && left == 0
		f.nothingLeft = record != nil && record.Outcome != string(cluster.OutcomeNone) && record.StillStopping == 0
		events = append(events, f.ended(n, record)...)
		f.held = nil
		events = append(events, f.empty()...)
		return append(events, f.lingering()...)
	case f.Strategy != nil && !sameStrategy(f.Strategy, strategy) && !movedByResume(n, f.Strategy, strategy):
		events = append(events, event{updatedAt(n), fmt.Sprintf("Node %q drain updated: %s", n.ID, cli.LimitText(strategy))})
	}
	f.Strategy, f.record = strategy, nil
	return events
}

// unixTime returns a Unix time, or zero for none.
func unixTime(seconds, nanoseconds int64) time.Time {
	if seconds == 0 && nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, nanoseconds)
}

// updatedAt returns the time of the last change of the node's drain, or zero.
func updatedAt(n *wire.Node) time.Time {
	if n.LastDrain == nil {
		return time.Time{}
	}
	return n.LastDrain.UpdatedAt.Time
}

func sameStrategy(a, b *wire.DrainStrategy) bool {
	return a.Deadline == b.Deadline && a.ForceDeadline.Equal(b.ForceDeadline.Time) && a.IgnoreSystemJobs == b.IgnoreSystemJobs && a.MaxSurge == b.MaxSurge
}

// ended returns how the drain ended. A cancelled drain is not complete.
func (f *Follower) ended(n *wire.Node, record *wire.Drain) (events []event) {
	at := updatedAt(n)
	if record != nil {
		at = record.EndedAt.Time
	}
	if n.LastDrain == nil || n.LastDrain.Status != string(cluster.DrainStatusCanceled) {
		events = append(events, event{at, fmt.Sprintf("Drain complete for node %s", n.ID)})
		for _, line := range outcomeText(record) {
			events = append(events, event{at, line})
		}
		return events
	}
	f.cancelled = true
	line := fmt.Sprintf("Drain of node %q was cancelled", n.ID)
	if why := n.LastDrain.Meta["cancel_message"]; why != "" {
		line += ": " + cli.SingleLine(why)
	}
	events = append(events, event{at, line})
	for _, line := range outcomeText(record) {
		events = append(events, event{at, line})
	}
	return events
}

// NotCopied returns how many allocations had data that no replacement had when the drain ended.
func (f *Follower) NotCopied() int {
	if f.record == nil || f.record.DataNotCopied == nil {
		return 0
	}
	return f.record.DataNotCopied.Count
}

// NotCopiedLines returns lines that name the allocations of an ended drain whose data no replacement had.
func NotCopiedLines(record *wire.Drain) (lines []string) {
	if record.DataNotCopied == nil {
		return nil
	}
	for _, id := range record.DataNotCopied.Allocs {
		lines = append(lines, "Data not copied: allocation "+id)
	}
	if more := record.DataNotCopied.Count - len(record.DataNotCopied.Allocs); more > 0 {
		lines = append(lines, fmt.Sprintf("Data not copied: %s more", cli.Count(more, "allocation")))
	}
	return lines
}

// outcomeText returns the outcome of an ended drain if it is more than "complete" or "cancelled", and names the
// data and the volumes that it left.
func outcomeText(record *wire.Drain) (lines []string) {
	if record == nil || record.Outcome == string(cluster.OutcomeNone) {
		return nil
	}
	text := outcomeWord(record)
	if record.StillStopping > 0 {
		text += fmt.Sprintf("; %s still stopping", cli.Count(record.StillStopping, "allocation"))
	}
	if record.Unconfirmed > 0 {
		text += "; " + cli.Count(record.Unconfirmed, "unconfirmed allocation")
	}
	text += confirmedText(record)
	if record.DataNotCopied != nil {
		text += fmt.Sprintf("; data of %s not copied", cli.Count(record.DataNotCopied.Count, "allocation"))
	}
	if text != string(cluster.OutcomeComplete) && text != string(cluster.OutcomeCancelled) {
		lines = append(lines, "Outcome: "+text)
	}
	lines = append(lines, NotCopiedLines(record)...)
	if record.VolumesLeft == nil {
		return lines
	}
	for _, v := range record.VolumesLeft.Volumes {
		lines = append(lines, cli.SingleLine("Left on the node: "+volumeText(v)))
	}
	if more := record.VolumesLeft.More; more > 0 {
		lines = append(lines, fmt.Sprintf("Left on the node: %s more", cli.Count(more, "volume")))
	}
	return lines
}

// volumeText names a volume that is still on a node, and why.
func volumeText(v wire.VolumeHold) string {
	text := fmt.Sprintf("volume %s of allocation %s", cli.JobName(v.Namespace, v.Volume), v.AllocID)
	if v.Path != "" {
		text += " at " + v.Path
	}
	if v.Reason != "" {
		text += ": " + v.Reason
	}
	return text
}

// updateAllocs returns the changes of the node's allocations.
func (f *Follower) updateAllocs(list []*wire.Allocation) (events []event) {
	before := f.allocs
	f.allocs = make(map[string]*wire.Allocation, len(list))
	for _, a := range list {
		if was := before[a.ID]; was != nil {
			events = append(events, changes(was, a)...)
			if at := unixTime(0, a.ModifyTime); alloc.Alive(was) && !alloc.Alive(a) && at.After(f.stoppedAt) {
				f.stoppedAt = at
			}
		}
		f.allocs[a.ID] = a
	}
	left := f.Left()
	f.leaving.update(left)
	f.allStopped = left == 0
	f.emptied = f.emptied && f.allStopped
	events = append(events, f.empty()...)
	return append(events, f.lingering()...)
}

// empty returns the event of a node without allocations that have to stop. It waits for the end of the
// drain, because only the record counts the allocations whose rows were deleted while they ran.
func (f *Follower) empty() []event {
	if !f.DrainEnded || f.cancelled || !f.allStopped || f.emptied {
		return nil
	}
	f.emptied = true
	at := f.stoppedAt
	if f.record != nil && f.record.EndedAt.After(at) {
		at = f.record.EndedAt.Time // the text may follow the lines of the end, also if they were read earlier
	}
	return []event{{at, f.emptyText()}}
}

// changes returns the changes of an allocation between two reads, oldest first. A slow read
// can find several.
func changes(was, is *wire.Allocation) (events []event) {
	if surgeRequested(is) && !surgeRequested(was) {
		events = append(events, event{is.DesiredTransition.SurgeAt.Time, fmt.Sprintf("Alloc %q replacement requested", is.ID)})
	}
	if marked(is) && !marked(was) {
		events = append(events, event{is.DesiredTransition.MarkedAt.Time, fmt.Sprintf("Alloc %q marked for migration", is.ID)})
	}
	if marked(is) && was.DesiredStatus != is.DesiredStatus && is.DesiredStatus == string(cluster.DesiredStop) {
		events = append(events, event{is.StoppedAt.Time, fmt.Sprintf("Alloc %q draining", is.ID)})
	}
	if was.ClientStatus != is.ClientStatus {
		events = append(events, event{unixTime(0, is.ModifyTime), fmt.Sprintf("Alloc %q status %s -> %s", is.ID, was.ClientStatus, is.ClientStatus)})
	}
	return events
}

// surgeRequested reports whether a drain has requested a replacement before it marks the allocation.
func surgeRequested(a *wire.Allocation) bool {
	return a.DesiredTransition != nil && a.DesiredTransition.SurgeDrainID != ""
}

// marked reports whether a drain marked the allocation.
func marked(a *wire.Allocation) bool {
	return a.DesiredTransition != nil && a.DesiredTransition.Migrate != nil && *a.DesiredTransition.Migrate
}

// counts reports whether the progress has a meaning: not for a drain that has ended and left nothing to count.
func (f *Follower) counts() bool {
	return f.allocs != nil && (f.record == nil || f.DrainEnded && !f.cancelled && f.leaving.most > 0)
}

// progress returns the progress of the drain.
func (f *Follower) progress(now time.Time) drainProgress {
	l := drainProgress{leaving: f.leaving, rounds: roundsLeft(f.reported, f.Strategy, now), endsBy: f.endsBy, endsAbout: f.endsAbout, held: f.held, at: now}
	if f.DrainEnded {
		l.endsBy, l.endsAbout, l.rounds = time.Time{}, time.Time{}, 0
	}
	return l
}

// heldGroup counts the allocations of a group that have not moved for one reason.
type heldGroup struct {
	group, reason string
	count         int
	// detail is the detail of the group's first allocation, cause what causes its reason, and see the
	// command that shows more. Each may be empty.
	detail, cause, see string
	// since is when the reason began to hold for the first of them, or zero.
	since time.Time
}

func (h heldGroup) String() string {
	text := fmt.Sprintf("%d of %s: %s", h.count, h.group, h.reason)
	if h.detail != "" && h.detail != h.reason {
		text += ": " + h.detail
	}
	if h.cause != "" {
		text += "; " + h.cause
	}
	if h.see != "" && !onItsWay(h.reason) {
		text += "; see: " + h.see
	}
	return cli.SingleLine(text)
}

// short is the text for one row of a terminal: the cause, or the detail if there is none.
func (h heldGroup) short() string {
	if h.cause != "" {
		h.detail, h.cause = cli.ShortIDs(h.cause), ""
	}
	h.see = ""
	return h.String()
}

// updateReport stores why allocations have not moved, and returns an event for each group with
// a new reason.
func (f *Follower) updateReport(r *wire.NodeDrain) (events []event) {
	if r.Progress == nil || f.DrainEnded {
		return nil // the drain has ended, or this server does not lead
	}
	before := f.held
	f.held, f.endsBy, f.endsAbout, f.reported = heldGroups(r.Allocs), r.Progress.EndsBy.Time, r.Progress.EndsAbout.Time, r.Allocs
	events = append(f.pausing(r.Drain), f.foreign(r.Progress)...)
	for _, h := range f.held {
		known := slices.ContainsFunc(before, func(o heldGroup) bool { return o.group == h.group && o.reason == h.reason })
		if !known && !onItsWay(h.reason) && h.reason != rules.ReasonPaused.String() {
			events = append(events, event{h.since, "Waiting: " + h.String()})
		}
	}
	return events
}

// foreign returns the events about what no drain causes: a leader that cannot write, when that begins,
// and allocations that were placed on the node, each time that their number has doubled.
func (f *Follower) foreign(p *wire.DrainProgress) (events []event) {
	if p.Stalled != "" && f.stalled == "" {
		events = append(events, event{text: "Stalled: " + cli.SingleLine(cli.LocalTimes(p.Stalled))})
	}
	f.stalled = p.Stalled
	if p.EndsLater != f.endsLater {
		if f.endsLater = p.EndsLater; p.EndsLater != "" {
			events = append(events, event{text: fmt.Sprintf("Ends later, at about %s: %s", cli.Clock(p.EndsAbout), cli.SingleLine(p.EndsLater))})
		}
	}
	if p.Placed > 0 && p.Placed >= 2*f.placed {
		f.placed = p.Placed
		events = append(events, event{text: "Placed: " + cli.SingleLine(PlacedText(p))})
	}
	return events
}

// PlacedText returns how many allocations were placed on the node of a drain after it began, and the newest
// of them, or empty if there are none.
func PlacedText(p *wire.DrainProgress) string {
	if p.Placed == 0 {
		return ""
	}
	text := cli.Count(p.Placed, "allocation") + " after the drain began, which a scheduler must not do"
	if n := p.NewestPlaced; n != nil {
		text += fmt.Sprintf("; the newest is %s of job %s", n.AllocID, cli.JobName(n.Namespace, n.JobID))
	}
	return text
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
			held = append(held, heldGroup{group: group, reason: a.Reason, detail: cli.LocalTimes(a.Detail),
				cause: cli.LocalTimes(a.Cause), see: a.See, since: a.Since.Time})
		}
		held[i].count++
		if at := a.Since.Time; !at.IsZero() && at.Before(held[i].since) {
			held[i].since = at
		}
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

// lingering returns an event for each group that still stops after the end of a drain that did not wait for
// it, with what its first allocation waits for, when that changes. The servers explain no drain that has ended, so it follows from
// what the clients report. A task may never end, such as one whose driver is off.
func (f *Follower) lingering() (events []event) {
	if !f.DrainEnded || f.cancelled || f.nothingLeft {
		return nil
	}
	var left []wire.DrainAlloc
	for _, id := range slices.Sorted(maps.Keys(f.allocs)) {
		if a := f.allocs[id]; alloc.Alive(a) && !f.Stays(a) {
			left = append(left, wire.DrainAlloc{
				Namespace: a.Namespace, JobID: a.JobID, TaskGroup: a.TaskGroup, Reason: rules.ReasonStopping.String(), Detail: stoppingText(a),
			})
		}
	}
	before := f.held
	f.held = heldGroups(left)
	for _, h := range f.held {
		if !slices.ContainsFunc(before, func(o heldGroup) bool { return o.String() == h.String() }) {
			events = append(events, event{text: "Waiting: " + h.String()})
		}
	}
	return events
}

// stoppingText returns what an allocation waits for, as far as its client has reported it.
func stoppingText(a *wire.Allocation) string {
	var waits []string
	for _, name := range slices.Sorted(maps.Keys(a.TaskStates)) {
		if s := a.TaskStates[name]; s != nil && s.Waiting != nil {
			// Without the time that is left: the text is new when the wait is.
			waits = append(waits, fmt.Sprintf("task %q waits for %s", name, cli.WaitText(s.Waiting, s.Waiting.Until.Time)))
		}
	}
	return cmp.Or(strings.Join(waits, "; "), a.ClientDescription, "its client does not report what it waits for")
}

// leaving counts the allocations that a drain moves. Its zero value has counted nothing.
type leaving struct {
	left int
	// most is how many there were to leave: those that left and those that are left.
	most int
}

// update records the number of allocations left. If it grew, new allocations have come.
func (l *leaving) update(left int) {
	l.most += max(0, left-l.left)
	l.left = left
}

// roundsLeft returns the minimum number of rounds until the node is empty. A group of a service
// leaves max_parallel allocations in a round, or max_surge with a replacement beside them; each other
// stage leaves in one. Groups leave side by side, and the stages one after the other. There may be
// more rounds, because allocations on other nodes share the pace. A time would be a guess: how long a round takes is known only afterwards.
func roundsLeft(allocs []wire.DrainAlloc, s *wire.DrainStrategy, now time.Time) (rounds int) {
	atOnce := s != nil && (s.Deadline < 0 || s.Deadline > 0 && !now.Before(s.ForceDeadline.Time))
	groups := map[[3]string]int{} // by namespace, job and group
	byStage := map[string]int{}
	for _, a := range allocs {
		if a.Reason == rules.ReasonLeftByRequest.String() {
			continue
		}
		needs := 1
		if a.Stage == cluster.StageConsumers.String() && a.MaxParallel > 0 && !atOnce {
			key := [3]string{a.Namespace, a.JobID, a.TaskGroup}
			groups[key]++
			most := cmp.Or(a.MaxSurge, a.MaxParallel)
			needs = (groups[key] + most - 1) / most
		}
		byStage[a.Stage] = max(byStage[a.Stage], needs)
	}
	for _, needs := range byStage {
		rounds += needs
	}
	return rounds
}
