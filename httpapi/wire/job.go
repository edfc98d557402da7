package wire

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Job is a job. It has the fields that the servers keep, and those that an answer has; package jobfields has all
// fields of a registration. A nil field in a registration gets its default. In an answer every pointer that the
// compatible API always fills is there, also in groups and tasks: its clients read through them.
type Job struct {
	// Region is not read. In an answer it is the region of the cluster.
	Region    *string
	Namespace *string
	ID        *string
	Name      *string
	Type      *string
	Priority  *int
	// AllAtOnce is not read, and false in an answer.
	AllAtOnce   *bool
	Datacenters []string
	NodePool    *string
	TaskGroups  []*TaskGroup
	Constraints []Constraint      `json:",omitempty"`
	Migrate     *MigrateStrategy  `json:",omitempty"`
	Update      *UpdateStrategy   `json:",omitempty"`
	Reschedule  *ReschedulePolicy `json:",omitempty"`
	Meta        map[string]string `json:",omitempty"`

	// The servers set the following fields.
	Stop *bool
	// SubmitTime is in Unix nanoseconds. It is zero in the job of an allocation, and if no evaluation
	// and no allocation shows it. The reference's command reads it of every job.
	SubmitTime *int64
	// Status is pending, running or dead.
	Status            *string
	StatusDescription *string
	// Stable is false: only a deployment makes a version stable.
	Stable         *bool
	Version        *uint64
	CreateIndex    *uint64
	ModifyIndex    *uint64
	JobModifyIndex *uint64

	// The following fields are empty: no job has another job, a dispatch, Consul, Vault or a token.
	ParentID                 *string
	DispatchIdempotencyToken *string
	ConsulNamespace          *string
	VaultNamespace           *string
	NomadTokenID             *string
}

// TaskGroup is a set of tasks that are placed together.
type TaskGroup struct {
	Name *string
	// Count is one if nil.
	Count       *int
	Constraints []Constraint     `json:",omitempty"`
	Migrate     *MigrateStrategy `json:",omitempty"`
	// Migrate and Update of an answer are nil if the job's type has no such block; so is ReschedulePolicy.
	Update           *UpdateStrategy   `json:",omitempty"`
	RestartPolicy    *RestartPolicy    `json:",omitempty"`
	ReschedulePolicy *ReschedulePolicy `json:",omitempty"`
	EphemeralDisk    *EphemeralDisk    `json:",omitempty"`
	Disconnect       *Disconnect       `json:",omitempty"`
	// ShutdownDelay is in nanoseconds.
	ShutdownDelay *time.Duration `json:",omitempty"`
	// MaxRunDuration is how long an allocation may run, in nanoseconds. It is nil in an answer for a group without it.
	MaxRunDuration *time.Duration `json:",omitempty"`
	// MaxClientDisconnect is an old name for Disconnect.LostAfter.
	MaxClientDisconnect *time.Duration `json:",omitempty"`
	// StopAfterClientDisconnect is an old name for Disconnect.StopOnClientAfter.
	StopAfterClientDisconnect *time.Duration `json:",omitempty"`
	// PreventRescheduleOnLost is an old name for a Disconnect.Replace of false.
	PreventRescheduleOnLost *bool             `json:",omitempty"`
	Meta                    map[string]string `json:",omitempty"`
	// Volumes are what each allocation needs, by name.
	Volumes map[string]*VolumeRequest `json:",omitempty"`
	// Networks has the ports that each allocation gets.
	Networks []*NetworkResource `json:",omitempty"`
	Services []*Service         `json:",omitempty"`
	Tasks    []*Task
}

// RestartPolicy is how often a client restarts a failed task. A nil field is taken from the
// group's policy, then from the default of the job's type.
type RestartPolicy struct {
	Attempts *int
	Interval *time.Duration
	Delay    *time.Duration
	Mode     *string
	// RenderTemplates is not read, and false in an answer.
	RenderTemplates *bool
}

