package cluster

import (
	"slices"
	"time"
)

// DrainSpec is an operator's request.
type DrainSpec struct {
	// Deadline bounds the drain. Above zero it counts from the request. Zero is no limit. Below
	// zero everything leaves the node at once.
	Deadline time.Duration
	// IgnoreSystemJobs leaves allocations of system jobs that are no storage
	// plugin on the node, and the node plugins that serve their volumes. It
	// covers neither sysbatch jobs nor other plugins.
	IgnoreSystemJobs bool
	// MaxSurge is max_surge for all groups that the drain moves and that have a lower one: see
	// [MigrateStrategy.MaxSurge]. It has no effect on a group for which [StopsFirst] has a reason.
	MaxSurge int `codec:",omitempty"`
}

// Validate returns why the spec is wrong, or nil.
func (s DrainSpec) Validate() error { return checkMaxSurge(s.MaxSurge) }

// DrainStrategy is a [DrainSpec] with the times that its request fixed.
type DrainStrategy struct {
	DrainSpec
	// ForceDeadline is when the deadline passes; zero unless Deadline > 0.
	ForceDeadline time.Time
	// StartedAt is when the drain began. An update of the strategy keeps it.
	StartedAt time.Time
}

// Forced reports whether the drain takes all allocations at once.
func (s *DrainStrategy) Forced() bool { return s.Deadline < 0 }

// Finite reports whether the drain has a deadline. A past deadline and force count.
func (s *DrainStrategy) Finite() bool { return s.Deadline != 0 }

// Passed reports whether, at now, the drain is forced or its deadline has come. It is the only
// evidence for a deadline. A timer is only a wake-up.
func (s *DrainStrategy) Passed(now time.Time) bool {
	if s.Forced() {
		return true
	}
	return s.Deadline > 0 && !now.Before(s.ForceDeadline)
}

// CompareUrgency orders strategies by how soon they take the rest: forced strategies first, then
// by deadline, strategies without a deadline last.
func (s *DrainStrategy) CompareUrgency(o *DrainStrategy) int {
	if rank := s.urgency() - o.urgency(); rank != 0 {
		return rank
	}
	return s.ForceDeadline.Compare(o.ForceDeadline)
}

func (s *DrainStrategy) urgency() int {
	switch {
	case s.Forced():
		return 0
	case s.Finite():
		return 1
	}
	return 2
}

// Outcome is how a drain ended. Each drain has exactly one.
type Outcome string

// The outcomes of a drain.
const (
	// OutcomeNone is the outcome of a drain that has not ended.
	OutcomeNone Outcome = ""
	// OutcomeComplete: everything that had to leave left in its own time.
	OutcomeComplete Outcome = "complete"
	// OutcomeUnconfirmed: as OutcomeComplete, but nothing confirms that some allocations have ended.
	// Their tasks may still run on the node.
	OutcomeUnconfirmed Outcome = "unconfirmed"
	// OutcomeDeadlineReached: the deadline marked something.
	OutcomeDeadlineReached Outcome = "deadline reached"
	// OutcomeForced: force marked something.
	OutcomeForced Outcome = "forced"
	// OutcomeCancelled: an operator disabled the drain.
	OutcomeCancelled Outcome = "cancelled"
	// OutcomeNodeGone: the node was deleted.
	OutcomeNodeGone Outcome = "node gone"
)

