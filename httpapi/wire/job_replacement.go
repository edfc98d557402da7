package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpdateStrategy is how a new version of a job replaces the allocations of the older one. The servers keep
// MaxParallel, HealthCheck, MinHealthyTime and HealthyDeadline. A registration may have anything in place of the others, which
// are zero in an answer. A nil field is taken from the job's block, then from the defaults.
type UpdateStrategy struct {
	Stagger          *time.Duration
	MaxParallel      *int
	HealthCheck      *string
	MinHealthyTime   *time.Duration
	HealthyDeadline  *time.Duration
	ProgressDeadline *time.Duration
	Canary           *int
	AutoRevert       *bool
	AutoPromote      *bool
}

// UnmarshalJSON reads the fields that the servers keep.
func (u *UpdateStrategy) UnmarshalJSON(text []byte) error {
	var kept struct {
		MaxParallel                     *int
		HealthCheck                     *string
		MinHealthyTime, HealthyDeadline *time.Duration
	}
	if len(text) == 0 || text[0] != '{' {
		return nil // package jobfields has warned of it
	}
	err := json.Unmarshal(text, &kept)
	u.MaxParallel, u.HealthCheck, u.MinHealthyTime, u.HealthyDeadline = kept.MaxParallel, kept.HealthCheck, kept.MinHealthyTime, kept.HealthyDeadline
	return err
}

// empty reports whether the block is that of an answer about a job without one.
func (u *UpdateStrategy) empty() bool {
	return u == nil || u.HealthyDeadline != nil && *u.HealthyDeadline == 0
}

// update fills a group's block from the job's and from the defaults.
func (c *conversion) update(w *UpdateStrategy) *cluster.UpdateStrategy {
	u, found := cluster.DefaultUpdateStrategy(), false
	for _, block := range []*UpdateStrategy{c.job.Update, w} {
		if block.empty() {
			continue
		}
		found = true
		override(&u.MaxParallel, block.MaxParallel)
		override(&u.MinHealthyTime, block.MinHealthyTime)
		override(&u.HealthyDeadline, block.HealthyDeadline)
		if block.HealthCheck != nil {
			u.HealthCheck = cluster.HealthCheck(*block.HealthCheck)
		}
	}
	if u.HealthCheck == cluster.HealthChecks {
		u.HealthCheck = ""
	}
	if !found {
		return nil
	}
	return &u
}

// newUpdate returns the block of a group.
func newUpdate(u cluster.UpdateStrategy) *UpdateStrategy {
	w := noUpdate()
	w.MaxParallel, w.MinHealthyTime, w.HealthyDeadline = &u.MaxParallel, &u.MinHealthyTime, &u.HealthyDeadline
	w.HealthCheck = new(string(cmp.Or(u.HealthCheck, cluster.HealthChecks)))
	return w
}

func noUpdate() *UpdateStrategy {
	return &UpdateStrategy{
		Stagger: new(time.Duration(0)), MaxParallel: new(0), HealthCheck: new(""), MinHealthyTime: new(time.Duration(0)),
		HealthyDeadline: new(time.Duration(0)), ProgressDeadline: new(time.Duration(0)), Canary: new(0), AutoRevert: new(false), AutoPromote: new(false),
	}
}

// GroupRollout is a rollout of a group that has not ended. Ours.
type GroupRollout struct {
	// Outdated is how many allocations the newer version of the job has still to replace.
	Outdated int
	// UnhealthyAllocID is the allocation of the new version at which the rollout has stopped, or empty.
	UnhealthyAllocID string `json:",omitempty"`
	// UnhealthyBecause is what its client reports as the cause, such as a failing check with its output, or empty.
	UnhealthyBecause string `json:",omitempty"`
	// Why is why the next one is not replaced now, or empty.
	Why string `json:",omitempty"`
}

// ReschedulePolicy is how often and after which delay the scheduler replaces allocations that ended by
// themselves. A nil field is taken from the job's block, then from the defaults of the type of job.
type ReschedulePolicy struct {
	Attempts      *int
	Interval      *time.Duration
	Delay         *time.Duration
	DelayFunction *string
	MaxDelay      *time.Duration
	Unlimited     *bool
}

