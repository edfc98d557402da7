package wire

import (
	"encoding/json"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpdateStrategy is how a new version of a job replaces the allocations of the older one. The servers keep
// MaxParallel, MinHealthyTime and HealthyDeadline. A registration may have anything in place of the others, which
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
		MinHealthyTime, HealthyDeadline *time.Duration
	}
	if len(text) == 0 || text[0] != '{' {
		return nil // package jobfields has warned of it
	}
	err := json.Unmarshal(text, &kept)
	u.MaxParallel, u.MinHealthyTime, u.HealthyDeadline = kept.MaxParallel, kept.MinHealthyTime, kept.HealthyDeadline
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
	// Why is why the next one is not replaced now, or empty.
	Why string `json:",omitempty"`
}

// ReschedulePolicy is how often and after which time the scheduler replaces allocations that failed. The
// servers do not keep the block: a registration may have anything in its place. In an answer it is what the
// scheduler does with every job.
type ReschedulePolicy struct {
	Attempts      *int
	Interval      *time.Duration
	Delay         *time.Duration
	DelayFunction *string
	MaxDelay      *time.Duration
	Unlimited     *bool
}

// UnmarshalJSON ignores the block.
func (*ReschedulePolicy) UnmarshalJSON([]byte) error { return nil }

// rescheduleInterval is the longest duration of a job: the scheduler counts failures in a row, however long
// ago they were.
const rescheduleInterval = 365 * 24 * time.Hour

// rescheduling replaces at once, until a number of replacements in a row have failed.
func rescheduling() *ReschedulePolicy {
	return &ReschedulePolicy{
		Attempts: new(cluster.MaxReschedules), Interval: new(rescheduleInterval), Delay: new(time.Duration(0)),
		DelayFunction: new("constant"), MaxDelay: new(time.Duration(0)), Unlimited: new(false),
	}
}
