package wire

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/journal"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// The states of a [NodeDrain].
const (
	// StateDraining: the node drains.
	StateDraining = "draining"
	// StateEnded: the node does not drain, and the record of its last drain is kept.
	StateEnded = "ended"
	// StateNone: the node does not drain, and nothing is known of a drain of it.
	StateNone = "none"
)

// NodeDrain answers GET /v1/node/{id}/drain: the node's drain, running or last. Ours.
type NodeDrain struct {
	NodeID string
	// NodeName is the node's name, or its name when it was last drained.
	NodeName string
	// State is draining, ended or none.
	State string
	// Drain is the drain that runs, or the record of the last one; nil if State is none.
	Drain *Drain
	// Progress is how far the running drain is; nil unless State is draining, and nil
	// from a server that does not lead.
	Progress *DrainProgress
	// Allocs are the allocations still on the draining node, by stage, then id; null
	// where Progress is.
	Allocs []DrainAlloc
	// ControllerCalls are the calls of controllers that fail: those that attach a volume to the node or
	// detach it, and those for volumes that groups with an allocation in Allocs request.
	ControllerCalls []ControllerCall `json:",omitempty"`
	// Recent are records of drains that have ended, newest first, the one in Drain not
	// among them.
	Recent []*Drain
}

// DrainList answers GET /v1/drains. Ours.
type DrainList struct {
	// Active are the drains that run, by node.
	Active []ActiveDrain
	// Recent are records of drains that have ended, newest first.
	Recent []*Drain
}

// ActiveDrain is a drain that runs.
type ActiveDrain struct {
	Drain *Drain
	// Progress is nil from a server that does not lead.
	Progress *DrainProgress
}

// Drain is one episode of draining one node. Ours.
type Drain struct {
	ID       string
	NodeID   string
	NodeName string
	// Revision is the index of the last write to Strategy or to the pause of the drain.
	Revision  uint64
	Strategy  *DrainStrategy
	UpdatedAt Time
	Meta      map[string]string
	UpdatedBy string
	// Marked counts the allocations that the drain marked, by class of mark. Classes without any
	// are left out.
	Marked map[string]int
	// PausedSince is since when the running drain is paused without a break, or null. PausedBy is then what pauses it:
	// "drain" is its own pause, "all" the pause of all drains, "drain and all" are both.
	PausedSince Time   `json:",omitzero"`
	PausedBy    string `json:",omitempty"`
	// PurgedRunning counts allocations whose records were purged while they may still
	// have been running.
	PurgedRunning int

	// Outcome is empty while the drain runs; EndedAt, StillStopping and EndIndex are set
	// with it.
	Outcome string
	EndedAt Time
	// StillStopping never changes. Unconfirmed contains these allocations until they end.
	StillStopping int
	// VolumesLeft are the volumes that allocations which had to leave still had on the node when the
	// drain ended, or null.
	VolumesLeft *VolumeHolds `json:",omitempty"`
	// DataNotCopied are the allocations whose data no replacement had when the drain ended, or null.
	DataNotCopied *DataNotCopied `json:",omitempty"`
	// Unconfirmed counts, after the end, the allocations that had to leave and whose end nothing
	// confirms: their tasks may still run. It falls when their ends are confirmed. UnconfirmedAllocs
	// names at most 20 of them, without those in Unlisted: these are the ones of Unconfirmed that the
	// node's client may run and that the servers do not list, or null.
	Unconfirmed       int
	UnconfirmedAllocs []string        `json:",omitempty"`
	Unlisted          *UnlistedAllocs `json:",omitempty"`
	// ConfirmedAt is when Unconfirmed fell to zero, or null. ConfirmedBy is the operator who confirmed
	// the drain, or empty.
	ConfirmedAt Time   `json:",omitzero"`
	ConfirmedBy string `json:",omitempty"`
	// ConfirmedByOther is the last confirmation of another drain of the node that lowered Unconfirmed, or
	// null.
	ConfirmedByOther *OtherConfirmation `json:",omitempty"`
	CreateIndex      uint64
	EndIndex         uint64
}