// Drain is one episode of draining one node. While it runs it is [Node.Drain];
// when it ends it becomes a record that outlives the node.
type Drain struct {
	ID     DrainID
	NodeID NodeID
	// NodeName is the node's name when the drain was last written.
	NodeName string
	// Revision is the raft index of the last write to Strategy or Paused. Nothing else moves it.
	Revision Revision
	Strategy DrainStrategy
	// UpdatedAt is the proposer's time of the last request that set Strategy: a forced
	// drain is forced from then on.
	UpdatedAt time.Time
	// Paused is the pause of this drain, or nil. A pause of all drains may hold it too: see [Drain.PausedSince].
	// Below [VersionOfPauses] it is nil.
	Paused *DrainPause `codec:",omitempty"`
	// EligibleBefore means that the node was eligible when the drain began. Below [VersionOfPauses] it is false.
	EligibleBefore bool `codec:",omitempty"`
	// Keys are the idempotency keys of the requests that made or changed this drain, oldest
	// first, at most [MaxDrainKeys].
	Keys []string
	// Meta is the operator's text from the last request that had one, or nil.
	Meta map[string]string
	// UpdatedBy is the author of the last request that named one.
	UpdatedBy string

	// Marked counts the drain's accepted marks by class.
	Marked [MarkClassCount]int
	// PurgedRunning counts allocations whose records were purged from this node while the drain ran and
	// whose tasks may still have been running then. From [VersionOfConfirmation] on a purge keeps these
	// records, and the count does not rise.
	PurgedRunning int

	// Outcome is OutcomeNone while the drain runs. The fields below are set with it.
	Outcome Outcome
	EndedAt time.Time
	// StillStopping counts allocations that had to leave and were not yet
	// client-terminal when the drain ended. It never changes; Unconfirmed counts them until they end.
	StillStopping int
	// VolumesLeft are the volumes that allocations which had to leave still had on the node when the
	// drain ended, as far as the servers had reports, or nil. They are shared and never written to.
	VolumesLeft *VolumeHolds `codec:",omitempty"`
	// Unconfirmed are the allocations that had to leave and whose end nothing confirms, or nil if
	// there were none when the drain ended. It is shared and never written to.
	Unconfirmed *UnconfirmedAllocs `codec:",omitempty"`

	// DataNotCopied are the allocations whose data no replacement had when the drain ended, or nil. It is
	// shared and never written to.
	DataNotCopied *DataNotCopied `codec:",omitempty"`

	CreateIndex uint64
	// EndIndex is the raft index of the entry that ended the drain, or zero.
	EndIndex uint64
}

// UnconfirmedAllocs are the allocations of an ended drain whose tasks may still run on the node: they
// were still stopping, or the servers gave them up as lost or deleted their rows.
type UnconfirmedAllocs struct {
	// Count falls when the node reports an end, when time confirms one, or when an operator confirms
	// the drain. It contains PurgedRunning, which only an operator confirms, and Unlisted, which no time
	// confirms.
	Count int
	// Allocs are the first [MaxUnconfirmedNames] of them by id, without the purged and the unlisted ones.
	Allocs []AllocID
	// Unlisted are those of Count that the node had reported as unlisted, or nil.
	Unlisted *UnlistedAllocs `codec:",omitempty"`
	// ConfirmedAt is when Count fell to zero, or zero.
	ConfirmedAt time.Time
	// ConfirmedBy is the operator who confirmed the drain, or empty.
	ConfirmedBy string
	// Other is the last confirmation of another drain of the node that lowered Count, or nil. Below
	// [VersionOfData] it is nil.
	Other *OtherConfirmation `codec:",omitempty"`
}

// OtherConfirmation is the confirmation of another drain of the same node by an operator. It also confirms
// the allocations that both drains count.
type OtherConfirmation struct {
	Drain DrainID
	// By is the operator.
	By string
	At time.Time
	// Allocs counts the allocations of the record that this and earlier such confirmations have confirmed.
	Allocs int
}

// DataNotCopied are the allocations of an ended drain whose data was given up, or was not copied when the
// drain ended.
type DataNotCopied struct {
	Count int
	// Allocs are the first [MaxUnconfirmedNames] of them by id.
	Allocs []AllocID
}

// MaxUnconfirmedNames bounds the allocations that a record names.
const MaxUnconfirmedNames = 20

// CountUnconfirmed is the number of allocations whose end nothing confirms yet.
func (d *Drain) CountUnconfirmed() int {
	if d.Unconfirmed == nil {
		return 0
	}
	return d.Unconfirmed.Count
}

// CountsUnconfirmed reports whether the record of an ended drain counts an allocation: one of its node
// that had to leave, and whose end was neither reported nor confirmed when the drain ended, and is not
// now. No end is ever undone, so the row of now shows what the row of then was. After a loss the servers
// never write the row for the client, so AllocModifyIndex is that of the loss.
func (d *Drain) CountsUnconfirmed(a *Allocation) bool {
	lost := a.Unconfirmed() && a.AllocModifyIndex <= d.EndIndex
	return a.NodeID == d.NodeID && a.CreateIndex <= d.EndIndex && d.LeavesUnconfirmed(a, d.Outcome, lost)
}

