package scripted

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// task is a task that has been started and not destroyed. It outlives the driver's process.
type task struct {
	program *Program
	id      driver.TaskID
	name    string
	script  Script
	main    *process
	// shim is nil unless the tasks of the driver have shims.
	shim     *process
	children []*process
	// starter is the generation that has started the task.
	starter *Driver
	// resultLost: the process that had the result has ended before the task.
	resultLost bool
	stopped    bool
}

// startTask starts a task's processes for a generation of the driver.
func (p *Program) startTask(d *Driver, cfg *driver.TaskConfig, script Script) (*task, error) {
	m := p.machine
	t := &task{program: p, id: cfg.ID, name: cfg.Name, script: script, starter: d}
	row := Process{Kind: TaskProcess, Command: cfg.Name, Task: cfg.ID, Driver: p.name}
	if p.options.Capabilities.HostCgroup || p.options.Containers {
		row.Cgroup, row.Contained = cfg.Resources.Cgroup, p.options.Containers
	}
	for _, d := range cfg.Devices {
		row.Devices = append(row.Devices, d.HostPath)
	}
	for _, port := range cfg.Resources.Ports {
		row.Ports = append(row.Ports, port.Number)
	}
	var err error
	if row.Cores, err = cluster.ParseCores(cfg.Resources.Cores); err != nil {
		return nil, err
	}
	if t.main, err = m.start(row); err != nil {
		return nil, err
	}
	t.main.killTakes = script.KillTakes
	t.main.react = t.react
	if script.Ends {
		t.main.after(m.clock, script.RunFor, func() { m.exit(t.main, script.Exit) })
	}
	if err := t.fork(row); err != nil {
		return nil, err
	}
	return t, t.adopt(row)
}

// fork starts the child of the script.
func (t *task) fork(row Process) error {
	if t.script.Child == nil {
		return nil
	}
	m := t.program.machine
	row.Kind = ChildProcess
	if t.script.Child.LeavesCgroup {
		row.Cgroup, row.Contained = "", false
	}
	child, err := m.start(row)
	if err != nil {
		return err
	}
	child.react = func(Signal) {}
	child.after(m.clock, t.script.Child.RunFor, func() { m.exit(child, driver.ExitResult{}) })
	t.children = append(t.children, child)
	if row.Contained {
		t.main.ended = append(t.main.ended, func() { m.signal(child, SIGKILL, ByKernel) })
	}
	return nil
}

// adopt gives the task its parent.
func (t *task) adopt(row Process) error {
	m := t.program.machine
	row.Kind, row.Cgroup, row.Contained, row.Devices, row.Ports, row.Cores = ShimProcess, "", false, nil, nil, nil
	kill := func() {
		if !t.main.row.Ended {
			t.resultLost = true
			m.signal(t.main, SIGKILL, ByKernel)
		}
	}
	switch t.program.options.Parent {
	case InShim:
		var err error
		if t.shim, err = m.start(row); err != nil {
			return err
		}
		t.shim.ended = append(t.shim.ended, kill)
	case InDriver:
		t.starter.process.ended = append(t.starter.process.ended, kill)
	default:
		t.starter.process.ended = append(t.starter.process.ended, func() {
			t.resultLost = t.resultLost || !t.main.row.Ended
		})
	}
	return nil
}

// react handles a signal that is not SIGKILL.
func (t *task) react(signal Signal) {
	if only := t.script.OnlySignal; t.script.IgnoreSignals || only != 0 && only != signal {
		return
	}
	result := signalExit(signal)
	if t.script.StopExit != nil {
		result = *t.script.StopExit
	}
	m := t.program.machine
	if t.script.StopTakes <= 0 {
		m.exit(t.main, result)
		return
	}
	t.main.after(m.clock, t.script.StopTakes, func() { m.exit(t.main, result) })
}

// result returns how the task has ended, as far as the driver can determine.
func (t *task) result() driver.ExitResult {
	if t.resultLost {
		return driver.ExitResult{Unknown: true}
	}
	return t.main.row.Exit
}

// killAll sends SIGKILL to the processes that the driver finds.
func (t *task) killAll() {
	m := t.program.machine
	m.signal(t.main, SIGKILL, ByDriver)
	if !t.program.options.LeavesChildren {
		for _, child := range t.children {
			m.signal(child, SIGKILL, ByDriver)
		}
	}
}

// forget removes what the driver's program keeps of a task that has ended.
func (t *task) forget() {
	delete(t.program.tasks, t.id)
	if t.shim != nil {
		t.program.machine.end(t.shim, driver.ExitResult{})
	}
	for _, d := range t.program.living {
		delete(d.known, t.id)
	}
}

// status is the answer of InspectTask.
func (t *task) status() driver.Status {
	s := driver.Status{ID: t.id, Name: t.name, State: driver.TaskRunning, StartedAt: t.main.row.StartedAt}
	if t.main.row.Ended {
		result := t.result()
		s.State, s.CompletedAt, s.Exit = driver.TaskExited, t.main.row.EndedAt, &result
	}
	return s
}

// Task is what the program keeps of a task, for judges.
type Task struct {
	ID   driver.TaskID
	Name string
	// Main is the identity of its first process.
	Main   Identity
	Script Script
	// Stopped is set once StopTask has sent a signal.
	Stopped bool
}

// Tasks returns the tasks that the program has started and not destroyed, by id.
func (p *Program) Tasks() []Task {
	var list []Task
	for _, id := range slices.Sorted(maps.Keys(p.tasks)) {
		t := p.tasks[id]
		list = append(list, Task{ID: id, Name: t.name, Main: t.main.row.Identity, Script: t.script, Stopped: t.stopped})
	}
	return list
}

// stopWait is the time after SIGKILL in which a driver waits for the end of a task.
const stopWait = 15 * time.Second
