package scripted

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// stream is an open stream of a driver. Its reports arrive one by one, in their order.
type stream struct {
	clock   Clock
	reports []func()
	end     func(error)
	closed  bool
	// fingerprints and events are nil for streams of another kind.
	fingerprints func(driver.Fingerprint)
	events       func(driver.Event)
}

// streams are the open streams of a driver.
type streams struct{ open []*stream }

// report sends a fingerprint to the open streams.
func (o *streams) report(f driver.Fingerprint) {
	for _, s := range o.open {
		if s.fingerprints != nil {
			s.send(func() { s.fingerprints(f) })
		}
	}
}

// event sends an event of a task to the open streams.
func (o *streams) event(t *task, message string) {
	e := driver.Event{Task: t.id, Time: t.program.machine.clock.Now(), Message: message}
	for _, s := range o.open {
		if s.events != nil {
			s.send(func() { s.events(e) })
		}
	}
}

// remove removes a stream that has ended.
func (o *streams) remove(s *stream) {
	o.open = slices.DeleteFunc(o.open, func(other *stream) bool { return other == s })
}

// send queues a report.
func (s *stream) send(report func()) {
	s.reports = append(s.reports, report)
	s.clock.After(0, func() {
		if s.closed {
			return
		}
		next := s.reports[0]
		s.reports[0] = nil
		s.reports = s.reports[1:]
		next()
	})
}

// Fingerprints is [driver.Driver.Fingerprints]. The function that it returns ends the stream; then
// ended is not called.
func (d *Driver) Fingerprints(report func(driver.Fingerprint), ended func(error)) (cancel func()) {
	s := &stream{fingerprints: report}
	return d.open(Call{Name: CallFingerprint}, s, ended, func() {
		f := d.program.fingerprint
		s.send(func() { report(f) })
	})
}

// Events is [driver.Driver.Events], like Fingerprints.
func (d *Driver) Events(report func(driver.Event), ended func(error)) (cancel func()) {
	return d.open(Call{Name: CallEvents}, &stream{events: report}, ended, func() {})
}

// Stats is [driver.Driver.Stats], like Fingerprints. The stream ends without an error when the task
// has ended.
func (d *Driver) Stats(id driver.TaskID, interval time.Duration, report func(driver.Usage), ended func(error)) (cancel func()) {
	s := &stream{}
	return d.open(Call{Name: CallStats, Task: id}, s, ended, func() {
		k := d.known[id]
		switch {
		case k == nil:
			s.end(notFound(CallStats))
		case k.task.script.StatsCrash:
			d.crash()
		default:
			k.task.measure(s, max(interval, time.Second), report)
		}
	})
}

// measure reports the usage of a task, and again after the interval.
func (t *task) measure(s *stream, interval time.Duration, report func(driver.Usage)) {
	switch {
	case s.closed:
	case t.main.row.Ended:
		s.end(nil)
	default:
		usage := driver.Usage{Time: s.clock.Now(), CPUPercent: t.script.UsedCPU, RSS: t.script.UsedRSS}
		s.send(func() { report(usage) })
		after(s.clock, interval, func() { t.measure(s, interval, report) })
	}
}

// open opens a stream.
func (d *Driver) open(c Call, s *stream, ended func(error), opened func()) (cancel func()) {
	s.clock = d.program.machine.clock
	reply := func(err error) {
		if !s.closed {
			s.closed = true
			ended(err)
		}
	}
	s.end = func(err error) { reply(err) }
	d.call(c.Name, c.Task, reply, func(answer func(func())) {
		if s.closed {
			return
		}
		s.end = func(err error) { answer(func() { reply(err) }) }
		d.streams.open = append(d.streams.open, s)
		opened()
	})
	return func() {
		s.closed = true
		s.end(nil)
		d.streams.remove(s)
	}
}

// Flood reports many different fingerprints of health Healthy, one after each interval.
func (d *Driver) Flood(count int, interval time.Duration) {
	if count <= 0 || !d.Alive() {
		return
	}
	d.streams.report(driver.Fingerprint{Health: driver.Healthy, Description: fmt.Sprintf("%d reports follow", count-1)})
	after(d.program.machine.clock, interval, func() { d.Flood(count-1, interval) })
}

// EndStreams ends the streams of fingerprints with an error. The driver works otherwise.
func (d *Driver) EndStreams() {
	for _, s := range slices.Clone(d.streams.open) {
		if s.fingerprints != nil {
			d.streams.remove(s)
			s.end(callError(CallFingerprint, driver.Fatal, errors.New("the driver has ended the stream")))
		}
	}
}

// CreateNetwork is [driver.Driver.CreateNetwork].
func (d *Driver) CreateNetwork(alloc, hostname string, reply func(network *driver.Network, created bool, err error)) {
	d.call(CallCreateNetwork, "", func(err error) { reply(nil, false, err) }, func(answer func(func())) {
		if !d.Capabilities().MustCreateNetwork {
			answer(func() { reply(nil, false, unsupported(CallCreateNetwork)) })
			return
		}
		created := !d.program.networks[alloc]
		d.program.networks[alloc] = true
		network := &driver.Network{Mode: driver.NetworkGroup, Path: "/var/run/netns/" + alloc, Hostname: hostname}
		answer(func() { reply(network, created, nil) })
	})
}

// DestroyNetwork is [driver.Driver.DestroyNetwork].
func (d *Driver) DestroyNetwork(alloc string, reply func(error)) {
	d.call(CallDestroyNetwork, "", reply, func(answer func(func())) {
		var err error
		if !d.Capabilities().MustCreateNetwork {
			err = unsupported(CallDestroyNetwork)
		}
		delete(d.program.networks, alloc)
		answer(func() { reply(err) })
	})
}

func unsupported(call string) error {
	return callError(call, driver.Unsupported, errors.New("the driver does not have the call"))
}
