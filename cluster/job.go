package cluster

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
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

// Job is an operator's specification of what to run.
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
	// NodePool is where the job may run, "default" if it named none, and [AllNodePools] for everywhere.
	NodePool string
	// Datacenters it may run in; empty is any.
	Datacenters []string
	// Constraints restrict the nodes that the job may run on.
	Constraints []Constraint `codec:",omitempty"`
	// DistinctHosts allows no two allocations of a service or batch job on one node. It needs cluster
	// version 9.
	DistinctHosts bool `codec:",omitempty"`
	// Meta is the operator's information, or nil.
	Meta       map[string]string `codec:",omitempty"`
	TaskGroups []*TaskGroup

	CreateIndex uint64
	ModifyIndex uint64
	// JobModifyIndex moves with registrations, and from cluster version 9 on with stops.
	JobModifyIndex uint64
}

// JobRegistration is how a job is registered.
type JobRegistration struct {
	// At, if not nil, is the JobModifyIndex that the registered job must have when the change is made, and zero
	// for a job that must not exist.
	At *uint64
	// EvalPriority is the priority of the evaluation, or zero for that of the job.
	EvalPriority int
}

// JobStop is how a job is stopped.
type JobStop struct {
	// Purge deletes the job, its evaluations and its ended allocations.
	Purge bool
	// EvalPriority is the priority of the evaluation, or zero for that of the job.
	EvalPriority int
}

// DefaultJobPriority is the priority of a job that names none.
const DefaultJobPriority = 50

// MaxReschedules bounds how many times in a row an allocation of a group without a [ReschedulePolicy] is placed
// again after it ended unexpectedly. After that its slot stays empty until the job's work changes: a task that
// never runs must not fill the log.
const MaxReschedules = 10

// Key returns the job's key.
func (j *Job) Key() JobKey { return JobKey{Namespace: j.Namespace, ID: j.ID} }

// Stopped reports whether the job should run nothing. A nil job is stopped.
func (j *Job) Stopped() bool { return j == nil || j.Stop }

