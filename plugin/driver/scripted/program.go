package scripted

import (
	"errors"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Program is a driver that is installed on a [Machine]. It holds the tasks, which outlive a
// generation of the driver.
type Program struct {
	machine     *Machine
	name        string
	options     Options
	fingerprint driver.Fingerprint

	launched int
	living   []*Driver
	tasks    map[driver.TaskID]*task
	calls    map[counted]int
}

// Install returns a driver's program on the machine. It has no process yet.
func (m *Machine) Install(name string, options Options) *Program {
	p := &Program{
		machine: m, name: name, options: options,
		fingerprint: driver.Fingerprint{Health: driver.Healthy, Description: "Healthy"},
		tasks:       map[driver.TaskID]*task{}, calls: map[counted]int{},
	}
	if options.Fingerprint != nil {
		p.fingerprint = *options.Fingerprint
	}
	m.programs = append(m.programs, p)
	return p
}

// Name returns the name of the driver.
func (p *Program) Name() string { return p.name }

// Launch starts a process of the driver, whether another one lives or not. It answers with an error
// of class Gone if the process ends before the driver has answered.
func (p *Program) Launch(reply func(*Driver, error)) {
	d := &Driver{program: p, known: map[driver.TaskID]*knowledge{}}
	row := Process{Kind: DriverProcess, Command: p.name, Driver: p.name}
	var err error
	d.Instance, err = newInstance(p.machine, row, p.launched+1, func() {
		p.living = slices.DeleteFunc(p.living, func(other *Driver) bool { return other == d })
	})
	if err != nil {
		p.machine.clock.After(0, func() { reply(nil, err) })
		return
	}
	// A crash is a panic.
	d.crash = func() { p.machine.end(d.process, driver.ExitResult{Code: 2}) }
	p.launched++
	p.living = append(p.living, d)
	var launch Launch
	if p.options.Launch != nil {
		launch = p.options.Launch(d.generation)
	}
	d.Begin(launch, func(err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(d, nil)
	})
}

// Living returns the generations of the driver whose process runs, oldest first. A client that
// starts takes over the newest of them.
func (p *Program) Living() []*Driver { return slices.Clone(p.living) }

// SetFingerprint changes the health and attributes of the driver. Its living processes report it.
func (p *Program) SetFingerprint(f driver.Fingerprint) {
	p.fingerprint = f
	for _, d := range p.living {
		Report(d.Instance, f)
	}
}

// counted identifies the calls that are counted together.
type counted struct {
	name string
	task driver.TaskID
}

// fault returns the fault of a call.
func (p *Program) fault(c Call) Fault {
	key := counted{c.Name, c.Task}
	p.calls[key]++
	if p.options.Fault == nil {
		return Fault{}
	}
	c.Count = p.calls[key]
	if t := p.tasks[c.Task]; t != nil {
		c.Script = &t.script
	}
	return p.options.Fault(c)
}

// handlePrefix is the version of handles.
const handlePrefix = "scripted/1 "

// handle returns the handle of a task.
func handle(id driver.TaskID) driver.Handle { return driver.Handle(handlePrefix + string(id)) }

// checkHandle reports what is wrong with a handle of a task.
func checkHandle(id driver.TaskID, h driver.Handle) error {
	rest, ok := strings.CutPrefix(string(h), handlePrefix)
	switch {
	case !ok:
		return errors.New("the handle has another version")
	case rest != string(id):
		return errors.New("the handle is that of another task")
	}
	return nil
}

// callError returns an error of a call with its class.
func callError(call string, class driver.Class, err error) error {
	return &driver.Error{Class: class, Call: call, Err: err}
}
