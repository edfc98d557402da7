package cluster

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// UpdateStrategy is the pace at which a new version of a job replaces the allocations of a group.
type UpdateStrategy struct {
	// MaxParallel is how many allocations may be replaced at a time. Zero is all at once.
	MaxParallel int
	// MinHealthyTime is how long a replacement must run well to count as healthy, and HealthyDeadline
	// is how long it may take to get a verdict. An allocation has one verdict, so the longer ones of
	// this block and of the migrate block apply.
	MinHealthyTime  time.Duration
	HealthyDeadline time.Duration
}

// DefaultUpdateStrategy is the block of a group that has none.
func DefaultUpdateStrategy() UpdateStrategy {
	return UpdateStrategy{MaxParallel: DefaultMaxParallel, MinHealthyTime: DefaultMinHealthyTime, HealthyDeadline: DefaultHealthyDeadline}
}

// UpdateOf returns the group's block, or the default one.
func (g *TaskGroup) UpdateOf() UpdateStrategy {
	if g == nil || g.Update == nil {
		return DefaultUpdateStrategy()
	}
	return *g.Update
}

// Validate returns every reason why the block is wrong, joined, or nil.
func (u *UpdateStrategy) Validate() error {
	if u == nil {
		return nil
	}
	var errs []error
	if u.MaxParallel < 0 {
		errs = append(errs, fmt.Errorf("Update: MaxParallel must be >= 0 but found %d", u.MaxParallel))
	}
	if u.MinHealthyTime < 0 || u.HealthyDeadline < 0 {
		errs = append(errs, errors.New("Update: MinHealthyTime and HealthyDeadline must be >= 0"))
	}
	if u.MinHealthyTime > u.HealthyDeadline {
		errs = append(errs, errors.New("Update: MinHealthyTime must be less than HealthyDeadline"))
	}
	return errors.Join(errs...)
}

func (u *UpdateStrategy) copy() *UpdateStrategy {
	if u == nil {
		return nil
	}
	c := *u
	return &c
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
	return maps.Equal(was.Meta, is.Meta) && maps.Equal(a.Meta, b.Meta) && a.EphemeralDisk == b.EphemeralDisk && a.ShutdownDelay == b.ShutdownDelay &&
		a.Disconnect.StopOnClientAfter == b.Disconnect.StopOnClientAfter && reflect.DeepEqual(a.Volumes, b.Volumes) &&
		slices.EqualFunc(a.Tasks, b.Tasks, func(x, y *Task) bool {
			return x.unplaced().Equal(y.unplaced()) && a.RestartPolicyOf(x, was.Type) == b.RestartPolicyOf(y, is.Type)
		})
}

// unplaced returns a copy without what decides only where the task may run, and without the restart policy.
func (t *Task) unplaced() *Task {
	if t == nil {
		return nil
	}
	c := *t
	c.Constraints, c.RestartPolicy = nil, nil
	return &c
}