// Task is one process of a group.
type Task struct {
	Name   string
	Driver string `json:",omitempty"`
	User   string `json:",omitempty"`
	// Config is the driver's configuration, an object. In an answer it may be an object for which
	// [LeftOut] holds.
	Config json.RawMessage   `json:",omitempty"`
	Env    map[string]string `json:",omitempty"`
	// Lifecycle is nil for a main task.
	Lifecycle  *Lifecycle `json:",omitempty"`
	Leader     bool       `json:",omitempty"`
	KillSignal string     `json:",omitempty"`
	// RestartPolicy of an answer is the group's if the task has none of its own.
	RestartPolicy *RestartPolicy    `json:",omitempty"`
	LogConfig     *LogConfig        `json:",omitempty"`
	Meta          map[string]string `json:",omitempty"`
	Constraints   []Constraint      `json:",omitempty"`
	// VolumeMounts are the volumes of the group that the task sees.
	VolumeMounts []*VolumeMount `json:",omitempty"`
	Services     []*Service     `json:",omitempty"`
	Resources    *Resources
	// KillTimeout and ShutdownDelay are in nanoseconds.
	KillTimeout   *time.Duration
	ShutdownDelay time.Duration
	// CSIPluginConfig, if not nil, makes every allocation of the job a storage plugin.
	CSIPluginConfig *CSIPlugin `json:",omitempty"`
}

// Lifecycle makes a task run beside the main tasks.
type Lifecycle struct {
	// Hook is prestart, poststart or poststop.
	Hook    string
	Sidecar bool
}

// LogConfig bounds the logs of a task. A nil field is 10.
type LogConfig struct {
	MaxFiles      *int
	MaxFileSizeMB *int
	// Disabled is not read, and false in an answer.
	Disabled *bool
}

// Constraint restricts where allocations may run.
type Constraint struct {
	LTarget string
	RTarget string
	Operand string
}

// MigrateStrategy is the pace at which a drain may move a group. A nil field is taken from the
// job's block, then from the defaults.
type MigrateStrategy struct {
	MaxParallel     *int
	HealthCheck     *string
	MinHealthyTime  *time.Duration
	HealthyDeadline *time.Duration
	// MaxSurge is how many allocations of the group may have a replacement beside them. A nil field is taken from the
	// key [cluster.MetaMaxSurge] of the group's meta, then of the job's, and is then zero. An answer has it only if it
	// differs from that. Ours.
	MaxSurge *int `json:",omitempty"`
}

// EphemeralDisk describes what happens to a group's data when it moves.
type EphemeralDisk struct {
	Sticky  *bool
	Migrate *bool
	SizeMB  *int64
}

// JobListStub is a job in a list.
type JobListStub struct {
	ID                string
	ParentID          string
	Name              string
	Namespace         string `json:",omitempty"`
	Datacenters       []string
	NodePool          string
	Type              string
	Priority          int
	Periodic          bool
	ParameterizedJob  bool
	Stop              bool
	Status            string
	StatusDescription string
	JobSummary        *JobSummary
	CreateIndex       uint64
	ModifyIndex       uint64
	JobModifyIndex    uint64
	SubmitTime        int64
}

// JobSummary counts a job's allocations, by group.
type JobSummary struct {
	JobID       string
	Namespace   string
	Summary     map[string]GroupSummary
	Children    *JobChildren
	CreateIndex uint64
	ModifyIndex uint64

	// The following fields are only in the answer for one job. Ours.

	// GivenUp are the groups with slots that stay empty because too many allocations in a row have failed,
	// by name.
	GivenUp map[string]GroupGivenUp `json:",omitempty"`
	// Rescheduled are the groups with allocations that ended and whose replacements are delayed, by name.
	Rescheduled map[string]GroupRescheduled `json:",omitempty"`
	// Rollouts are the groups with allocations that a newer version of the job has still to replace, by name.
	Rollouts map[string]GroupRollout `json:",omitempty"`
	// ControllerCalls are the calls of controllers for volumes of the job that fail.
	ControllerCalls []ControllerCall `json:",omitempty"`
}

// GroupGivenUp means that the scheduler does not replace allocations of a group any more. It does again when
// the tasks or the disk of the group change, or the job is purged and registered again. Ours.
type GroupGivenUp struct {
	// Slots is how many slots of the group stay empty, and Failed how many allocations have failed for good
	// in them.
	Slots  int
	Failed int
	// Replaced is how many times in a row the scheduler replaced the allocation of a slot before it stopped
	// to do so.
	Replaced int
	// Policy is how many replacements the reschedule policy of the group permits, in words, or empty if it has
	// none.
	Policy string `json:",omitempty"`
	// AllocID and NodeID are the allocation that failed last.
	AllocID string
	NodeID  string
	// Task, Event, Message and At describe how it failed, in the words of its client: the type, the text and the
	// time of an event of the task. Without any, as of a simulated client, all but Message are zero.
	Task    string
	Event   string
	Message string
	At      Time
}