// LeavesUnconfirmed reports whether a drain that ends with the outcome leaves an allocation of its node
// that had to leave and whose end is neither reported nor confirmed. lost means that the allocation is
// lost at the end: then it had to leave. What is not lost had to leave under most drains. A cancelled
// drain leaves what it did not mark, and so does a drain that ignores system jobs with a storage plugin.
func (d *Drain) LeavesUnconfirmed(a *Allocation, o Outcome, lost bool) bool {
	switch {
	case !d.Leaves(a.Stage()) || a.ClientTerminal() && !a.Unconfirmed():
		return false
	case lost:
		return true
	case o == OutcomeCancelled: // the cancel withdraws the other marks
		return a.MarkedBy(d.ID) && a.ServerTerminal()
	case d.Strategy.IgnoreSystemJobs && a.Stage() == StagePlugins:
		return a.MarkedBy(d.ID)
	}
	return true
}

// MaxDrainKeys bounds the idempotency keys one drain remembers. The oldest is
// forgotten first.
const MaxDrainKeys = 16

// Bounds on the records of ended drains that a state store keeps.
const (
	// MaxDrainRecordsPerNode is how many ended drains of one node are kept.
	MaxDrainRecordsPerNode = 10
	// MaxDrainRecords is how many ended drains are kept in all.
	MaxDrainRecords = 10_000
)

// Copy returns a copy that shares only Paused, VolumesLeft, Unconfirmed and DataNotCopied with d: these are never
// written to.
func (d *Drain) Copy() *Drain {
	if d == nil {
		return nil
	}
	c := *d
	c.Keys = slices.Clone(d.Keys)
	c.Meta = cloneMap(d.Meta)
	return &c
}

// HasKey reports whether a request with this idempotency key made or changed the drain. The empty
// key is no key.
func (d *Drain) HasKey(key string) bool { return key != "" && slices.Contains(d.Keys, key) }

// Leaves reports whether allocations of the stage have to leave under the
// drain's strategy. A storage plugin may stay all the same, for an allocation of
// a stage that stays.
func (d *Drain) Leaves(s Stage) bool {
	return s != StageSystem || !d.Strategy.IgnoreSystemJobs
}

// CompletedOutcome is the outcome of a drain that ends because its work is done.
func (d *Drain) CompletedOutcome() Outcome {
	switch {
	case d.Marked[MarkForced] > 0:
		return OutcomeForced
	case d.Marked[MarkDeadline] > 0:
		return OutcomeDeadlineReached
	}
	return OutcomeComplete
}

// DrainStatus is the state of a node's last drain in the words of the
// compatible API.
type DrainStatus string

// The statuses of [DrainMetadata].
const (
	DrainStatusDraining DrainStatus = "draining"
	DrainStatusComplete DrainStatus = "complete"
	DrainStatusCanceled DrainStatus = "canceled"
)

// DrainMetadata is the compatible API's account of a node's last drain. Its
// times are whole seconds.
type DrainMetadata struct {
	StartedAt time.Time
	UpdatedAt time.Time
	Status    DrainStatus
	// AccessorID is the author of the last request that named one.
	AccessorID string
	Meta       map[string]string
}

// Copy returns a copy that shares nothing with m.
func (m *DrainMetadata) Copy() *DrainMetadata {
	if m == nil {
		return nil
	}
	c := *m
	c.Meta = cloneMap(m.Meta)
	return &c
}

// DrainUpdate is an operator's request to start, update or end the drain of a node.
type DrainUpdate struct {
	Node NodeID
	// Spec is the strategy of the request, or nil to end the drain.
	Spec *DrainSpec
	// Drain is the id of the drain if the request starts one; it must be new. The server
	// sets it if it is empty. A request that updates or ends a drain does not use it.
	Drain DrainID
	// MarkEligible makes the node eligible if the request leaves it not draining.
	MarkEligible bool
	// Undo makes the node eligible if the request ends its drain, and the node was eligible when the drain began.
	// A request that starts or updates a drain does not use it.
	Undo bool `codec:",omitempty"`
	// At is the proposer's time, which the server sets. A deadline counts from it.
	At time.Time
	// Key is the request's idempotency key, or empty.
	Key string
	// Meta and UpdatedBy describe the request, or are empty: then the drain keeps the
	// values of the request before.
	Meta      map[string]string
	UpdatedBy string
	// Plan is what a plan of the request has foretold, or nil. The journal of the drain keeps it.
	Plan *DrainPlan `codec:",omitempty"`
}

// DrainPlan is what a plan has foretold of a drain. It is never written to.
type DrainPlan struct {
	// Sentence is the plan in one line, at most [MaxPlanSentence] bytes.
	Sentence string
	// Index is the raft index of the state that the plan was made from.
	Index uint64
	// Took is the time to the end of the drain, or zero if it does not end. Least and Most are the range,
	// or zero without one.
	Took  time.Duration
	Least time.Duration `codec:",omitempty"`
	Most  time.Duration `codec:",omitempty"`
}

