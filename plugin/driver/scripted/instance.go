package scripted

import (
	"cmp"
	"errors"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Instance is one generation of a plugin's process, with its calls. Doubles of drivers and of other
// plugins embed it.
type Instance struct {
	machine    *Machine
	process    *process
	generation int
	flights    flights
	streams    []*Stream
	// crash ends the process, as a fault of a call does.
	crash func()
}

// flights are the calls without an answer, in the order in which they began.
type flights struct {
	clock Clock
	gone  error // the error after the end of the process
	open  []*flight
}

// flight is a call without an answer.
type flight struct {
	call string
	fail func(error)
	over bool
}

// begin records a call that has no answer yet.
func (c *flights) begin(name string, fail func(error)) *flight {
	f := &flight{call: name, fail: fail}
	c.open = append(c.open, f)
	return f
}

// answer answers a call, unless it has an answer.
func (c *flights) answer(f *flight, reply func()) {
	if f.over {
		return
	}
	f.over = true
	c.open = slices.DeleteFunc(c.open, func(other *flight) bool { return other == f })
	c.clock.After(0, reply)
}

// fail answers all calls with class Gone.
func (c *flights) fail() {
	for _, f := range slices.Clone(c.open) {
		c.answer(f, func() { f.fail(callError(f.call, driver.Gone, c.gone)) })
	}
}

// NewInstance starts the process of a device plugin. Ended is called when it has ended.
func NewInstance(m *Machine, name string, generation int, ended func()) (*Instance, error) {
	i, err := newInstance(m, Process{Kind: PluginProcess, Command: name}, generation, ended)
	if err == nil {
		i.crash = func() { i.Kill(ByFault) }
		i.flights.gone = errors.New("the device plugin's process is gone")
	}
	return i, err
}

// newInstance starts a process. Its calls fail when it has ended.
func newInstance(m *Machine, row Process, generation int, ended func()) (*Instance, error) {
	p, err := m.start(row)
	if err != nil {
		return nil, callError("Launch", driver.Gone, err)
	}
	i := &Instance{machine: m, process: p, generation: generation, flights: flights{clock: m.clock, gone: errors.New("the driver's process is gone")}}
	p.ended = append(p.ended, func() {
		ended()
		i.flights.fail()
		i.streams = nil
	})
	return i, nil
}

// Generation returns the number of the process, from 1.
func (i *Instance) Generation() int { return i.generation }

// Process returns the identity of the plugin's process.
func (i *Instance) Process() Identity { return i.process.row.Identity }

// Alive reports whether the plugin's process runs.
func (i *Instance) Alive() bool { return !i.process.row.Ended }

// Kill sends SIGKILL to the plugin's process.
func (i *Instance) Kill(by Sender) { i.machine.signal(i.process, SIGKILL, by) }

// NotifyEnd calls reply once the plugin's process has ended.
func (i *Instance) NotifyEnd(reply func()) { i.machine.NotifyEnd(i.Process(), reply) }

// Begin answers the launch of the process, with an error if the launch fails.
func (i *Instance) Begin(launch Launch, reply func(error)) {
	f := i.flights.begin("Launch", reply)
	after(i.machine.clock, launch.Takes, func() {
		switch {
		case f.over:
		case launch.Err != "":
			i.flights.answer(f, func() { reply(callError("Launch", driver.Fatal, errors.New(launch.Err))) })
			i.crash()
		default:
			i.flights.answer(f, func() {
				reply(nil)
				if launch.Dies {
					i.crash()
				}
			})
		}
	})
}

// Call executes the effect of a call, with the call's fault before or after it. Effect passes the
// reply to answer, now or later. Fail replies with an error. Fault is called if the process runs.
func (i *Instance) Call(name string, fault func() Fault, fail func(error), effect func(answer func(reply func()))) {
	f := i.flights.begin(name, fail)
	if !i.Alive() {
		i.flights.fail()
		return
	}
	is := fault()
	act := func() {
		if f.over {
			return
		}
		failure := cmp.Or[error](is.Err, &driver.Error{Class: driver.Fatal, Call: name, Err: errors.New("a fault of the script")})
		is.Play(effect, func(reply func()) { i.flights.answer(f, reply) }, func() { fail(failure) }, i.crash)
	}
	if is.Delay <= 0 {
		act()
		return
	}
	after(i.machine.clock, is.Delay, act)
}

// Play executes the effect of a call with the action before or after it. The effect passes the reply
// to answer. fail replies with an error.
func (f Fault) Play(effect func(answer func(reply func())), answer func(reply func()), fail, crash func()) {
	switch f.Action {
	case Fail:
		answer(fail)
	case FailAfter:
		effect(func(func()) { answer(fail) })
	case Hang:
	case Crash:
		crash()
	case HangAfter:
		effect(func(func()) {})
	case CrashAfter:
		effect(func(func()) { crash() })
	default:
		effect(answer)
	}
}

// Stream is an open stream of a plugin. Its reports arrive one by one, in their order.
type Stream struct {
	clock   Clock
	reports []func()
	// receive is the function that gets the reports.
	receive any
	end     func(error)
	closed  bool
}

// Send queues a report.
func (s *Stream) Send(report func()) {
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

// Open opens a stream of reports, and calls opened with it. The function that it returns ends the
// stream; then ended is not called.
func Open[T any](i *Instance, name string, fault func() Fault, receive func(T), ended func(error), opened func(*Stream)) (cancel func()) {
	s := &Stream{clock: i.machine.clock, receive: receive}
	reply := func(err error) {
		if !s.closed {
			s.closed = true
			ended(err)
		}
	}
	s.end = reply
	i.Call(name, fault, reply, func(answer func(func())) {
		if s.closed {
			return
		}
		s.end = func(err error) { answer(func() { reply(err) }) }
		i.streams = append(i.streams, s)
		opened(s)
	})
	return func() {
		s.closed = true
		s.end(nil)
		i.remove(s)
	}
}

// remove removes a stream that has ended.
func (i *Instance) remove(s *Stream) {
	i.streams = slices.DeleteFunc(i.streams, func(other *Stream) bool { return other == s })
}

// Report sends a value to the open streams of its type.
func Report[T any](i *Instance, value T) {
	for _, s := range i.streams {
		if receive, is := s.receive.(func(T)); is {
			s.Send(func() { receive(value) })
		}
	}
}

// End ends the open streams of a type with an error. The plugin works otherwise.
func End[T any](i *Instance, err error) {
	for _, s := range slices.Clone(i.streams) {
		if _, is := s.receive.(func(T)); is {
			i.remove(s)
			s.end(err)
		}
	}
}
