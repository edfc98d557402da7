package wire

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Allocation is an allocation in full. Zero fields are left out.
type Allocation struct {
	ID        string `json:",omitempty"`
	Namespace string `json:",omitempty"`
	EvalID    string `json:",omitempty"`
	Name      string `json:",omitempty"`
	NodeID    string `json:",omitempty"`
	NodeName  string `json:",omitempty"`
	JobID     string `json:",omitempty"`
	// Job is the version of the job the allocation was placed for. It is never nil in an
	// answer: the reference's command reads through it, and its monitor takes an
	// allocation without one for ended.
	Job       *Job       `json:",omitempty"`
	TaskGroup string     `json:",omitempty"`
	Resources *Resources `json:",omitempty"`
	// AllocatedResources are the needs of each task. Metrics describe the nodes as they are when
	// the allocation is read alone; in lists they are zero.
	AllocatedResources *AllocatedResources `json:",omitempty"`
	Metrics            *AllocationMetric   `json:",omitempty"`

	DesiredStatus      string             `json:",omitempty"`
	DesiredDescription string             `json:",omitempty"`
	DesiredTransition  *DesiredTransition `json:",omitempty"`
	// StoppedAt is when the servers stopped it. Ours.
	StoppedAt Time `json:",omitzero"`

	ClientStatus      string `json:",omitempty"`
	ClientDescription string `json:",omitempty"`
	// ConfirmedAt is when time or an operator confirmed the end of a lost allocation, or null. Without it
	// the tasks of a lost allocation may run. Ours.
	ConfirmedAt Time `json:",omitzero"`
	// TaskStates are those that the client reported, or are derived from ClientStatus, by task.
	TaskStates map[string]*TaskState `json:",omitempty"`

	// Unreadable is why the client of the node cannot read the allocation, or is empty. The client
	// reports it as failed with this reason. Only [AllocChanges] have it. Ours.
	Unreadable string `json:",omitempty"`

	// VolumeHolds are the volumes that keep the allocation from ending or that it has left on its node,
	// or nil. Ours.
	VolumeHolds *VolumeHolds `json:",omitempty"`

	// DataIn is the move of an ephemeral disk's data into the allocation, DataOut the move out of it. Either
	// is nil without a move. Ours.
	DataIn  *DataMove `json:",omitempty"`
	DataOut *DataMove `json:",omitempty"`

	// ControllerCalls are the calls of controllers for volumes of the allocation on its node that fail. Only
	// the answer for one allocation has them. Ours.
	ControllerCalls []ControllerCall `json:",omitempty"`

	DeploymentID       string            `json:",omitempty"`
	DeploymentStatus   *DeploymentStatus `json:",omitempty"`
	PreviousAllocation string            `json:",omitempty"`
	NextAllocation     string            `json:",omitempty"`
	// Standby means that the allocation that it replaces is still in place, and has their slot in the group. Ours.
	Standby bool `json:",omitempty"`
	// EndedAt is when the servers read that the allocation ended by itself, or null. Ours.
	EndedAt Time `json:",omitzero"`
	// FollowupEvalID is the evaluation that waits until the replacement of the allocation is due, or empty.
	FollowupEvalID string `json:",omitempty"`
	// RescheduleTracker lists the failed predecessors, or is nil if there are none.
	RescheduleTracker *RescheduleTracker `json:",omitempty"`

	CreateIndex      uint64 `json:",omitempty"`
	ModifyIndex      uint64 `json:",omitempty"`
	AllocModifyIndex uint64 `json:",omitempty"`
	// CreateTime and ModifyTime are in Unix nanoseconds.
	CreateTime int64 `json:",omitempty"`
	ModifyTime int64 `json:",omitempty"`
}

// DesiredTransition is the change that the servers request of an allocation. Its first five keys are
// always there; null means no.
type DesiredTransition struct {
	Migrate                 *bool
	Reschedule              *bool
	ForceReschedule         *bool
	NoShutdownDelay         *bool
	MigrateDisablePlacement *bool

	// The following fields are ours: the drain that set Migrate, by which rule, and when.
	DrainID   string `json:",omitempty"`
	MarkClass string `json:",omitempty"`
	MarkedAt  Time   `json:",omitzero"`
	// SurgeDrainID is the drain that has requested a replacement before it marks the allocation, and SurgeAt the time of
	// the request. Ours.
	SurgeDrainID string `json:",omitempty"`
	SurgeAt      Time   `json:",omitzero"`
}

// DeploymentStatus is the verdict on an allocation's health.
type DeploymentStatus struct {
	// Healthy is nil while there is no verdict.
	Healthy     *bool
	Timestamp   Time
	Canary      bool
	ModifyIndex uint64
}

