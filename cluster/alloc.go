package cluster

import (
	"time"
)

// DesiredStatus is the status that the servers intend an allocation to have.
type DesiredStatus string

// The values of [DesiredStatus].
const (
	DesiredRun   DesiredStatus = "run"
	DesiredStop  DesiredStatus = "stop"
	DesiredEvict DesiredStatus = "evict"
)

// ClientStatus is the last status that the allocation's client reported. Servers write
// [ClientLost] and [ClientUnknown] for a client that cannot report.
type ClientStatus string

// The values of [ClientStatus].
const (
	ClientPending  ClientStatus = "pending"
	ClientRunning  ClientStatus = "running"
	ClientComplete ClientStatus = "complete"
	ClientFailed   ClientStatus = "failed"
	ClientLost     ClientStatus = "lost"
	ClientUnknown  ClientStatus = "unknown"
)

// Allocation is one placed copy of a task group on one node.
type Allocation struct {
	ID        AllocID
	Namespace Namespace
	EvalID    EvalID
	// Name is "job.group[index]". A replacement keeps it.
	Name     string
	NodeID   NodeID
	NodeName string
	JobID    JobID
	// Job is the version of the job the allocation was placed for, or nil in a
	// damaged record. It is shared and never written to.
	Job       *Job
	TaskGroup string
	Resources Resources
	// Devices are the devices that the plan gave to the tasks, or nil. They are shared and never
	// written to. No other allocation that is not client-terminal has them.
	Devices *AssignedDevices `codec:",omitempty"`
	// Ports are the ports of the node that the plan gave to the group and its tasks, or nil. They are shared
	// and never written to. No other allocation that is not client-terminal has them.
	Ports *AssignedPorts `codec:",omitempty"`
	// Cores are the cores of the node that the plan gave to the tasks for themselves, or nil. They are shared and
	// never written to. No other allocation that is not client-terminal has them.
	Cores *AssignedCores `codec:",omitempty"`

	DesiredStatus      DesiredStatus
	DesiredDescription string
	DesiredTransition  DesiredTransition
	// StoppedAt is the proposer's time of the plan that set DesiredStatus to
	// stop or evict, or zero.
	StoppedAt time.Time

	ClientStatus      ClientStatus
	ClientDescription string
	// TaskStates are the last reported states of the tasks, or nil if the client reports none. They
	// are shared and never written to. No decision reads them.
	TaskStates *TaskStates `codec:",omitempty"`

	// VolumeHolds are the last reported volumes that keep the allocation from ending or that it has left
	// on its node, or nil. They are shared and never written to.
	VolumeHolds *VolumeHolds `codec:",omitempty"`

	// DataIn is the move of an ephemeral disk's data into this allocation, by the reports of its client.
	// DataOut is the move out of this allocation: its client keeps the data, until a report of the
	// replacement's client, or its own, ends the move. Either is nil without a move.
	DataIn  *DataMove `codec:",omitempty"`
	DataOut *DataMove `codec:",omitempty"`

	// PreviousAllocation is the allocation this one replaces, or empty.
	PreviousAllocation AllocID
	// NextAllocation is the replacement, or empty.
	NextAllocation AllocID
	// Standby means that the allocation was placed beside the one that it replaces, and that one still has their
	// slot in the group. A standby allocation counts for no budget. The entry in which the original leaves or
	// ends clears the field: see [Original].
	Standby bool `codec:",omitempty"`

	DeploymentID DeploymentID
	// DeploymentStatus is the verdict on the allocation's health, or nil.
	DeploymentStatus *DeploymentStatus

	// AwaySince is when the servers lost contact with the node of a lost or unknown allocation:
	// [Node.AwaySince], or the time of the plan if the node does not exist. The deletion of the node
	// writes its last loss of contact. Zero is unknown.
	AwaySince time.Time `codec:",omitempty"`
	// ConfirmedAt is when an entry confirmed that a lost allocation has ended, because enough time had
	// passed or because an operator confirmed it. Zero is not confirmed.
	ConfirmedAt time.Time `codec:",omitempty"`

	// EndedAt is the proposer's time of the entry of reports that ended the allocation while the servers let
	// it run: it ended by itself. Zero is not, or in an entry below [VersionOfRescheduling].
	EndedAt time.Time `codec:",omitempty"`

	// CreateTime is when the plan that placed the allocation was proposed.
	CreateTime time.Time
	// StartTook is how long after CreateTime the allocation was running, by the proposer's time of the entry with the
	// first report of it. It is zero if it has not run, if its node was away then, or in an entry below
	// [VersionOfLearnedTimes]. No decision reads it.
	StartTook time.Duration `codec:",omitempty"`
	// ModifyTime is when a server or client last wrote the allocation. For the report that ended it, it is the
	// proposer's time of the entry, or the time of the report below [VersionOfLearnedTimes].
	ModifyTime time.Time

	CreateIndex uint64
	ModifyIndex uint64
	// AllocModifyIndex moves with server-side writes alone. Clients watch it.
	AllocModifyIndex uint64
}

