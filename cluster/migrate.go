package cluster

import (
	"errors"
	"fmt"
	"time"
)

// HealthCheck is the source of an allocation's health.
type HealthCheck string

// The values of [HealthCheck].
const (
	HealthChecks     HealthCheck = "checks"
	HealthTaskStates HealthCheck = "task_states"
)

// MigrateStrategy is the pace at which a drain may move a group: how many allocations may be down
// at once, and how a replacement proves its health.
type MigrateStrategy struct {
	// MaxParallel is how many of the group may be down at once because of drains, over all
	// draining nodes. Zero allows no paced move.
	MaxParallel int
	HealthCheck HealthCheck
	// MinHealthyTime is how long a replacement must run well to count as healthy.
	MinHealthyTime time.Duration
	// HealthyDeadline is how long a replacement may take to get a health verdict.
	HealthyDeadline time.Duration
	// MaxSurge is how many allocations of the group may have a replacement beside them. Above zero, a drain moves
	// an allocation only when its replacement is healthy, and MaxParallel limits the marks that no plan has
	// answered. Zero stops an allocation before its replacement starts.
	MaxSurge int `codec:",omitempty"`
}

// Defaults of a migrate block.
const (
	DefaultMaxParallel     = 1
	DefaultMinHealthyTime  = 10 * time.Second
	DefaultHealthyDeadline = 5 * time.Minute
)

// DefaultMigrateStrategy is the block of a service group that has none.
func DefaultMigrateStrategy() *MigrateStrategy {
	return &MigrateStrategy{
		MaxParallel:     DefaultMaxParallel,
		HealthCheck:     HealthChecks,
		MinHealthyTime:  DefaultMinHealthyTime,
		HealthyDeadline: DefaultHealthyDeadline,
	}
}

// Validate returns every reason why the block is wrong, joined, or nil.
func (m *MigrateStrategy) Validate() error {
	var errs []error
	if m.MaxParallel < 0 {
		errs = append(errs, fmt.Errorf("MaxParallel must be >= 0 but found %d", m.MaxParallel))
	}
	switch m.HealthCheck {
	case HealthChecks, HealthTaskStates:
	case "":
		if m.MaxParallel > 0 {
			errs = append(errs, errors.New("Missing HealthCheck"))
		}
	default:
		errs = append(errs, fmt.Errorf("Invalid HealthCheck: %q", m.HealthCheck))
	}
	if m.MinHealthyTime < 0 {
		errs = append(errs, fmt.Errorf("MinHealthyTime is %s and must be >= 0", m.MinHealthyTime))
	}
	if m.HealthyDeadline < 0 {
		errs = append(errs, fmt.Errorf("HealthyDeadline is %s and must be >= 0", m.HealthyDeadline))
	}
	if m.MinHealthyTime > m.HealthyDeadline {
		errs = append(errs, errors.New("MinHealthyTime must be less than HealthyDeadline"))
	}
	errs = append(errs, checkMaxSurge(m.MaxSurge))
	return errors.Join(errs...)
}

// UpdateStrategy is the pace at which a new version of a job replaces the allocations of a group.
type UpdateStrategy struct {
	// MaxParallel is how many allocations may be replaced at a time. Zero is all at once.
	MaxParallel int
	// MinHealthyTime is how long a replacement must run well to count as healthy, and HealthyDeadline
	// is how long it may take to get a verdict. An allocation has one verdict, so the longer ones of
	// this block and of the migrate block apply.
	MinHealthyTime  time.Duration
	HealthyDeadline time.Duration
	// HealthCheck is what the health of a replacement follows from. Empty is [HealthChecks]. See
	// [TaskGroup.ChecksDecide].
	HealthCheck HealthCheck `codec:",omitempty"`
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
	switch u.HealthCheck {
	case "", HealthChecks, HealthTaskStates:
	default:
		errs = append(errs, fmt.Errorf("Update: invalid HealthCheck: %q", CutText(string(u.HealthCheck))))
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

// GroupRollout is a rollout that has not ended.
type GroupRollout struct {
	Group string
	// Outdated is how many allocations the newer version still has to replace.
	Outdated int
	// Unhealthy is the allocation of the new version at which the rollout has stopped, or empty.
	Unhealthy AllocID
	// Why is why the next outdated allocation is not replaced now. It is empty if nothing prevents that.
	Why string
}

// Pace is the group's budget in numbers: how many healthy allocations it needs,
// and how many of them may be down for drains.
type Pace struct {
	Count       int
	MaxParallel int
	// HealthyDeadline is by when an allocation must have a health verdict,
	// counted from its creation.
	HealthyDeadline time.Duration
	// MaxSurge is the group's max_surge. StopsFirst means that no max_surge has an effect on the group: [StopsFirst] has
	// a reason.
	MaxSurge   int
	StopsFirst bool
}

// PaceOf returns the pace of the job's group, and false if the job or the group does not exist. A
// stopped job needs no healthy allocation. A service group without a migrate block has the
// default one.
func PaceOf(j *Job, group string) (Pace, bool) {
	g := j.Group(group)
	if g == nil {
		return Pace{}, false
	}
	m := g.Migrate
	if m == nil {
		m = DefaultMigrateStrategy()
	}
	p := Pace{
		Count: g.Count, MaxParallel: m.MaxParallel, HealthyDeadline: m.HealthyDeadline,
		MaxSurge: m.MaxSurge, StopsFirst: StopsFirst(g) != "",
	}
	if p.HealthyDeadline == 0 {
		p.HealthyDeadline = DefaultHealthyDeadline
	}
	if j.Stop {
		p.Count = 0
	}
	return p, true
}

// unlimited is more room than any group can use. It avoids an overflow when max_parallel is as
// large as an int.
const unlimited = 1 << 30

// Room is how many of the healthy allocations the budget allows to mark. It is negative for a
// group below its budget.
func (p Pace) Room(healthy int) int { return healthy - max(p.Count-p.MaxParallel, -unlimited) }