// AllocationListStub is an allocation in a list.
type AllocationListStub struct {
	ID                 string
	EvalID             string
	Name               string
	Namespace          string
	NodeID             string
	NodeName           string
	JobID              string
	JobType            string
	JobVersion         uint64
	TaskGroup          string
	DesiredStatus      string
	DesiredDescription string
	// DesiredTransition is nil unless the servers request a change. Ours: the reference's list does
	// not have it.
	DesiredTransition *DesiredTransition `json:",omitempty"`
	ClientStatus      string
	ClientDescription string
	TaskStates        map[string]*TaskState
	DeploymentStatus  *DeploymentStatus
	// FollowupEvalID is that of [Allocation].
	FollowupEvalID     string
	PreviousAllocation string `json:",omitempty"`
	NextAllocation     string
	// Standby is that of [Allocation]. Ours.
	Standby bool `json:",omitempty"`
	// RescheduleTracker lists the failed predecessors, or is nil if there are none.
	RescheduleTracker *RescheduleTracker
	// The preemptions are empty: the scheduler preempts nothing.
	PreemptedAllocations  []string
	PreemptedByAllocation string
	CreateIndex           uint64
	ModifyIndex           uint64
	CreateTime            int64
	ModifyTime            int64
}

// RescheduleTracker lists the allocations that ended unexpectedly, one after the other, before the one
// that has it. The servers derive it from PreviousAllocation.
type RescheduleTracker struct {
	// Events are the replacements, oldest first.
	Events []*RescheduleEvent
	// LastReschedule is always empty.
	LastReschedule string
}

// RescheduleEvent is the replacement of one allocation.
type RescheduleEvent struct {
	// RescheduleTime is when the replacement was placed, in Unix nanoseconds.
	RescheduleTime int64
	PrevAllocID    string
	PrevNodeID     string
	// Delay is how long the scheduler waited, in nanoseconds.
	Delay int64
}

// NewRescheduleEvent returns the replacement of one allocation by the next.
func NewRescheduleEvent(previous, next *cluster.Allocation) *RescheduleEvent {
	e := &RescheduleEvent{RescheduleTime: unixNano(next.CreateTime), PrevAllocID: string(previous.ID), PrevNodeID: string(previous.NodeID)}
	if !previous.EndedAt.IsZero() {
		e.Delay = max(0, int64(next.CreateTime.Sub(previous.EndedAt)))
	}
	return e
}

// AllocatedResources are the needs of an allocation's tasks, and the disk that they share.
type AllocatedResources struct {
	Tasks  map[string]*AllocatedTask
	Shared AllocatedShared
}

// AllocatedTask are the needs of one task.
type AllocatedTask struct {
	Cpu    AllocatedCPU
	Memory AllocatedMemory
	// Networks has the ports that the task itself requests.
	Networks []*NetworkResource
	// Devices are in the order of the task's requests.
	Devices []*AllocatedDevices
}

// AllocatedCPU is in thousandths of a core.
type AllocatedCPU struct {
	CpuShares int64
	// ReservedCores are the cores that the task has for itself.
	ReservedCores []uint16 `json:",omitempty"`
}

// AllocatedMemory is in mebibytes. MemoryMaxMB is that of the job.
type AllocatedMemory struct{ MemoryMB, MemoryMaxMB int64 }

// AllocatedShared is the part of an allocation that its tasks share.
type AllocatedShared struct {
	DiskMB int64
	// Networks and Ports both have the ports of the group.
	Networks []*NetworkResource
	Ports    []PortMapping
}

// newAllocatedResources returns the needs of the allocation's tasks. A record that has lost its job
// has no tasks.
func newAllocatedResources(a *cluster.Allocation) *AllocatedResources {
	w := &AllocatedResources{Tasks: map[string]*AllocatedTask{}, Shared: AllocatedShared{DiskMB: a.Resources.DiskMB}}
	if g := a.Job.Group(a.TaskGroup); g != nil {
		for _, t := range g.Tasks {
			if t != nil {
				cpu := AllocatedCPU{t.Resources.CPU, newCores(a.Cores.Of(t.Name))}
				w.Tasks[t.Name] = &AllocatedTask{Cpu: cpu, Memory: AllocatedMemory{t.Resources.MemoryMB, t.MemoryMaxMB}}
			}
		}
	}
	w.addDevices(a.Devices)
	w.addPorts(a)
	return w
}

// clientDescription is what the client reported, or what follows from its status.
func clientDescription(a *cluster.Allocation) string {
	if a.ClientDescription != "" {
		return a.ClientDescription
	}
	switch a.ClientStatus {
	case cluster.ClientPending:
		return "No tasks have started"
	case cluster.ClientRunning:
		return "Tasks are running"
	case cluster.ClientComplete:
		return "All tasks have completed"
	case cluster.ClientFailed:
		return "Failed tasks"
	}
	return ""
}