// DeploymentStatus is the verdict on an allocation's health.
type DeploymentStatus struct {
	// Healthy is the verdict, or nil while there is none.
	Healthy *bool
	// Timestamp is when the verdict was reached.
	Timestamp time.Time
	// UnhealthySince is the proposer's time of the entry in which the verdict changed from healthy to
	// unhealthy. It is zero if the allocation is not unhealthy or was never healthy, and for a change
	// below [VersionOfConfirmation].
	UnhealthySince time.Time `codec:",omitempty"`
	// Canary marks a canary of a deployment that has not been promoted.
	Canary      bool
	ModifyIndex uint64
}

// JobKey returns the key of the allocation's job.
func (a *Allocation) JobKey() JobKey { return JobKey{Namespace: a.Namespace, ID: a.JobID} }

// GroupKey returns the key of the allocation's group.
func (a *Allocation) GroupKey() GroupKey { return GroupKey{Job: a.JobKey(), Name: a.TaskGroup} }

// JobType returns the type of the job version that the allocation was placed for. It is service
// if the record has lost it, because that is the most careful answer.
func (a *Allocation) JobType() JobType {
	if a.Job == nil {
		return JobService
	}
	return a.Job.Type
}

// Stage returns the turn in which the allocation leaves a draining node.
func (a *Allocation) Stage() Stage { return a.Job.Stage() }

// ServerTerminal reports whether the servers stop the allocation.
func (a *Allocation) ServerTerminal() bool {
	return a.DesiredStatus == DesiredStop || a.DesiredStatus == DesiredEvict
}

// ClientTerminal reports whether the allocation's tasks have ended.
func (a *Allocation) ClientTerminal() bool {
	return a.ClientStatus == ClientComplete || a.ClientStatus == ClientFailed || a.ClientStatus == ClientLost
}

// Terminal reports whether the allocation is terminal for server or client.
func (a *Allocation) Terminal() bool { return a.ServerTerminal() || a.ClientTerminal() }

// Marked reports whether the allocation has to leave its node, by a drain or otherwise.
func (a *Allocation) Marked() bool { return a.DesiredTransition.Migrate }

// MarkedBy reports whether the drain has marked the allocation.
func (a *Allocation) MarkedBy(d DrainID) bool {
	return a.Marked() && d != "" && a.DesiredTransition.Drain == d
}

// Leaving reports whether the allocation already leaves: it is marked, or the servers stop it
// stopped.
func (a *Allocation) Leaving() bool { return a.Marked() || a.ServerTerminal() }

// Canary reports whether the allocation is a canary of a deployment.
func (a *Allocation) Canary() bool { return a.DeploymentStatus != nil && a.DeploymentStatus.Canary }

// HasVerdict reports whether the allocation's health has been judged, either way.
func (a *Allocation) HasVerdict() bool {
	return a.DeploymentStatus != nil && a.DeploymentStatus.Healthy != nil
}

// JudgedHealthy reports whether the verdict on the allocation's health is good.
func (a *Allocation) JudgedHealthy() bool { return a.HasVerdict() && *a.DeploymentStatus.Healthy }