// reschedulePolicy fills a group's block from the job's and from the defaults.
func (c *conversion) reschedulePolicy(w *ReschedulePolicy) *cluster.ReschedulePolicy {
	p := cluster.DefaultReschedulePolicy(c.kind)
	none := p == nil
	if none {
		p = &cluster.ReschedulePolicy{}
	}
	for _, block := range []*ReschedulePolicy{c.job.Reschedule, w} {
		if block == nil {
			continue
		}
		override(&p.Attempts, block.Attempts)
		override(&p.Interval, block.Interval)
		override(&p.Delay, block.Delay)
		override(&p.MaxDelay, block.MaxDelay)
		if block.DelayFunction != nil {
			p.DelayFunction = cluster.DelayFunction(*block.DelayFunction)
		}
		if block.Unlimited != nil {
			p.Unlimited = *block.Unlimited
		}
	}
	if none && *p == (cluster.ReschedulePolicy{}) || *p == withoutPolicy() {
		return nil
	}
	return p
}

// withoutPolicy is what an answer has for a group that was registered without a policy, below the cluster
// version that has them: the scheduler replaces at once, until a number of replacements in a row have failed,
// however long ago. The interval is the longest duration of a job.
func withoutPolicy() cluster.ReschedulePolicy {
	return cluster.ReschedulePolicy{Attempts: cluster.MaxReschedules, Interval: 365 * 24 * time.Hour, DelayFunction: cluster.DelayConstant}
}

// newReschedulePolicy returns the block of a group, or nil if the type of job has none.
func newReschedulePolicy(p *cluster.ReschedulePolicy, job cluster.JobType) *ReschedulePolicy {
	if job.EveryNode() {
		return nil
	}
	if p == nil {
		p = new(withoutPolicy())
	}
	return &ReschedulePolicy{
		Attempts: new(p.Attempts), Interval: new(p.Interval), Delay: new(p.Delay), DelayFunction: new(string(p.DelayFunction)),
		MaxDelay: new(p.MaxDelay), Unlimited: new(p.Unlimited),
	}
}

// migrate fills a group's block from the job's and from the defaults. A job that is not a service
// keeps its block, so that validation refuses it, and its meta sets nothing.
func (c *conversion) migrate(g *TaskGroup) *cluster.MigrateStrategy {
	surge := 0
	if c.kind == cluster.JobService {
		surge = surgeOfMeta(g.Meta, c.job.Meta)
	}
	if g.Migrate == nil && c.job.Migrate == nil && surge == 0 {
		return nil
	}
	m := cluster.DefaultMigrateStrategy()
	m.MaxSurge = surge
	for _, block := range []*MigrateStrategy{c.job.Migrate, g.Migrate} {
		if block == nil {
			continue
		}
		override(&m.MaxParallel, block.MaxParallel)
		override(&m.MinHealthyTime, block.MinHealthyTime)
		override(&m.HealthyDeadline, block.HealthyDeadline)
		override(&m.MaxSurge, block.MaxSurge)
		if block.HealthCheck != nil {
			m.HealthCheck = cluster.HealthCheck(*block.HealthCheck)
		}
	}
	return m
}

// newMigrate returns the block of a group of the job. A service that an older server registered without one has the
// default. A max_surge that is that of the meta is left out, so that a job that is read, changed in its meta and
// registered has the new one.
func newMigrate(g *cluster.TaskGroup, j *cluster.Job) *MigrateStrategy {
	m := g.Migrate
	if m == nil && j.Type == cluster.JobService {
		m = cluster.DefaultMigrateStrategy()
	}
	if m == nil {
		return nil
	}
	w := &MigrateStrategy{
		MaxParallel: new(m.MaxParallel), HealthCheck: new(string(m.HealthCheck)),
		MinHealthyTime: new(m.MinHealthyTime), HealthyDeadline: new(m.HealthyDeadline),
	}
	if m.MaxSurge != surgeOfMeta(g.Meta, j.Meta) {
		w.MaxSurge = new(m.MaxSurge)
	}
	return w
}

// surgeOfMeta returns max_surge as the meta of a group or of its job sets it, or zero. A text that is no such number sets
// nothing: registrations refuse it, and older servers have kept it.
func surgeOfMeta(group, job map[string]string) int {
	for _, meta := range []map[string]string{group, job} {
		if text, is := meta[cluster.MetaMaxSurge]; is {
			n, _ := ParseMaxSurge(text)
			return n
		}
	}
	return 0
}

// ParseMaxSurge reads max_surge from a value of meta.
func ParseMaxSurge(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > cluster.MaxMaxSurge {
		return 0, fmt.Errorf("it must be a whole number from 0 to %d", cluster.MaxMaxSurge)
	}
	return n, nil
}
