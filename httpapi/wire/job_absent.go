package wire

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// UpdateStrategy is how a new version of a job replaces the allocations of the older one. The servers do not
// replace them, and do not keep the block: a registration may have anything in its place. In an answer every field is zero, which is the empty block of the compatible API.
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

// UnmarshalJSON ignores the block.
func (*UpdateStrategy) UnmarshalJSON([]byte) error { return nil }

func noUpdate() *UpdateStrategy {
	return &UpdateStrategy{
		Stagger: new(time.Duration(0)), MaxParallel: new(0), HealthCheck: new(""), MinHealthyTime: new(time.Duration(0)),
		HealthyDeadline: new(time.Duration(0)), ProgressDeadline: new(time.Duration(0)), Canary: new(0), AutoRevert: new(false), AutoPromote: new(false),
	}
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