// HeldUntil is when an unhealthy allocation is given up: when it has been unhealthy for the healthy
// deadline of its group. Until then it may recover. It is zero for an allocation that was never
// healthy, and for one that is not unhealthy.
func (a *Allocation) HeldUntil(p Pace) time.Time {
	if a.unhealthySince().IsZero() {
		return time.Time{}
	}
	return a.unhealthySince().Add(p.HealthyDeadline)
}

func (a *Allocation) unhealthySince() time.Time {
	if a.DeploymentStatus == nil {
		return time.Time{}
	}
	return a.DeploymentStatus.UnhealthySince
}

// Healthy reports whether the allocation counts towards its group's budget. The
// node is the allocation's own, or nil if it does not exist.
func (a *Allocation) Healthy(node *Node) bool { return a.HealthyIfReachable() && node.Reachable() }

// HealthyIfReachable reports whether the allocation counts towards its group's budget as long as
// its node is reachable. A nil allocation does not.
func (a *Allocation) HealthyIfReachable() bool {
	return a != nil && a.DesiredStatus == DesiredRun && a.ClientStatus == ClientRunning && a.JudgedHealthy() &&
		!a.Marked() && !a.Canary() && !a.Standby
}

// Stable reports whether the allocation stays as it is while its node does not drain: it has not
// ended, it is not leaving and not marked, and it has a health verdict or needs none: drains read the
// health of services only.
func (a *Allocation) Stable() bool {
	return !a.ClientTerminal() && !a.Leaving() && a.DesiredTransition.Class == MarkNone && a.DesiredTransition.Surge == "" &&
		(a.HasVerdict() || a.JobType() != JobService)
}

// Concluded reports whether no later plan of the allocation's job depends on it, for every version
// of the job and every state of its node: it is client-terminal, it holds no slot of its group, and it will get
// no replacement. A concluded allocation stays concluded, but for the late report of a client that
// the servers gave up. An allocation without a job version never counts as concluded.
func (a *Allocation) Concluded() bool {
	if !a.ClientTerminal() || a.Job == nil {
		return false
	}
	switch t := a.Job.Type; {
	case t == JobSysBatch && (!a.ServerTerminal() || a.DesiredDescription == DescTainted):
		return false // it was the only run on its node
	case t.EveryNode():
		return a.NextAllocation != ""
	case a.ServerTerminal() && t == JobBatch && a.DesiredTransition.MigrateDisablePlacement:
		return false // it may keep its slot
	case a.ServerTerminal():
		return a.NextAllocation != "" || !ReplacedAfter(a.DesiredDescription)
	case t.ToCompletion() && a.ClientStatus == ClientComplete:
		return false // its work is done
	}
	return a.NextAllocation != ""
}

// Progress describes whether an allocation is changing. A drainer may have to wait for the end of the
// change.
type Progress uint8

// The values of [Progress].
const (
	// ProgressHoldsSlot: the allocation changes, and the change counts against a limit of the group: that of
	// marks of the classes free and canary, or max_surge. The allocation has a mark of such a class, or a drain has
	// requested its replacement, or it replaces another and has no verdict yet.
	ProgressHoldsSlot Progress = iota
	// ProgressChanging: the allocation changes in another way.
	ProgressChanging
	// ProgressStable: see [Allocation.Stable].
	ProgressStable
)

// Progress returns the first value that applies.
func (a *Allocation) Progress() Progress {
	class := a.DesiredTransition.Class
	switch {
	case class == MarkFree || class == MarkCanary, a.DesiredTransition.Surge != "" && !a.Terminal(), a.PreviousAllocation != "" && a.JobType() == JobService && !a.HasVerdict():
		return ProgressHoldsSlot
	case !a.Stable():
		return ProgressChanging
	}
	return ProgressStable
}