// NewAllocation returns the allocation with its job in a cluster of the region. Its Metrics count nothing.
func NewAllocation(a *cluster.Allocation, region string) *Allocation {
	return newAllocation(a, jobOf(a, region))
}

// NewAllocations returns allocations with their jobs, each version converted once, and
// never nil.
func NewAllocations(allocs []*cluster.Allocation, region string) []*Allocation {
	jobs := map[*cluster.Job]*Job{}
	list := make([]*Allocation, len(allocs))
	for i, a := range allocs {
		job, done := jobs[a.Job]
		if !done {
			job = jobOf(a, region)
		}
		if a.Job != nil { // each allocation gets its own
			jobs[a.Job] = job
		}
		list[i] = newAllocation(a, job)
	}
	return list
}

// jobOf is the allocation's job, or a job with its id if the record has lost it.
func jobOf(a *cluster.Allocation, region string) *Job {
	if a.Job != nil {
		return NewJob(a.Job, region)
	}
	return NewJob(&cluster.Job{Namespace: a.Namespace, ID: a.JobID, Type: a.JobType()}, region)
}

func newAllocation(a *cluster.Allocation, job *Job) *Allocation {
	return &Allocation{
		ID: string(a.ID), Namespace: string(a.Namespace), EvalID: string(a.EvalID), Name: a.Name,
		NodeID: string(a.NodeID), NodeName: a.NodeName, JobID: string(a.JobID), Job: job, TaskGroup: a.TaskGroup,
		Resources: newResources(a.Resources), AllocatedResources: newAllocatedResources(a), Metrics: NewAllocationMetric(""),
		DesiredStatus: string(a.DesiredStatus), DesiredDescription: a.DesiredDescription,
		DesiredTransition: newDesiredTransition(a.DesiredTransition), StoppedAt: NewTime(a.StoppedAt),
		ClientStatus: string(a.ClientStatus), ClientDescription: clientDescription(a), ConfirmedAt: NewTime(a.ConfirmedAt), EndedAt: NewTime(a.EndedAt),
		TaskStates: taskStates(a), VolumeHolds: newVolumeHolds(a.VolumeHolds),
		DataIn: newDataMove(a.DataIn), DataOut: newDataMove(a.DataOut),
		DeploymentID: string(a.DeploymentID), DeploymentStatus: newDeploymentStatus(a.DeploymentStatus),
		PreviousAllocation: string(a.PreviousAllocation), NextAllocation: string(a.NextAllocation), Standby: a.Standby,
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex, AllocModifyIndex: a.AllocModifyIndex,
		CreateTime: unixNano(a.CreateTime), ModifyTime: unixNano(a.ModifyTime),
	}
}

// NewAllocationListStub returns the allocation as a list has it.
func NewAllocationListStub(a *cluster.Allocation) *AllocationListStub {
	w := &AllocationListStub{
		ID: string(a.ID), EvalID: string(a.EvalID), Name: a.Name, Namespace: string(a.Namespace),
		NodeID: string(a.NodeID), NodeName: a.NodeName, JobID: string(a.JobID), JobType: string(a.JobType()), TaskGroup: a.TaskGroup,
		DesiredStatus: string(a.DesiredStatus), DesiredDescription: a.DesiredDescription,
		DesiredTransition: newDesiredTransition(a.DesiredTransition),
		ClientStatus:      string(a.ClientStatus), ClientDescription: clientDescription(a),
		TaskStates: taskStates(a), DeploymentStatus: newDeploymentStatus(a.DeploymentStatus),
		PreviousAllocation: string(a.PreviousAllocation), NextAllocation: string(a.NextAllocation), Standby: a.Standby,
		CreateIndex: a.CreateIndex, ModifyIndex: a.ModifyIndex,
		CreateTime: unixNano(a.CreateTime), ModifyTime: unixNano(a.ModifyTime),
	}
	if a.Job != nil {
		w.JobVersion = a.Job.Version
	}
	return w
}

func newDesiredTransition(d cluster.DesiredTransition) *DesiredTransition {
	if d == (cluster.DesiredTransition{}) {
		return nil
	}
	w := &DesiredTransition{
		Migrate: yes(d.Migrate), Reschedule: yes(d.Reschedule), ForceReschedule: yes(d.ForceReschedule),
		NoShutdownDelay: yes(d.NoShutdownDelay), MigrateDisablePlacement: yes(d.MigrateDisablePlacement),
		DrainID: string(d.Drain), MarkedAt: NewTime(d.MarkedAt), SurgeDrainID: string(d.Surge), SurgeAt: NewTime(d.SurgeAt),
	}
	if d.Class != cluster.MarkNone {
		w.MarkClass = d.Class.String()
	}
	return w
}