// NewDrain returns the drain without its idempotency keys. all is the pause of all drains, or nil.
func NewDrain(d *cluster.Drain, all *cluster.DrainPause) *Drain {
	w := &Drain{
		ID: string(d.ID), NodeID: string(d.NodeID), NodeName: d.NodeName, Revision: uint64(d.Revision),
		Strategy: newDrainStrategy(d.Strategy), UpdatedAt: NewTime(d.UpdatedAt), Meta: d.Meta, UpdatedBy: d.UpdatedBy,
		Marked: map[string]int{}, PurgedRunning: d.PurgedRunning,
		Outcome: string(d.Outcome), EndedAt: NewTime(d.EndedAt), StillStopping: d.StillStopping,
		VolumesLeft: newVolumeHolds(d.VolumesLeft), DataNotCopied: newDataNotCopied(d.DataNotCopied), CreateIndex: d.CreateIndex, EndIndex: d.EndIndex,
	}
	if d.Outcome == cluster.OutcomeNone {
		w.PausedSince, w.PausedBy = NewTime(d.PausedSince(all)), pausedBy(d, all)
	}
	if u := d.Unconfirmed; u != nil {
		w.Unconfirmed, w.UnconfirmedAllocs, w.Unlisted = u.Count, IDs(u.Allocs), newUnlistedAllocs(u.Unlisted)
		w.ConfirmedAt, w.ConfirmedBy = NewTime(u.ConfirmedAt), u.ConfirmedBy
		if o := u.Other; o != nil {
			w.ConfirmedByOther = &OtherConfirmation{Drain: string(o.Drain), By: o.By, At: NewTime(o.At), Allocs: o.Allocs}
		}
	}
	for class := range cluster.MarkClassCount {
		if count := d.Marked[class]; count > 0 {
			w.Marked[class.String()] = count
		}
	}
	return w
}

// The values of PausedBy of a [Drain].
const (
	PausedByDrain = "drain"
	PausedByAll   = "all"
	PausedByBoth  = "drain and all"
)

// pausedBy returns what pauses a running drain, or empty.
func pausedBy(d *cluster.Drain, all *cluster.DrainPause) string {
	switch own, held := d.Paused != nil, all.Holds(d); {
	case own && held:
		return PausedByBoth
	case own:
		return PausedByDrain
	case held:
		return PausedByAll
	}
	return ""
}

// OtherConfirmation is the confirmation of another drain of the same node by an operator. Ours.
type OtherConfirmation struct {
	Drain string
	// By is the operator.
	By string
	At Time
	// Allocs counts the allocations of the record that this and earlier such confirmations have confirmed.
	Allocs int
}

// DrainProgress is how far a running drain is. Ours.
type DrainProgress struct {
	// Left counts, by stage, the allocations that have to leave and have not ended.
	Left DrainStages
	// Ignored counts the allocations that stay by request.
	Ignored int
	// Unconfirmed counts the allocations whose end nothing confirms and for which the drain does not
	// wait. The record of the drain would count them, and those in Left, if the drain ended now.
	Unconfirmed int
	// Waiting counts the allocations still on the node by reason. Reasons without any
	// are left out.
	Waiting map[string]int
	// Reason is the worst of them: that of the allocation least likely to leave by
	// itself. Empty if none is left.
	Reason string
	// EndsAbout is when the drain ends about, by an estimate of the leader. It is null if the drain does not end as
	// things are, or if nothing is known of the times of its allocations. EndsLater is why that is later than
	// estimated before, or empty.
	EndsAbout Time
	EndsLater string `json:",omitempty"`
	// EndsBy is when the drain ends at the latest while a leader has a quorum; null if
	// there is no such time.
	EndsBy Time
	// Cause names what causes Reason for the first allocation that has it, and See is the command that
	// shows more. Both are empty if there is none, as in [DrainAlloc].
	Cause string `json:",omitempty"`
	See   string `json:",omitempty"`
	// Placed counts the allocations that a scheduler placed on the node after the drain began, which it
	// must not do. NewestPlaced is the newest of them, or null.
	Placed       int             `json:",omitempty"`
	NewestPlaced *DrainPlacement `json:",omitempty"`
	// Stalled is why the leader could not write for too long, or empty.
	Stalled string `json:",omitempty"`
}

// DrainStages are counts by the stage with which allocations leave.
type DrainStages struct {
	Consumers      int
	System         int
	StoragePlugins int
}