// Bare returns a copy without the fields that only describe writes: descriptions, states of tasks,
// AwaySince, StartTook, the progress of copies of data, and the times and indexes of the last write and verdict. No
// decision reads them. It keeps DeploymentStatus.UnhealthySince. The copy shares Job and DeploymentStatus.Healthy with a.
func (a *Allocation) Bare() *Allocation {
	c := *a
	c.DesiredDescription, c.ClientDescription = "", ""
	c.TaskStates = nil
	c.AwaySince, c.StartTook = time.Time{}, 0
	c.ModifyTime, c.ModifyIndex, c.AllocModifyIndex = time.Time{}, 0, 0
	c.DataIn, c.DataOut = a.DataIn.bare(), a.DataOut.bare()
	if d := a.DeploymentStatus; d != nil {
		c.DeploymentStatus = &DeploymentStatus{Healthy: d.Healthy, UnhealthySince: d.UnhealthySince, Canary: d.Canary}
	}
	return &c
}

// EqualForDecisions reports whether [Allocation.Bare] returns the same for both. It may return false
// for equal allocations whose times have different locations.
func (a *Allocation) EqualForDecisions(o *Allocation) bool {
	if a.HasVerdict() != o.HasVerdict() || a.JudgedHealthy() != o.JudgedHealthy() || a.Canary() != o.Canary() ||
		(a.DeploymentStatus == nil) != (o.DeploymentStatus == nil) || a.unhealthySince() != o.unhealthySince() ||
		!a.DataIn.sameForDecisions(o.DataIn) || !a.DataOut.sameForDecisions(o.DataOut) {
		return false
	}
	c := *a
	c.DesiredDescription, c.ClientDescription = o.DesiredDescription, o.ClientDescription
	c.TaskStates = o.TaskStates
	c.AwaySince, c.StartTook = o.AwaySince, o.StartTook
	c.ModifyTime, c.ModifyIndex, c.AllocModifyIndex = o.ModifyTime, o.ModifyIndex, o.AllocModifyIndex
	c.DeploymentStatus = o.DeploymentStatus
	c.DataIn, c.DataOut = o.DataIn, o.DataOut
	return c == *o
}

// NeededVersion is the lowest cluster version that has all fields of the allocation and of its job.
// A nil allocation needs the first.
func (a *Allocation) NeededVersion() Version {
	if a == nil {
		return MinVersion
	}
	needed := a.Job.NeededVersion()
	if a.TaskStates != nil {
		needed = max(needed, VersionOfDrivers)
	}
	if a.Devices != nil {
		needed = max(needed, VersionOfDevices)
	}
	if a.VolumeHolds != nil {
		needed = max(needed, VersionOfVolumes)
	}
	if !a.AwaySince.IsZero() || !a.ConfirmedAt.IsZero() || !a.unhealthySince().IsZero() {
		needed = max(needed, VersionOfConfirmation)
	}
	if a.DataIn != nil || a.DataOut != nil {
		needed = max(needed, VersionOfData)
	}
	if a.Ports != nil {
		needed = max(needed, VersionOfPorts)
	}
	if a.Cores != nil {
		needed = max(needed, VersionOfLimits)
	}
	if !a.EndedAt.IsZero() {
		needed = max(needed, VersionOfRescheduling)
	}
	if a.StartTook != 0 {
		needed = max(needed, VersionOfLearnedTimes)
	}
	if a.Standby || a.DesiredTransition.Surge != "" || !a.DesiredTransition.SurgeAt.IsZero() {
		needed = max(needed, VersionOfSurge)
	}
	return needed
}

// DueAt is the time by which a health verdict should exist. The deadline counts from the end of the wait
// for data. During this wait DueAt is in the year 9999: the end of the wait is a write.
func (a *Allocation) DueAt(p Pace, grace time.Duration) time.Time {
	began := a.CreateTime
	switch {
	case a.DataIn.Pending():
		return time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	case a.DataIn != nil && a.DataIn.EndedAt.After(began):
		began = a.DataIn.EndedAt
	}
	// Added one by one: the sum of two durations may wrap around.
	return began.Add(p.HealthyDeadline).Add(grace)
}

// StopTime is how long the allocation may take to stop after the request to stop.
func (a *Allocation) StopTime() time.Duration {
	g := a.Job.Group(a.TaskGroup)
	if g == nil {
		return DefaultKillTimeout
	}
	return g.StopTime()
}

