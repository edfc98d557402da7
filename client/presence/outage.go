package presence

import "time"

// LogInterval is the shortest time between two log lines about failures of one request.
const LogInterval = time.Minute

// Outage decides when failures of one kind of request are logged: a series of failures at its
// beginning and then once in each [LogInterval], and its end if the series was logged. A request that
// fails every other time is logged at most once in each interval, too. The zero value has no failure.
// It belongs to one goroutine at a time.
type Outage struct {
	began  time.Time // the first failure of the series, or zero
	logged time.Time // the last failure that was logged, also of an earlier series, or zero
	// reported: a failure of this series was logged.
	reported bool
}

// Failed notes a failure. It returns how long the request has failed, and whether to log that.
func (o *Outage) Failed(now time.Time) (lasting time.Duration, log bool) {
	if o.began.IsZero() {
		o.began = now
	}
	if o.logged.IsZero() || now.Sub(o.logged) >= LogInterval || now.Before(o.logged) { // or the clock was set back
		o.logged, o.reported, log = now, true, true
	}
	return now.Sub(o.began), log
}

// Succeeded notes a success. It returns how long the request had failed, and whether to log that it
// works again.
func (o *Outage) Succeeded(now time.Time) (lasted time.Duration, log bool) {
	if o.began.IsZero() {
		return 0, false
	}
	lasted, log = now.Sub(o.began), o.reported
	o.began, o.reported = time.Time{}, false
	return lasted, log
}
