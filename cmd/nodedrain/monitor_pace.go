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

// paceWindow is the number of recent departures that determine the pace.
const paceWindow = 32

// saw records the number of allocations left. If it grew, new allocations have come.
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

// remaining estimates the time left from the recent pace. ok is false before the first
// departure.
func (p *pacer) remaining(now time.Time) (d time.Duration, ok bool) {
	if len(p.gone) == 0 {
		return 0, false
	}
	took := now.Sub(p.began)
	return time.Duration(float64(took) / float64(len(p.gone)) * float64(p.left)), true
}