// Group returns the task group of that name, or nil. A nil job has none.
func (j *Job) Group(name string) *TaskGroup {
	if j == nil {
		return nil
	}
	for _, g := range j.TaskGroups {
		if g != nil && g.Name == name {
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
	return slices.ContainsFunc(j.TaskGroups, func(g *TaskGroup) bool {
		return g != nil && slices.ContainsFunc(g.Tasks, func(t *Task) bool { return t != nil && t.StoragePlugin })
	})
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

// ErrModifyIndex is wrapped by the errors of [Job.CheckModifyIndex]. Read the job, and decide again.
var ErrModifyIndex = errors.New("Enforcing job modify index")

// CheckModifyIndex returns why the registered job, nil if there is none, is not the one with the
// JobModifyIndex. Zero is a job that does not exist.
func (j *Job) CheckModifyIndex(index uint64) error {
	switch {
	case j == nil && index == 0:
		return nil
	case j == nil:
		return fmt.Errorf("%w %d: job does not exist", ErrModifyIndex, index)
	case index == 0:
		return fmt.Errorf("%w 0: job already exists", ErrModifyIndex)
	case index != j.JobModifyIndex:
		return fmt.Errorf("%w %d: job exists with conflicting job modify index: %d", ErrModifyIndex, index, j.JobModifyIndex)
	}
	return nil
}

// Canonicalize fills in the empty fields of a registration, and makes empty lists and maps of newer
// cluster versions nil. A nil group or task stays, and
// [Job.Validate] names it.
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
	j.Constraints, j.Meta = orNil(j.Constraints), orNilMap(j.Meta)
	for _, g := range j.TaskGroups {
		if g != nil {
			g.canonicalize(j.Type)
		}
	}
}

// orNil returns nil for an empty list, and orNilMap for an empty map: entries and snapshots leave
// both out.
func orNil[S ~[]E, E any](list S) S {
	if len(list) == 0 {
		return nil
	}
	return list
}

func orNilMap[M ~map[K]V, K comparable, V any](m M) M {
	if len(m) == 0 {
		return nil
	}
	return m
}

// Bounds on a job. Every plan that places a job holds its body.
const (
	// MaxJobCount bounds the counts of all groups together.
	MaxJobCount = 1_000_000
	// MaxJobGroups bounds the groups.
	MaxJobGroups = 1000
	// MaxJobTasks bounds the tasks of all groups together.
	MaxJobTasks = 2000
	// MaxJobTextBytes bounds the configs, environments, meta maps and constraints of the job, its
	// groups and its tasks together, in bytes.
	MaxJobTextBytes = 1 << 20
)

// Validate returns the reasons why the job cannot run, joined, or nil. It returns about ten at
// most. It does not read the regular expressions and versions of constraints: see
// [Constraint.Validate].
func (j *Job) Validate() error {
	if j == nil {
		return errors.New("job is missing")
	}
	var errs []error
	if j.ID == "" {
		errs = append(errs, errors.New("Missing job ID"))
	} else if err := CheckID(j.ID); err != nil {
		errs = append(errs, fmt.Errorf("Invalid job ID: %w", err))
	}
	if j.Namespace != "" { // Canonicalize has the default
		if err := CheckID(j.Namespace); err != nil {
			errs = append(errs, fmt.Errorf("Invalid namespace: %w", err))
		}
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
	if err := j.checkSize(); err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = slices.DeleteFunc(append(errs, checkConstraints(j.Constraints), checkMap("Meta", j.Meta)), isNoError)
	names := make(map[string]bool, len(j.TaskGroups))
	for i, g := range j.TaskGroups {
		if len(errs) >= maxReasons {
			errs = append(errs, errTooManyReasons)
			break
		}
		if g == nil {
			errs = append(errs, fmt.Errorf("Task group %d is missing", i))
			continue
		}
		if names[g.Name] {
			errs = append(errs, fmt.Errorf("Task group %q is defined twice", g.Name))
		}
		names[g.Name] = true
		if err := g.validate(j.Type); err != nil {
			errs = append(errs, withPlace(named("Task group", g.Name, i), err))
		}
	}
	return errors.Join(errs...)
}

// checkSize returns which bound the job exceeds, or nil.
func (j *Job) checkSize() error {
	if len(j.TaskGroups) > MaxJobGroups {
		return fmt.Errorf("A job has at most %d task groups but found %d", MaxJobGroups, len(j.TaskGroups))
	}
	count, tasks := 0, 0
	for _, g := range j.TaskGroups {
		if g == nil {
			continue
		}
		tasks += len(g.Tasks)
		if g.Count > MaxJobCount-count {
			return fmt.Errorf("Counts of a job add up to at most %d", MaxJobCount)
		}
		count += max(0, g.Count)
	}
	if tasks > MaxJobTasks {
		return fmt.Errorf("A job has at most %d tasks but found %d", MaxJobTasks, tasks)
	}
	if size := j.TextBytes(); size > MaxJobTextBytes {
		return fmt.Errorf("Config, Env, Meta, Constraints and Devices of a job have at most %d bytes but found %d", MaxJobTextBytes, size)
	}
	if count := j.regexps(); count > MaxJobRegexps {
		return fmt.Errorf("A job has at most %d constraints with a regular expression but found %d", MaxJobRegexps, count)
	}
	return nil
}

// SameWork reports whether both jobs are registrations of the same work: they differ at most in the fields that
// the servers set, and in defaults that are filled in. A nil job is the same as no other.
func (j *Job) SameWork(o *Job) bool {
	return j != nil && o != nil && reflect.DeepEqual(j.work(), o.work())
}

// work returns a copy without the fields that the servers set. Empty lists are nil.
func (j *Job) work() *Job {
	c := j.Copy()
	c.Canonicalize()
	c.Version, c.CreateIndex, c.ModifyIndex, c.JobModifyIndex = 0, 0, 0, 0
	c.Datacenters, c.TaskGroups = orNil(c.Datacenters), orNil(c.TaskGroups)
	for _, g := range c.TaskGroups {
		if g != nil {
			g.NodeClasses, g.Tasks = orNil(g.NodeClasses), orNil(g.Tasks)
		}
	}
	return c
}

// RunsLike reports whether an allocation of one version of the group may run on unchanged when the job
// has the other version: the versions differ at most in what clients do not read. was and is are the jobs
// of the two versions.
func RunsLike(was, is *Job, group string) bool {
	a, b := was.Group(group), is.Group(group)
	switch {
	case a == nil || b == nil:
		return false
	case was == is || a == b:
		return true
	}
	return sameTaskMeta(was.Meta, is.Meta) && sameTaskMeta(a.Meta, b.Meta) && a.EphemeralDisk == b.EphemeralDisk && a.ShutdownDelay == b.ShutdownDelay && a.MaxRunDuration == b.MaxRunDuration &&
		a.Disconnect.StopOnClientAfter == b.Disconnect.StopOnClientAfter && slices.Equal(a.Ports, b.Ports) && slices.EqualFunc(a.Volumes, b.Volumes, VolumeRequest.equal) &&
		slices.EqualFunc(a.Tasks, b.Tasks, func(x, y *Task) bool {
			return x.unplaced().Equal(y.unplaced()) && a.RestartPolicyOf(x, was.Type) == b.RestartPolicyOf(y, is.Type)
		})
}

// Copy returns a copy that shares nothing with j that either may write to.
func (j *Job) Copy() *Job {
	if j == nil {
		return nil
	}
	c := *j
	c.Datacenters = slices.Clone(j.Datacenters)
	c.Constraints = slices.Clone(j.Constraints)
	c.Meta = maps.Clone(j.Meta)
	c.TaskGroups = slices.Clone(j.TaskGroups)
	for i, g := range c.TaskGroups {
		c.TaskGroups[i] = g.Copy()
	}
	return &c
}

// KeepsApart reports whether an allocation of a group of the job must not be on a node that another allocation
// of the job is on. A system or sysbatch job has one of each group on every node in any case.
func (j *Job) KeepsApart(group string, other *Allocation) bool {
	switch {
	case j == nil || j.Type.EveryNode():
		return false
	case j.DistinctHosts:
		return other.JobKey() == j.Key()
	}
	g := j.Group(group)
	return g != nil && g.DistinctHosts && other.JobKey() == j.Key() && other.TaskGroup == group
}

// maxReasons is about how many reasons a refusal names.
const maxReasons = 10

// errTooManyReasons stands for the reasons that were left out.
var errTooManyReasons = errors.New("and more is wrong")

func isNoError(err error) bool { return err == nil }

// withPlace puts the place before each reason of an error. Joined errors are a line each, and each line needs the place.
func withPlace(place string, err error) error {
	joined, is := err.(interface{ Unwrap() []error })
	if !is {
		return fmt.Errorf("%s: %w", place, err)
	}
	var errs []error
	for _, reason := range joined.Unwrap() {
		errs = append(errs, withPlace(place, reason))
	}
	return errors.Join(errs...)
}

// named is a part of a job in an error: its name, or its index if it has none.
func named(noun, name string, index int) string {
	if name == "" {
		return fmt.Sprintf("%s %d", noun, index)
	}
	return fmt.Sprintf("%s %q", noun, name)
}