// Copy returns a copy that shares only Job, Devices, Ports, Cores, TaskStates, VolumeHolds, DataIn and DataOut with a:
// these are never written to.
func (a *Allocation) Copy() *Allocation {
	if a == nil {
		return nil
	}
	c := *a
	c.DeploymentStatus = a.DeploymentStatus.Copy()
	return &c
}

// Judge writes a verdict. at is the proposer's time of the entry, or zero below
// [VersionOfConfirmation].
func (s *DeploymentStatus) Judge(healthy bool, at time.Time) {
	switch was := s.Healthy != nil && *s.Healthy; {
	case healthy:
		s.UnhealthySince = time.Time{}
	case was:
		s.UnhealthySince = at.UTC()
	}
	s.Healthy = &healthy
}

// Copy returns a copy that shares nothing with s.
func (s *DeploymentStatus) Copy() *DeploymentStatus {
	if s == nil {
		return nil
	}
	c := *s
	if s.Healthy != nil {
		healthy := *s.Healthy
		c.Healthy = &healthy
	}
	return &c
}

// AllocReport is a client's report on one of its allocations. It is complete.
// So a repeated report changes nothing, and the next report corrects one that arrived out
// of order.
type AllocReport struct {
	Alloc AllocID
	// Node is the client's node. A report on an allocation of another node is ignored.
	Node              NodeID
	ClientStatus      ClientStatus
	ClientDescription string
	// TaskStates are the states of all tasks, or nil: then the states of the last report stay.
	TaskStates *TaskStates `codec:",omitempty"`
	// VolumeHolds are the volumes that keep the allocation from ending or that it has left on its node.
	// Nil means no report, and those of the last report stay. Without volumes it means that none is left.
	VolumeHolds *VolumeHolds `codec:",omitempty"`
	// DataIn is the move of data into the allocation, or nil without one. The servers set its EndedAt.
	DataIn *DataMove `codec:",omitempty"`
	// DataOut is [DataKept] in the report that ends an allocation whose data a replacement may take, and
	// [DataGivenUp] when the client keeps the data no longer. Nil means no report.
	DataOut *DataMove `codec:",omitempty"`
	// Healthy is the verdict on the allocation's health, or nil while there is
	// none. A verdict is not taken back, but may be followed by the other one.
	Healthy *bool
	// HealthyAt is when the verdict was reached, or zero.
	HealthyAt time.Time
	// At is the client's time of the report.
	At time.Time
}

// NeededVersion is the lowest cluster version that has all fields of the report.
func (r *AllocReport) NeededVersion() Version {
	switch {
	case r.DataIn != nil || r.DataOut != nil:
		return VersionOfData
	case r.VolumeHolds != nil:
		return VersionOfVolumes
	case r.TaskStates != nil:
		return VersionOfDrivers
	}
	return MinVersion
}

// DesiredTransition is the next change that the servers intend for an allocation. The scheduler acts on
// it when it next evaluates the job.
type DesiredTransition struct {
	// Migrate requires the allocation to leave its node. If a drain set it, Drain names the drain.
	// Other parties may set it too.
	Migrate bool
	// MigrateDisablePlacement, with Migrate, forbids a replacement: batch work that a deadline
	// stopped is not placed again.
	MigrateDisablePlacement bool
	// Reschedule and ForceReschedule request a replacement of a failed allocation.
	Reschedule      bool
	ForceReschedule bool
	// NoShutdownDelay means that the client skips shutdown delays.
	NoShutdownDelay bool

	// Drain is the drain that set Migrate, or empty if none did.
	Drain DrainID
	// Class is the class of the drain's mark, MarkNone if no drain set Migrate.
	Class MarkClass
	// MarkedAt is the proposer's time of the drain's mark, or zero.
	MarkedAt time.Time

	// Surge is the drain that has requested a replacement before it marks the allocation, or empty. SurgeAt is the
	// proposer's time of the request. A mark keeps both.
	Surge   DrainID   `codec:",omitempty"`
	SurgeAt time.Time `codec:",omitempty"`
}
