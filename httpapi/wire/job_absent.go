package wire

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

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