// MaxPlanSentence is how long the sentence of a [DrainPlan] is at most, in bytes.
const MaxPlanSentence = 160

// DrainResult is the result of a [DrainUpdate].
type DrainResult struct {
	// Drain is the drain that the request started, updated or ended, or that a request
	// with the same key changed before; empty if the node did not drain and does not now.
	Drain DrainID
	// Repeated reports that a request with the same key was applied before: this one
	// changed nothing.
	Repeated bool
	// Withdrawn counts the marks that ending the drain withdrew.
	Withdrawn int
	// Stopping are, by id, the allocations whose mark could not be withdrawn: the servers
	// are stopping them, and they have not stopped yet.
	Stopping []AllocID
	// Moved are, by job, the allocations that the ended drain has moved off the node or is stopping. Nothing brings
	// them back.
	Moved []MovedAllocs
}

// MovedAllocs counts the allocations of a job that a drain has moved.
type MovedAllocs struct {
	Job    JobKey
	Allocs int
}

// Written is the result of a write.
type Written struct {
	// Index is the raft index of the entry; zero if the write needed no entry.
	Index uint64
	// Evals are the evaluations that the entry made, or nil.
	Evals []EvalID
	// Unchanged is the JobModifyIndex of a job that is the same after its registration as before, so that
	// the entry only evaluates it; otherwise zero.
	Unchanged uint64
}

// EvalIndex is the raft index of the evaluations, or zero if the entry made none.
func (w Written) EvalIndex() uint64 {
	if len(w.Evals) == 0 {
		return 0
	}
	return w.Index
}

// DrainWritten is the result of writing a [DrainUpdate].
type DrainWritten struct {
	Written
	DrainResult
}

// Stage is the turn in which an allocation leaves a draining node. A stage begins when the stage
// before it has left.
type Stage uint8

// The stages, in the order in which they leave.
const (
	// StageConsumers are the allocations of service, batch and sysbatch jobs
	// that are no storage plugin.
	StageConsumers Stage = iota
	// StageSystem are the allocations of system jobs that are no storage plugin.
	StageSystem
	// StagePlugins are the allocations of jobs with a storage plugin task, of every type.
	// Consumers may still unmount through them.
	StagePlugins

	// StageCount is how many stages there are.
	StageCount
)

// Stages returns every stage in the order in which they leave.
func Stages() [StageCount]Stage { return [StageCount]Stage{StageConsumers, StageSystem, StagePlugins} }

// String returns the stage's name as operators read it.
func (s Stage) String() string {
	switch s {
	case StageConsumers:
		return "consumers"
	case StageSystem:
		return "system"
	case StagePlugins:
		return "storage plugins"
	}
	return "unknown stage"
}

// MarkClass is the rule under which an allocation was marked. The raft entry carries it. A mark is
// applied only if its class holds in the state in which it is applied.
type MarkClass uint8

// The classes of marks.
const (
	// MarkNone is the class of an allocation that no drain has marked. It may still be marked by
	// another party; see [DesiredTransition].
	MarkNone MarkClass = iota
	// MarkPaced is for a healthy service allocation before the deadline. Only this class uses
	// room of its group's budget.
	MarkPaced
	// MarkFree is for a service allocation whose removal costs nothing: its health is overdue, or it
	// was never healthy, or it has been unhealthy for the healthy deadline of its group.
	MarkFree
	// MarkCanary is for a canary. It shares the slots of MarkFree.
	MarkCanary
	// MarkGone is for an allocation whose job or group no longer exists in the
	// job's current version.
	MarkGone
	// MarkStage is for system allocations and storage plugins in their turn.
	MarkStage
	// MarkDeadline is for the allocations that are left when the deadline has passed.
	MarkDeadline
	// MarkForced is for the allocations that are left when the drain is forced.
	MarkForced
	// MarkProceed is for a group below its budget, under the policy of that name.
	MarkProceed

	// MarkClassCount is how many classes there are, MarkNone included.
	MarkClassCount
)

// String returns the class's name as operators and scenario files write it.
func (c MarkClass) String() string {
	names := [MarkClassCount]string{"none", "paced", "free", "canary", "gone", "stage", "deadline", "forced", "proceed"}
	if c >= MarkClassCount {
		return "unknown class"
	}
	return names[c]
}
