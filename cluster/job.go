package cluster

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// JobType decides how a job's allocations are placed and how they leave a
// draining node.
type JobType string

// The types of jobs.
const (
	// JobService runs until stopped; its groups keep their count at the pace of
	// their migrate block.
	JobService JobType = "service"
	// JobBatch runs to completion. It keeps running on a draining node until it
	// is done or the deadline comes.
	JobBatch JobType = "batch"
	// JobSystem runs one allocation of each group on every fitting node.
	JobSystem JobType = "system"
	// JobSysBatch runs to completion once on every fitting node.
	JobSysBatch JobType = "sysbatch"
)

// Valid reports whether t is one of the four types.
func (t JobType) Valid() bool {
	return t == JobService || t == JobBatch || t == JobSystem || t == JobSysBatch
}

// EveryNode reports whether the job runs on every fitting node rather than in a
// number of copies.
func (t JobType) EveryNode() bool { return t == JobSystem || t == JobSysBatch }

// ToCompletion reports whether the job's tasks are meant to end by themselves.
func (t JobType) ToCompletion() bool { return t == JobBatch || t == JobSysBatch }

// Job is what an operator wants to run.
type Job struct {
	Namespace Namespace
	ID        JobID
	Type      JobType
	// Priority is 1 to 100; higher is scheduled first.
	Priority int
	// Version counts the job's registrations from zero.
	Version uint64
	// Stop is set when the operator stopped the job; its record stays.
	Stop bool
	// NodePool is where the job may run, "default" if it named none.
	NodePool string
	// Datacenters it may run in; empty is any.
	Datacenters []string
	TaskGroups  []*TaskGroup

	CreateIndex uint64
	ModifyIndex uint64
	// JobModifyIndex moves with registrations alone.
	JobModifyIndex uint64
}

// TaskGroup is a set of tasks that are placed together, Count times over.
type TaskGroup struct {
	Name  string
	Count int
	// Migrate is the pace at which a drain may move the group, or nil. Jobs of
	// type service always have one after [Job.Canonicalize]; others never.
	Migrate *MigrateStrategy
	// NodeClasses are the node classes the group may run on; empty is any.
	NodeClasses []string
	// EphemeralDisk is what happens to the group's data when it moves.
	EphemeralDisk EphemeralDisk
	// Disconnect is how the group behaves when its node is out of touch.
	Disconnect DisconnectStrategy
	// ShutdownDelay is waited before any task of the group is killed.
	ShutdownDelay time.Duration
	Tasks         []*Task
}

// Task is one process of a group.
type Task struct {
	Name      string
	Resources Resources
	// KillTimeout is how long the task may take to end once killed.
	KillTimeout time.Duration
	// ShutdownDelay is waited before the task is killed.
	ShutdownDelay time.Duration
	// StoragePlugin makes every allocation of the job a storage plugin.
	StoragePlugin bool
}

// EphemeralDisk is the scratch space of a group.
type EphemeralDisk struct {
	Sticky bool
	// Migrate asks for the data to be copied to a replacement, which stays
	// pending until its predecessor has ended and the copy is done.
	Migrate bool
	SizeMB  int64
}

// DisconnectStrategy is how a group behaves when its node is out of touch.
type DisconnectStrategy struct {
	// LostAfter is how long an allocation on a disconnected node stays unknown
	// before it counts as lost; zero is at once.
	LostAfter time.Duration
}

// Defaults that [Job.Canonicalize] fills in.
const (
	DefaultJobPriority = 50
	DefaultKillTimeout = 5 * time.Second
)

// Key returns the job's key.
func (j *Job) Key() JobKey { return JobKey{Namespace: j.Namespace, ID: j.ID} }

// Stopped reports whether the job is to run nothing. A nil job is stopped.
func (j *Job) Stopped() bool { return j == nil || j.Stop }

