package scripted

import "time"

// Clock is the time of a [Machine].
type Clock interface {
	// Now returns the present time. It never goes back.
	Now() time.Time
	// After runs do once the duration is over, and not before After returns. Functions of one time
	// may run in any order. A duration of zero or less is as soon as possible. The function that
	// After returns takes the request back. It has no effect once do has run.
	After(d time.Duration, do func()) (cancel func())
}

// Never is longer than anything lasts.
const Never time.Duration = 1<<63 - 1

// after runs do once the duration is over; with [Never] it does not.
func after(clock Clock, d time.Duration, do func()) {
	if d != Never {
		clock.After(d, do)
	}
}

// after runs do once the duration is over, unless the process ends before; with [Never] it does
// not.
func (p *process) after(clock Clock, d time.Duration, do func()) {
	if d != Never && !p.row.Ended {
		p.ended = append(p.ended, clock.After(d, do))
	}
}