// GroupRescheduled means that the scheduler replaces ended allocations of a group when their delays are over.
// Ours.
type GroupRescheduled struct {
	// Allocs is how many allocations have ended and wait for their replacements.
	Allocs int
	// AllocID is the one that is replaced next, DueAt the time, and Attempts how many replacements before it
	// count for its policy.
	AllocID  string
	DueAt    Time
	Attempts int
}

// JobChildren counts the jobs that a job has made. Jobs of this system make none.
type JobChildren struct {
	Pending int64
	Running int64
	Dead    int64
}

// GroupSummary counts a group's allocations by their status.
type GroupSummary struct {
	Queued   int
	Complete int
	Failed   int
	Running  int
	Starting int
	Lost     int
	Unknown  int
}

// JobRegisterRequest is the body of PUT /v1/jobs and PUT /v1/job/{id}.
type JobRegisterRequest struct {
	Job *Job
	// EnforceIndex refuses the registration unless the job's modify index is JobModifyIndex; zero is a job
	// that does not exist.
	EnforceIndex   bool   `json:",omitempty"`
	JobModifyIndex uint64 `json:",omitempty"`
	// PreserveCounts and PreserveResources keep the counts of the registered job's groups, and the resources of
	// its tasks.
	PreserveCounts    bool `json:",omitempty"`
	PreserveResources bool `json:",omitempty"`
	// EvalPriority is the priority of the evaluation, or zero for that of the job.
	EvalPriority int `json:",omitempty"`
}

// JobRevertRequest is the body of PUT /v1/job/{id}/revert.
type JobRevertRequest struct {
	// JobID is empty, or the id in the path.
	JobID string
	// JobVersion is the version whose work the next version has.
	JobVersion uint64
	// EnforcePriorVersion, if not nil, is the version that the job must have.
	EnforcePriorVersion *uint64
}

// JobScaleRequest is the body of PUT /v1/job/{id}/scale.
type JobScaleRequest struct {
	// Count is the new count of the group. Nil changes nothing.
	Count *int64
	// Target has the name of the group as "Group".
	Target map[string]string
	// JobModifyIndex, if not zero, is the index that the registered job must have.
	JobModifyIndex uint64
	// Message, Error and Meta describe the event of the change. The servers keep no such events.
	Message string
	Error   bool
	Meta    map[string]json.RawMessage
}

// JobScaleStatus answers GET /v1/job/{id}/scale.
type JobScaleStatus struct {
	JobID          string
	Namespace      string
	JobCreateIndex uint64
	JobModifyIndex uint64
	JobStopped     bool
	TaskGroups     map[string]GroupScaleStatus
}

// GroupScaleStatus counts the allocations of a group that have not ended.
type GroupScaleStatus struct {
	Desired int
	Placed  int
	Running int
	// Healthy and Unhealthy count those with a verdict.
	Healthy   int
	Unhealthy int
	// Events is empty.
	Events []Nothing
}

// JobValidateRequest is the body of PUT /v1/validate/job.
type JobValidateRequest struct {
	Job *Job
}

// JobValidateResponse describes whether a job would be registered.
type JobValidateResponse struct {
	// DriverConfigValidated is true: with false the reference's command prints that it reached no server.
	DriverConfigValidated bool
	// ValidationErrors are the reasons to refuse the job. Error has them as one text.
	ValidationErrors []string
	Error            string
	Warnings         string
}

// JobVersions answers GET /v1/job/{id}/versions.
type JobVersions struct {
	Versions []*Job
	// Diffs compare each version with the next older one, so there is one less; nil if the request has no diffs.
	Diffs []*JobDiff
	// Index, LastContact and KnownLeader repeat the headers; LastContact is always zero.
	Index       uint64
	LastContact int64
	KnownLeader bool
	NextToken   string
}

// JobEvaluateRequest is the body of PUT /v1/job/{id}/evaluate, and may be missing.
type JobEvaluateRequest struct {
	JobID string
}

// JobResponse answers a registration, an evaluation and a deregistration.
type JobResponse struct {
	// EvalID is the evaluation that the request made, or empty.
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	// Warnings list the parts of a registered job that have no effect, a line each.
	Warnings string
	Index    uint64
	// The following fields are always zero, as in the reference's answer to a write.
	LastContact int64
	KnownLeader bool
	NextToken   string
}

