package main

import "time"

// pacer knows how fast allocations leave. Its zero value has seen nothing.
type pacer struct {
	began time.Time
	left  int
	// most is how many there were to leave: those that left and those that are left.
	most int
	// gone are when the last that left did, oldest first, at most paceWindow.
	gone []time.Time
}

// paceWindow is how many departures the present pace is taken from.
const paceWindow = 32

// saw notes how many are left at a time. More than before have come in addition.
func (p *pacer) saw(left int, now time.Time) {
	if p.began.IsZero() {
		p.began, p.most = now, left
	} else if left > p.left {
		p.most += left - p.left
	}
	for range p.left - left {
		p.gone = append(p.gone, now)
	}
	if extra := len(p.gone) - paceWindow; extra > 0 {
		p.began = p.gone[extra-1]
		p.gone = p.gone[extra:]
	}
	p.left = left
}

// remaining is how long what is left takes if it leaves as the last did. ok is false while
// nothing has left.
func (p *pacer) remaining(now time.Time) (d time.Duration, ok bool) {
	if len(p.gone) == 0 {
		return 0, false
	}
	took := now.Sub(p.began)
	return time.Duration(float64(took) / float64(len(p.gone)) * float64(p.left)), true
}