// yes is true, or nil for no.
func yes(b bool) *bool {
	if !b {
		return nil
	}
	return &b
}

func newDeploymentStatus(s *cluster.DeploymentStatus) *DeploymentStatus {
	if s == nil {
		return nil
	}
	return &DeploymentStatus{Healthy: s.Healthy, Timestamp: NewTime(s.Timestamp), Canary: s.Canary, ModifyIndex: s.ModifyIndex}
}

// Allocation returns the part of an allocation that a client needs: the tasks to run, and the
// desired status. The job is converted by [Job.Job]; the error is its error.
func (w *Allocation) Allocation() (*cluster.Allocation, error) {
	a := &cluster.Allocation{
		ID: cluster.AllocID(w.ID), Namespace: cluster.Namespace(w.Namespace), EvalID: cluster.EvalID(w.EvalID), Name: w.Name,
		NodeID: cluster.NodeID(w.NodeID), NodeName: w.NodeName, JobID: cluster.JobID(w.JobID), TaskGroup: w.TaskGroup,
		DesiredStatus: cluster.DesiredStatus(w.DesiredStatus), DesiredDescription: w.DesiredDescription,
		DesiredTransition: w.DesiredTransition.transition(), StoppedAt: w.StoppedAt.Time,
		ClientStatus: cluster.ClientStatus(w.ClientStatus), ClientDescription: w.ClientDescription, ConfirmedAt: w.ConfirmedAt.Time, EndedAt: w.EndedAt.Time,
		DataIn: w.DataIn.move(), DataOut: w.DataOut.move(),
		DeploymentID: cluster.DeploymentID(w.DeploymentID), DeploymentStatus: w.DeploymentStatus.status(),
		PreviousAllocation: cluster.AllocID(w.PreviousAllocation), NextAllocation: cluster.AllocID(w.NextAllocation), Standby: w.Standby,
		CreateIndex: w.CreateIndex, ModifyIndex: w.ModifyIndex, AllocModifyIndex: w.AllocModifyIndex,
		CreateTime: fromUnixNano(w.CreateTime), ModifyTime: fromUnixNano(w.ModifyTime),
	}
	a.Resources = w.Resources.resources()
	if w.Job != nil {
		var err error
		if a.Job, err = w.Job.Job(); err != nil {
			return nil, err
		}
	}
	var tasks []string
	if g := a.Job.Group(a.TaskGroup); g != nil {
		for _, t := range g.Tasks {
			tasks = append(tasks, t.Name)
		}
	}
	a.Devices, a.Ports = w.AllocatedResources.assignedDevices(tasks), w.AllocatedResources.assignedPorts(tasks)
	a.Cores = w.AllocatedResources.assignedCores(tasks)
	return a, nil
}

// assignedCores reads the cores of an allocation, in the order of its tasks.
func (w *AllocatedResources) assignedCores(order []string) *cluster.AssignedCores {
	if w == nil {
		return nil
	}
	var all []cluster.TaskCores
	for _, name := range w.taskNames(order) {
		if cores := coresOf(w.Tasks[name].Cpu.ReservedCores); cores != nil {
			all = append(all, cluster.TaskCores{Task: name, Cores: cores})
		}
	}
	if all == nil {
		return nil
	}
	return &cluster.AssignedCores{All: all}
}

func (w *DesiredTransition) transition() cluster.DesiredTransition {
	if w == nil {
		return cluster.DesiredTransition{}
	}
	d := cluster.DesiredTransition{
		Migrate: orZero(w.Migrate), Reschedule: orZero(w.Reschedule), ForceReschedule: orZero(w.ForceReschedule),
		NoShutdownDelay: orZero(w.NoShutdownDelay), MigrateDisablePlacement: orZero(w.MigrateDisablePlacement),
		Drain: cluster.DrainID(w.DrainID), MarkedAt: w.MarkedAt.Time, Surge: cluster.DrainID(w.SurgeDrainID), SurgeAt: w.SurgeAt.Time,
	}
	for class := range cluster.MarkClassCount {
		if class.String() == w.MarkClass {
			d.Class = class
		}
	}
	return d
}

func (w *DeploymentStatus) status() *cluster.DeploymentStatus {
	if w == nil {
		return nil
	}
	return &cluster.DeploymentStatus{Healthy: w.Healthy, Timestamp: w.Timestamp.Time, Canary: w.Canary, ModifyIndex: w.ModifyIndex}
}

// orZero is the value, or zero for nil.
func orZero[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// AllocStopResponse answers the stop of an allocation.
type AllocStopResponse struct {
	// EvalID is the evaluation that replaces the allocation.
	EvalID string
	Index  uint64
}

// IDs are ids as they travel; nil stays nil.
func IDs[ID ~string](ids []ID) []string {
	if ids == nil {
		return nil
	}
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return list
}