// NewDrainProgress returns the numbers of a running drain.
func NewDrainProgress(s *rules.Status) *DrainProgress {
	w := &DrainProgress{
		Left: DrainStages{
			Consumers: s.Left[cluster.StageConsumers], System: s.Left[cluster.StageSystem], StoragePlugins: s.Left[cluster.StagePlugins],
		},
		Ignored: s.Ignored, Unconfirmed: s.Unconfirmed, Waiting: map[string]int{}, EndsBy: NewTime(s.EndsBy), EndsAbout: NewTime(s.EndsAbout), EndsLater: s.EndsLater,
		Placed: s.Placed, NewestPlaced: newDrainPlacement(s.NewestPlaced), Stalled: s.Stalled,
	}
	if s.Worst != nil {
		w.Cause, w.See = s.Worst.Cause(), seeFor(s.Worst, s.Drain.NodeID)
	}
	for reason := range rules.ReasonCount {
		if count := s.Waiting[reason]; count > 0 {
			w.Waiting[reason.String()] = count
			w.Reason = s.Reason.String()
		}
	}
	return w
}

// DrainAlloc is why one allocation is still on its draining node. Ours.
type DrainAlloc struct {
	ID        string
	Namespace string
	JobID     string
	TaskGroup string
	// Stage is the stage with which it leaves: consumers, system or storage plugins.
	Stage string
	// Reason is one of a closed set; Detail holds its numbers in a readable line.
	Reason string
	Detail string
	// Since is the time at which the reason began to hold, null if unknown. SinceSeen reports that
	// it is the time at which this leader first observed it.
	Since     Time
	SinceSeen bool `json:",omitempty"`
	// Due is when the reason ends by itself or is overdue; null if there is no such time.
	Due Time

	// EvalID and EvalStatus are the evaluation that the reason names, or empty.
	EvalID     string `json:",omitempty"`
	EvalStatus string `json:",omitempty"`
	// Cause names in one line what causes the reason: an allocation, the missing ones of the group, or
	// an evaluation with the resources that are short. It is empty if that is the allocation itself.
	Cause string `json:",omitempty"`
	// Culprit is the allocation that Cause names, or null. Missing counts the allocations by which a
	// group below its budget is short of its count.
	Culprit *DrainCulprit `json:",omitempty"`
	Missing int           `json:",omitempty"`
	// See is the command that shows more about the cause, with whole ids, or empty.
	See string `json:",omitempty"`
	// Outstanding are the allocations that it waits for, by id, or nil.
	Outstanding []string `json:",omitempty"`
	// Waiting is what each stopping task waits for, by task, as far as the client reports it.
	Waiting map[string]*TaskWait `json:",omitempty"`
	// Attempts counts failed writes in a row, LastError is the last one's.
	Attempts  int    `json:",omitempty"`
	LastError string `json:",omitempty"`
	// Healthy, Count and MaxParallel are its group's numbers, of services alone.
	Healthy     int `json:",omitempty"`
	Count       int `json:",omitempty"`
	MaxParallel int `json:",omitempty"`
	// MaxSurge is how many allocations of its group may have their replacement beside them now: the larger max_surge of
	// the group and the drain. StopsFirst is why there is none although one of both has it, or empty.
	MaxSurge   int    `json:",omitempty"`
	StopsFirst string `json:",omitempty"`
}

// NewDrainAllocs returns the reasons on a node in their order, never nil.
func NewDrainAllocs(node cluster.NodeID, reports []rules.AllocExplanation) []DrainAlloc {
	list := make([]DrainAlloc, len(reports))
	for i := range reports {
		list[i] = newDrainAlloc(&reports[i])
		list[i].See = seeFor(&reports[i], node)
	}
	return list
}

func newDrainAlloc(r *rules.AllocExplanation) DrainAlloc {
	w := DrainAlloc{
		ID: string(r.Alloc), Namespace: string(r.Group.Job.Namespace), JobID: string(r.Group.Job.ID), TaskGroup: r.Group.Name,
		Stage: r.Stage.String(), Reason: r.Reason.String(), Detail: r.Detail,
		Since: NewTime(r.Since.At), SinceSeen: r.Since.Observed, Due: NewTime(r.Due),
		Cause: r.Cause(), Culprit: newDrainCulprit(r.Culprit), Missing: r.Missing,
		Outstanding: IDs(r.Outstanding), Attempts: r.Attempts,
		Healthy: r.Healthy, Count: r.Count, MaxParallel: r.MaxParallel,
	}
	if r.Eval != nil {
		w.EvalID, w.EvalStatus = string(r.Eval.ID), string(r.Eval.Status)
	}
	if r.LastError != nil {
		w.LastError = r.LastError.Error()
	}
	return w
}