// Group returns the task group of that name, or nil. A nil job has none.
func (j *Job) Group(name string) *TaskGroup {
	if j == nil {
		return nil
	}
	for _, g := range j.TaskGroups {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// StoragePlugin reports whether any task of any group is a storage plugin, which
// makes every allocation of the job one. A nil job is none.
func (j *Job) StoragePlugin() bool {
	if j == nil {
		return false
	}
	for _, g := range j.TaskGroups {
		for _, t := range g.Tasks {
			if t.StoragePlugin {
				return true
			}
		}
	}
	return false
}

// Stage returns the turn in which the job's allocations leave a draining node.
func (j *Job) Stage() Stage {
	switch {
	case j.StoragePlugin():
		return StagePlugins
	case j != nil && j.Type == JobSystem:
		return StageSystem
	}
	return StageConsumers
}

// Resources is what one allocation of the group asks for.
func (g *TaskGroup) Resources() Resources {
	total := Resources{DiskMB: g.EphemeralDisk.SizeMB}
	for _, t := range g.Tasks {
		total = total.Plus(t.Resources)
	}
	return total
}

// StopTime is how long an allocation of the group may take to stop: the group's
// shutdown delay, and the longest task's shutdown delay and kill timeout.
func (g *TaskGroup) StopTime() time.Duration {
	var longest time.Duration
	for _, t := range g.Tasks {
		longest = max(longest, t.ShutdownDelay+t.KillTimeout)
	}
	return g.ShutdownDelay + longest
}

// Canonicalize fills in what a registration left empty.
func (j *Job) Canonicalize() {
	if j.Namespace == "" {
		j.Namespace = DefaultNamespace
	}
	if j.NodePool == "" {
		j.NodePool = DefaultNodePool
	}
	if j.Type == "" {
		j.Type = JobService
	}
	if j.Priority == 0 {
		j.Priority = DefaultJobPriority
	}
	for _, g := range j.TaskGroups {
		if j.Type == JobService && g.Migrate == nil {
			g.Migrate = DefaultMigrateStrategy()
		}
		for _, t := range g.Tasks {
			if t.KillTimeout == 0 {
				t.KillTimeout = DefaultKillTimeout
			}
		}
	}
}

// Validate returns every reason why the job cannot run, joined, or nil.
func (j *Job) Validate() error {
	if j == nil {
		return errors.New("job is missing")
	}
	var errs []error
	if j.ID == "" {
		errs = append(errs, errors.New("Missing job ID"))
	}
	if !j.Type.Valid() {
		errs = append(errs, fmt.Errorf("Invalid job type: %q", j.Type))
	}
	if j.Priority < 1 || j.Priority > 100 {
		errs = append(errs, fmt.Errorf("Job priority must be between [1, 100] but found %d", j.Priority))
	}
	if len(j.TaskGroups) == 0 {
		errs = append(errs, errors.New("Missing job task groups"))
	}
	seen := make(map[string]bool, len(j.TaskGroups))
	for i, g := range j.TaskGroups {
		if g == nil {
			errs = append(errs, fmt.Errorf("Task group %d is missing", i))
			continue
		}
		if seen[g.Name] {
			errs = append(errs, fmt.Errorf("Task group %q is defined twice", g.Name))
		}
		seen[g.Name] = true
		if err := g.validate(j.Type); err != nil {
			errs = append(errs, fmt.Errorf("Task group %q: %w", g.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (g *TaskGroup) validate(t JobType) error {
	var errs []error
	if g.Name == "" {
		errs = append(errs, errors.New("Missing task group name"))
	}
	if g.Count < 0 {
		errs = append(errs, fmt.Errorf("Count must be >= 0 but found %d", g.Count))
	}
	if g.ShutdownDelay < 0 {
		errs = append(errs, fmt.Errorf("ShutdownDelay is %s and must be >= 0", g.ShutdownDelay))
	}
	if g.Disconnect.LostAfter < 0 {
		errs = append(errs, fmt.Errorf("LostAfter is %s and must be >= 0", g.Disconnect.LostAfter))
	}
	if g.Migrate != nil {
		if t != JobService {
			errs = append(errs, fmt.Errorf("Job type %q does not allow migrate block", t))
		}
		errs = append(errs, g.Migrate.Validate())
	}
	if len(g.Tasks) == 0 {
		errs = append(errs, errors.New("Missing tasks"))
	}
	for i, task := range g.Tasks {
		if task == nil {
			errs = append(errs, fmt.Errorf("Task %d is missing", i))
			continue
		}
		if task.KillTimeout < 0 || task.ShutdownDelay < 0 {
			errs = append(errs, fmt.Errorf("Task %q: KillTimeout and ShutdownDelay must be >= 0", task.Name))
		}
		if !(Resources{}).Fits(task.Resources) {
			errs = append(errs, fmt.Errorf("Task %q: resources must be >= 0", task.Name))
		}
	}
	return errors.Join(errs...)
}

// Copy returns a copy that shares nothing with j that either may write to.
func (j *Job) Copy() *Job {
	if j == nil {
		return nil
	}
	c := *j
	c.Datacenters = slices.Clone(j.Datacenters)
	c.TaskGroups = slices.Clone(j.TaskGroups)
	for i, g := range c.TaskGroups {
		c.TaskGroups[i] = g.Copy()
	}
	return &c
}

// Copy returns a copy that shares nothing with g that either may write to.
func (g *TaskGroup) Copy() *TaskGroup {
	if g == nil {
		return nil
	}
	c := *g
	if g.Migrate != nil {
		m := *g.Migrate
		c.Migrate = &m
	}
	c.NodeClasses = slices.Clone(g.NodeClasses)
	c.Tasks = slices.Clone(g.Tasks)
	for i, t := range c.Tasks {
		if t != nil {
			task := *t
			c.Tasks[i] = &task
		}
	}
	return &c
}
