package scripted

import (
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// event reports an event of a task.
func (t *task) event(d *Driver, message string) {
	Report(d.Instance, driver.Event{Task: t.id, Time: t.program.machine.clock.Now(), Message: message})
}

// Fingerprints is [driver.Driver.Fingerprints]. The function that it returns ends the stream; then
// ended is not called.
func (d *Driver) Fingerprints(report func(driver.Fingerprint), ended func(error)) (cancel func()) {
	return Open(d.Instance, CallFingerprint, faultOf(d, CallFingerprint, ""), report, ended, func(s *Stream) {
		f := d.program.fingerprint
		s.Send(func() { report(f) })
	})
}

// Events is [driver.Driver.Events], like Fingerprints.
func (d *Driver) Events(report func(driver.Event), ended func(error)) (cancel func()) {
	return Open(d.Instance, CallEvents, faultOf(d, CallEvents, ""), report, ended, func(*Stream) {})
}

// Stats is [driver.Driver.Stats], like Fingerprints. The stream ends without an error when the task
// has ended.
func (d *Driver) Stats(id driver.TaskID, interval time.Duration, report func(driver.Usage), ended func(error)) (cancel func()) {
	return Open(d.Instance, CallStats, faultOf(d, CallStats, id), report, ended, func(s *Stream) {
		k := d.known[id]
		switch {
		case k == nil:
			s.end(notFound(CallStats))
		default:
			k.task.measure(s, max(interval, time.Second), report)
		}
	})
}

// measure reports the usage of a task, and again after the interval.
func (t *task) measure(s *Stream, interval time.Duration, report func(driver.Usage)) {
	switch {
	case s.closed:
	case t.main.row.Ended:
		s.end(nil)
	default:
		usage := driver.Usage{Time: s.clock.Now()}
		s.Send(func() { report(usage) })
		after(s.clock, interval, func() { t.measure(s, interval, report) })
	}
}

// EndStreams ends the streams of fingerprints with an error. The driver works otherwise.
func (d *Driver) EndStreams() {
	End[driver.Fingerprint](d.Instance, callError(CallFingerprint, driver.Fatal, errors.New("the driver has ended the stream")))
}
