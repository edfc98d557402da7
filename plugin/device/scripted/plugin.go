package scripted

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Plugin is one generation of a device plugin's process: the calls of [device.Plugin], with
// replies.
type Plugin struct {
	program    *Program
	generation int
	process    scripted.Identity
	alive      bool
	flights    []*flight
	streams    []*stream
	// onEnd run when the process has ended.
	onEnd []func()
}

// flight is a call without an answer.
type flight struct {
	call string
	fail func(error)
	over bool
}

// stream is an open stream of fingerprints. Its reports arrive one by one, in their order.
type stream struct {
	report func([]*cluster.DeviceGroup)
	end    func(error)
	queue  [][]*cluster.DeviceGroup
	closed bool
}

// Program returns the plugin's program.
func (d *Plugin) Program() *Program { return d.program }

// Generation returns the number of the process, from 1.
func (d *Plugin) Generation() int { return d.generation }

// Process returns the identity of the plugin's process.
func (d *Plugin) Process() scripted.Identity { return d.process }

// Alive reports whether the plugin's process runs.
func (d *Plugin) Alive() bool { return d.alive }

// Kill sends SIGKILL to the plugin's process.
func (d *Plugin) Kill(by scripted.Sender) {
	d.program.machine.Signal(d.process, scripted.SIGKILL, by)
}

// NotifyEnd calls reply once the plugin's process has ended.
func (d *Plugin) NotifyEnd(reply func()) {
	if !d.alive {
		d.program.clock.After(0, reply)
		return
	}
	d.onEnd = append(d.onEnd, reply)
}

var errGone = errors.New("the device plugin's process is gone")

// ended answers all calls when the process has ended.
func (d *Plugin) ended() {
	d.alive = false
	d.program.living = slices.DeleteFunc(d.program.living, func(other *Plugin) bool { return other == d })
	for _, f := range slices.Clone(d.flights) {
		d.answer(f, func() { f.fail(callError(f.call, driver.Gone, errGone)) })
	}
	d.streams = nil
	for _, reply := range d.onEnd {
		d.program.clock.After(0, reply)
	}
	d.onEnd = nil
}

// begin notes a call that has no answer yet.
func (d *Plugin) begin(name string, fail func(error)) *flight {
	f := &flight{call: name, fail: fail}
	d.flights = append(d.flights, f)
	return f
}

// answer answers a call, unless it has an answer.
func (d *Plugin) answer(f *flight, reply func()) {
	if f.over {
		return
	}
	f.over = true
	d.flights = slices.DeleteFunc(d.flights, func(other *flight) bool { return other == f })
	d.program.clock.After(0, reply)
}

// call plays the fault of a call around its effect, which is answered later with the function that
// it gets.
func (d *Plugin) call(c Call, fail func(error), effect func(answer func(reply func()))) {
	f := d.begin(c.Name, fail)
	if !d.alive {
		d.answer(f, func() { fail(callError(c.Name, driver.Gone, errGone)) })
		return
	}
	c.Generation = d.generation
	fault := d.program.fault(c)
	act := func() {
		if f.over {
			return
		}
		switch fault.Action {
		case scripted.Fail:
			err := fault.Err
			if err == nil {
				err = &driver.Error{Class: driver.Fatal, Call: c.Name, Err: errors.New("a fault of the script")}
			}
			d.answer(f, func() { fail(err) })
		case scripted.Hang:
		case scripted.HangAfter:
			effect(func(func()) {})
		case scripted.Crash:
			d.Kill(scripted.ByFault)
		case scripted.CrashAfter:
			effect(func(func()) { d.Kill(scripted.ByFault) })
		default:
			effect(func(reply func()) { d.answer(f, reply) })
		}
	}
	if fault.Delay <= 0 {
		act()
		return
	}
	d.program.after(fault.Delay, act)
}

// Reserve is [device.Plugin.Reserve] for a start of a task. The plugin notes the start as the owner
// of its devices when the call comes, also if the call fails: it may take effect later.
func (d *Plugin) Reserve(task driver.TaskID, ids []string, reply func(device.Reservation, error)) {
	p := d.program
	if d.alive {
		for _, id := range ids {
			if found, is := p.find(id); is {
				p.rows[found] = Row{Kind: found.kind, ID: id, Owner: task, At: p.clock.Now()}
			}
		}
	}
	fail := func(err error) { reply(device.Reservation{}, err) }
	d.call(Call{Name: CallReserve, Task: task}, fail, func(answer func(func())) {
		r, err := p.reservation(ids)
		answer(func() { reply(r, err) })
	})
}

// reservation is what a task needs to use devices: a file of each, and a variable with its path.
func (p *Program) reservation(ids []string) (device.Reservation, error) {
	var r device.Reservation
	for _, id := range ids {
		found, is := p.find(id)
		if !is {
			return device.Reservation{}, callError(CallReserve, driver.Fatal, fmt.Errorf("unknown device %q", id))
		}
		if r.Env == nil {
			r.Env = map[string]string{}
		}
		path := Path(found.kind, id)
		r.Env[variable(found.kind.Type+"_"+id)] = path
		r.Devices = append(r.Devices, driver.Device{TaskPath: path, HostPath: path, Permissions: "rw"})
	}
	return r, nil
}

// variable is the name of a variable.
func variable(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(text))
}

// Fingerprints is [device.Plugin.Fingerprints]. The function that it returns ends the stream; then
// ended is not called.
func (d *Plugin) Fingerprints(report func([]*cluster.DeviceGroup), ended func(error)) (cancel func()) {
	s := &stream{report: report}
	end := func(err error) {
		if !s.closed {
			s.closed = true
			ended(err)
		}
	}
	s.end = end
	d.call(Call{Name: CallFingerprint}, end, func(answer func(func())) {
		if s.closed {
			return
		}
		s.end = func(err error) { answer(func() { end(err) }) }
		d.streams = append(d.streams, s)
		d.send(s)
	})
	return func() {
		s.closed = true
		d.streams = slices.DeleteFunc(d.streams, func(other *stream) bool { return other == s })
	}
}

// report sends the present devices to the open streams.
func (d *Plugin) report() {
	for _, s := range d.streams {
		d.send(s)
	}
}

// send queues a report of the present devices.
func (d *Plugin) send(s *stream) {
	s.queue = append(s.queue, d.program.Groups())
	d.program.clock.After(0, func() {
		next := s.queue[0]
		s.queue = s.queue[1:]
		if !s.closed {
			s.report(next)
		}
	})
}

// EndStreams ends the streams of fingerprints with an error. The plugin works otherwise.
func (d *Plugin) EndStreams() {
	streams := d.streams
	d.streams = nil
	for _, s := range streams {
		s.end(callError(CallFingerprint, driver.Fatal, errors.New("the device plugin has ended the stream")))
	}
}
