package scripted

import "time"

// Clock is the time of a [Machine].
type Clock interface {
	// Now returns the present time. It never goes back.
	Now() time.Time
	// After calls do when the duration has passed, and not before After returns. Functions of one
	// time may run in any order. With a duration of zero or less the call comes as soon as
	// possible. cancel prevents the call, and has no effect after it.
	After(d time.Duration, do func()) (cancel func())
}

// Never is longer than every other duration.
const Never time.Duration = 1<<63 - 1

// after calls do when the duration has passed. With [Never] it never calls do.
func after(clock Clock, d time.Duration, do func()) {
	if d != Never {
		clock.After(d, do)
	}
}

// after calls do when the duration has passed, unless the process ends before. With [Never] it
// never calls do.
func (p *process) after(clock Clock, d time.Duration, do func()) {
	if d != Never && !p.row.Ended {
		p.ended = append(p.ended, clock.After(d, do))
	}
}