// NewJob returns the job in a cluster of the region. The caller sets its Status and SubmitTime.
func NewJob(j *cluster.Job, region string) *Job {
	w := &Job{
		Region: new(region), Namespace: new(string(j.Namespace)), ID: new(string(j.ID)), Name: new(string(j.ID)), Type: new(string(j.Type)), Priority: new(j.Priority),
		Datacenters: j.Datacenters, NodePool: new(j.NodePool), Stop: new(j.Stop), SubmitTime: new(int64(0)), Version: new(j.Version),
		Status: new(""), StatusDescription: new(""), AllAtOnce: new(false), Stable: new(false), Update: noUpdate(),
		ParentID: new(""), DispatchIdempotencyToken: new(""), ConsulNamespace: new(""), VaultNamespace: new(""), NomadTokenID: new(""),
		Constraints: append(distinctConstraint(j.DistinctHosts), newConstraints(j.Constraints)...), Meta: j.Meta,
		CreateIndex: new(j.CreateIndex), ModifyIndex: new(j.ModifyIndex), JobModifyIndex: new(j.JobModifyIndex),
	}
	for _, g := range j.TaskGroups {
		if g != nil {
			w.TaskGroups = append(w.TaskGroups, newTaskGroup(g, j))
		}
	}
	return w
}

func newTaskGroup(g *cluster.TaskGroup, j *cluster.Job) *TaskGroup {
	job := j.Type
	w := &TaskGroup{
		Name: new(g.Name), Count: new(g.Count), ShutdownDelay: new(g.ShutdownDelay), Meta: g.Meta,
		Constraints:   slices.Concat(classConstraints(g.NodeClasses), distinctConstraint(g.DistinctHosts), newConstraints(g.Constraints)),
		RestartPolicy: newRestartPolicy(g.RestartPolicyOf(nil, job)), Migrate: newMigrate(g, j),
		EphemeralDisk: &EphemeralDisk{
			Sticky: new(g.EphemeralDisk.Sticky), Migrate: new(g.EphemeralDisk.Migrate), SizeMB: new(g.EphemeralDisk.SizeMB),
		},
	}
	if g.Update != nil || job == cluster.JobService || job == cluster.JobSystem {
		w.Update = newUpdate(g.UpdateOf())
	}
	w.ReschedulePolicy = newReschedulePolicy(g.Reschedule, job)
	if g.MaxRunDuration != 0 {
		w.MaxRunDuration = new(g.MaxRunDuration)
	}
	w.Disconnect = newDisconnect(g.Disconnect)
	w.Volumes, w.Networks, w.Services = newVolumeRequests(g.Volumes), newPortRequests(g.Ports), newServices(g.Services)
	for _, t := range g.Tasks {
		if t != nil {
			w.Tasks = append(w.Tasks, newTask(t, g, job))
		}
	}
	return w
}

func newTask(t *cluster.Task, g *cluster.TaskGroup, job cluster.JobType) *Task {
	resources, logs := newResources(t.Resources), t.Logs()
	resources.Cores, resources.MemoryMaxMB = new(int64(t.Cores)), new(t.MemoryMaxMB)
	resources.Devices, resources.Networks = newDeviceRequests(t.Devices), newPortRequests(t.Ports)
	w := &Task{
		Name: t.Name, Driver: t.Driver, User: t.User, Config: readableConfig(t.Config), Env: t.Env, Leader: t.Leader, KillSignal: t.KillSignal,
		Meta: t.Meta, Constraints: newConstraints(t.Constraints),
		Resources: resources, KillTimeout: new(t.KillTimeout), ShutdownDelay: t.ShutdownDelay,
		RestartPolicy: newRestartPolicy(g.RestartPolicyOf(t, job)),
		LogConfig:     &LogConfig{MaxFiles: new(logs.MaxFiles), MaxFileSizeMB: new(logs.MaxFileSizeMB), Disabled: new(false)},
	}
	if t.Lifecycle != nil {
		w.Lifecycle = &Lifecycle{Hook: string(t.Lifecycle.Hook), Sidecar: t.Lifecycle.Sidecar}
	}
	w.VolumeMounts, w.CSIPluginConfig, w.Services = newVolumeMounts(t.VolumeMounts), newCSIPlugin(t), newServices(t.Services)
	return w
}

func newRestartPolicy(p cluster.RestartPolicy) *RestartPolicy {
	return &RestartPolicy{
		Attempts: new(p.Attempts), Interval: new(p.Interval), Delay: new(p.Delay), Mode: new(string(p.Mode)), RenderTemplates: new(false),
	}
}

func newConstraints(constraints []cluster.Constraint) []Constraint {
	var list []Constraint
	for _, c := range constraints {
		list = append(list, Constraint(c))
	}
	return list
}