// DrainStory is a drain and its journal.
type DrainStory struct {
	Drain *Drain
	// Journal is null if the servers have none: nothing has happened in the drain since cluster version 9.
	Journal *Journal
}

// Journal is what happened in a drain.
type Journal struct {
	// Plan is what a plan foretold of the drain, or null if the newest request had none.
	Plan *DrainPlan
	// Events are the events, oldest first. EventsOmitted counts those that are missing after the first EventsFirst.
	Events        []JournalEvent
	EventsFirst   int
	EventsOmitted int
	// Groups are, by namespace, job and group, the groups of which the drain has marked allocations. After its end they
	// are those that were farthest below their need, and GroupsOmitted counts the others.
	Groups        []JournalGroup
	GroupsOmitted int
}

// JournalEvent is one event of a drain. Fields that its kind does not have are zero.
type JournalEvent struct {
	// Kind is requested, changed, stage began, stage ended, deadline took, refused, ended, confirmed, paused or resumed.
	Kind  string
	Time  Time
	Index uint64
	// Text describes the event.
	Text string
	// By is the operator who caused the event, or empty.
	By string
	// Strategy is the requested strategy, or null.
	Strategy *DrainSpec `json:",omitempty"`
	Stage    string     `json:",omitempty"`
	Allocs   int        `json:",omitempty"`
	// Why is the reason of refusals, or the outcome.
	Why string `json:",omitempty"`
	// Until is the time of the last of several equal refusals, or null.
	Until Time `json:",omitzero"`
}

// JournalGroup is what a drain did to one group.
type JournalGroup struct {
	Namespace string
	JobID     string
	Group     string
	// Marked counts the allocations that the drain marked.
	Marked int
	// Lowest is how many allocations were healthy at least. Needed is how many the budget of the group required then;
	// below zero it permitted more than the count.
	Lowest, Needed int
	LowestAt       Time
	// LowestFor is how long Lowest were healthy, in nanoseconds, without the time since LowestSince. LowestSince
	// is null unless Lowest are healthy now.
	LowestFor   time.Duration
	LowestSince Time
	// Healthy counts the healthy allocations now, or at the end of the drain.
	Healthy int
}

// NewJournal returns a journal as it travels, or nil.
func NewJournal(j *journal.Journal) *Journal {
	if j == nil {
		return nil
	}
	w := &Journal{
		Plan: newDrainPlan(j.Plan), Events: []JournalEvent{}, EventsFirst: len(j.Events), EventsOmitted: j.EventsOmitted, Groups: []JournalGroup{}, GroupsOmitted: j.GroupsOmitted,
	}
	if j.EventsOmitted > 0 {
		w.EventsFirst = journal.FirstEvents
	}
	for _, e := range j.Events {
		event := JournalEvent{Kind: e.Kind.String(), Time: NewTime(e.At), Index: e.Index, Text: e.Text(), By: e.By, Allocs: e.Allocs, Why: e.Why, Until: NewTime(e.Until)}
		if e.Strategy != nil {
			event.Strategy = new(newDrainSpec(*e.Strategy))
		}
		if e.Kind == journal.StageBegan || e.Kind == journal.StageEnded {
			event.Stage = e.Stage.String()
		}
		w.Events = append(w.Events, event)
	}
	for _, g := range j.Groups {
		w.Groups = append(w.Groups, JournalGroup{
			Namespace: string(g.Key.Job.Namespace), JobID: string(g.Key.Job.ID), Group: g.Key.Name, Marked: g.Marked, Lowest: g.Lowest, Needed: g.Needed,
			LowestAt: NewTime(g.LowestAt), LowestFor: g.LowestFor, LowestSince: NewTime(g.Since), Healthy: g.Healthy,
		})
	}
	return w
}
