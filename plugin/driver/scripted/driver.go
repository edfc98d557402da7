package scripted

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Driver is one generation of a driver's process: the calls of [driver.Driver], with replies. See
// the package for when replies come. A stream's report function is called like a reply, but many
// times.
type Driver struct {
	*Instance
	program *Program
	known   map[driver.TaskID]*knowledge
}

// knowledge is the state of a task in one generation of a driver.
type knowledge struct {
	task    *task
	waiters []func()
	// stopBegan: this generation has received StopTask.
	stopBegan bool
	// stops counts the calls of StopTask without an answer.
	stops int
}

// endsEarly reports whether a driver with EarlyWait takes a running task for ended.
func (k *knowledge) endsEarly() bool {
	return k.task.program.options.EarlyWait && k.task.stopped && !k.task.main.row.Ended
}

// Program returns the driver's program.
func (d *Driver) Program() *Program { return d.program }

// Capabilities returns what the driver can do.
func (d *Driver) Capabilities() driver.Capabilities { return d.program.options.Capabilities }

// call is Call with the fault of the program.
func (d *Driver) call(name string, id driver.TaskID, fail func(error), effect func(answer func(reply func()))) {
	d.Call(name, faultOf(d, name, id), fail, effect)
}

// faultOf returns the function that returns the fault of a call.
func faultOf(d *Driver, name string, id driver.TaskID) func() Fault {
	return func() Fault { return d.program.fault(Call{Name: name, Generation: d.generation, Task: id}) }
}

// callTask is call for a task that the driver must have.
func (d *Driver) callTask(name string, id driver.TaskID, fail func(error), effect func(k *knowledge, answer func(reply func()))) {
	d.call(name, id, fail, func(answer func(func())) {
		k := d.known[id]
		if k == nil {
			answer(func() { fail(notFound(name)) })
			return
		}
		effect(k, answer)
	})
}

func notFound(call string) error {
	return callError(call, driver.NotFound, errors.New("task not found for given id"))
}

// Start is [driver.Driver.Start]. The caller must not write to the config afterwards.
func (d *Driver) Start(cfg *driver.TaskConfig, reply func(driver.Handle, error)) {
	fail := func(err error) { reply(nil, err) }
	var script Script
	if d.program.options.Script != nil {
		script = d.program.options.Script(cfg)
	}
	d.call(CallStart, cfg.ID, fail, func(answer func(func())) {
		start := func() {
			if !d.Alive() {
				return
			}
			err := d.start(cfg, script)
			if err != nil {
				answer(func() { fail(err) })
				return
			}
			answer(func() { reply(handle(cfg.ID), nil) })
		}
		if script.StartDelay <= 0 {
			start()
			return
		}
		after(d.program.machine.clock, script.StartDelay, start)
	})
}

// start starts a task.
func (d *Driver) start(cfg *driver.TaskConfig, script Script) error {
	if d.program.tasks[cfg.ID] != nil {
		return callError(CallStart, driver.Fatal, fmt.Errorf("the task id %q is in use", cfg.ID))
	}
	if script.StartError != "" {
		class := driver.Fatal
		if script.StartRecoverable {
			class = driver.Recoverable
		}
		return callError(CallStart, class, errors.New(script.StartError))
	}
	t, err := d.program.startTask(d, cfg, script)
	if err != nil {
		return callError(CallStart, driver.Fatal, err)
	}
	d.program.tasks[t.id] = t
	d.hold(t)
	t.event(d, "Started")
	return nil
}

// hold adds a task of the program to those that the driver has.
func (d *Driver) hold(t *task) {
	k := &knowledge{task: t}
	d.known[t.id] = k
	if t.main.row.Ended {
		return
	}
	t.main.ended = append(t.main.ended, func() {
		if !d.Alive() {
			return
		}
		t.event(d, "Exited")
		k.answerWaiters()
	})
}

// answerWaiters answers the open calls of WaitTask.
func (k *knowledge) answerWaiters() {
	waiters := k.waiters
	k.waiters = nil
	for _, answer := range waiters {
		answer()
	}
}

// Recover is [driver.Driver.Recover].
func (d *Driver) Recover(id driver.TaskID, h driver.Handle, reply func(error)) {
	d.call(CallRecover, id, reply, func(answer func(func())) {
		err := d.recoverTask(id, h)
		answer(func() { reply(err) })
	})
}

func (d *Driver) recoverTask(id driver.TaskID, h driver.Handle) error {
	if d.known[id] != nil {
		return nil
	}
	if err := checkHandle(id, h); err != nil {
		return callError(CallRecover, driver.Fatal, err)
	}
	t := d.program.tasks[id]
	switch {
	case t == nil:
		return callError(CallRecover, driver.Fatal, errors.New("the task is lost"))
	case t.script.RecoverError != "":
		return callError(CallRecover, driver.Fatal, errors.New(t.script.RecoverError))
	}
	d.hold(t)
	return nil
}

// Wait is [driver.Driver.Wait].
func (d *Driver) Wait(id driver.TaskID, reply func(driver.ExitResult, error)) {
	fail := func(err error) { reply(driver.ExitResult{}, err) }
	d.callTask(CallWait, id, fail, func(k *knowledge, answer func(func())) {
		switch {
		case k.stopBegan && k.task.script.WaitFailsAfterStop:
			err := callError(CallWait, driver.Fatal, errors.New("the executor is closed"))
			answer(func() { reply(driver.ExitResult{Code: -1}, err) })
		case k.task.main.row.Ended || k.endsEarly():
			result := k.waitResult()
			answer(func() { reply(result, nil) })
		default:
			k.waiters = append(k.waiters, func() {
				result := k.waitResult()
				answer(func() { reply(result, nil) })
			})
		}
	})
}

// waitResult is the answer of WaitTask.
func (k *knowledge) waitResult() driver.ExitResult {
	if k.endsEarly() {
		return driver.ExitResult{}
	}
	return k.task.result()
}

// Stop is [driver.Driver.Stop].
func (d *Driver) Stop(id driver.TaskID, grace time.Duration, signal string, reply func(error)) {
	d.callTask(CallStop, id, reply, func(k *knowledge, answer func(func())) {
		t, m := k.task, d.program.machine
		number, err := ParseSignal(signal, SIGTERM)
		switch {
		case t.main.row.Ended:
			answer(func() { reply(nil) })
			return
		case err != nil:
			answer(func() { reply(callError(CallStop, driver.Fatal, err)) })
			return
		}
		k.stopBegan, t.stopped = true, true
		m.signal(t.main, number, ByDriver)
		if k.endsEarly() {
			k.answerWaiters()
		}
		if t.script.StopLies {
			answer(func() { reply(nil) })
			return
		}
		t.main.after(m.clock, grace, func() {
			// A shim finishes the stop that its dead driver has started.
			if d.Alive() || t.shim != nil && !t.shim.row.Ended {
				m.signal(t.main, SIGKILL, ByDriver)
			}
		})
		k.stops++
		over := sync.OnceFunc(func() { k.stops-- })
		t.onEnd(plus(grace, stopWait), func(err error) {
			over()
			answer(func() { reply(classified(CallStop, err)) })
		})
	})
}

// plus adds two durations, of which one may be [Never].
func plus(a, b time.Duration) time.Duration {
	if a > Never-b {
		return Never
	}
	return a + b
}

// classified gives a plain error the class Fatal.
func classified(call string, err error) error {
	if err == nil {
		return nil
	}
	return callError(call, driver.Fatal, err)
}

// onEnd calls reply when the task has ended, or with an error after the limit. Only the first
// answer of a call counts.
func (t *task) onEnd(limit time.Duration, reply func(error)) {
	if t.main.row.Ended {
		reply(nil)
		return
	}
	t.main.ended = append(t.main.ended, func() { reply(nil) })
	t.main.after(t.program.machine.clock, limit, func() { reply(errors.New("the task did not end after SIGKILL")) })
}

// Destroy is [driver.Driver.Destroy].
func (d *Driver) Destroy(id driver.TaskID, force bool, reply func(error)) {
	d.callTask(CallDestroy, id, reply, func(k *knowledge, answer func(func())) {
		if !k.task.main.row.Ended && !force {
			answer(func() { reply(callError(CallDestroy, driver.Fatal, errors.New("the task runs"))) })
			return
		}
		if _, killed := k.task.main.row.Signalled(SIGKILL); k.endsEarly() && k.stops > 0 && !killed {
			k.task.forget()
			answer(func() { reply(nil) })
			return
		}
		k.task.killAll()
		k.task.onEnd(stopWait, func(err error) {
			if err == nil && d.Alive() {
				k.task.forget()
			}
			answer(func() { reply(classified(CallDestroy, err)) })
		})
	})
}

// Inspect is [driver.Driver.Inspect].
func (d *Driver) Inspect(id driver.TaskID, reply func(driver.Status, error)) {
	fail := func(err error) { reply(driver.Status{}, err) }
	d.callTask(CallInspect, id, fail, func(k *knowledge, answer func(func())) {
		status := k.task.status()
		answer(func() { reply(status, nil) })
	})
}

// Signal is [driver.Driver.Signal].
func (d *Driver) Signal(id driver.TaskID, signal string, reply func(error)) {
	d.callTask(CallSignal, id, reply, func(k *knowledge, answer func(func())) {
		number, err := ParseSignal(signal, SIGINT)
		switch {
		case !d.Capabilities().SendSignals:
			err = callError(CallSignal, driver.Unsupported, errors.New("the driver sends no signals"))
		case err != nil:
			err = classified(CallSignal, err)
		default:
			d.program.machine.signal(k.task.main, number, ByDriver)
		}
		answer(func() { reply(err) })
	})
}

// Exec is [driver.Driver.ExecStreaming] without the streams.
func (d *Driver) Exec(id driver.TaskID, command []string, reply func(driver.ExitResult, error)) {
	fail := func(err error) { reply(driver.ExitResult{}, err) }
	d.callTask(CallExec, id, fail, func(k *knowledge, answer func(func())) {
		if !d.Capabilities().Exec {
			answer(func() { fail(callError(CallExec, driver.Unsupported, errors.New("the driver has no exec"))) })
			return
		}
		m, main := d.program.machine, k.task.main.row
		p, err := m.start(Process{Kind: ExecProcess, Command: fmt.Sprint(command), Task: id, Driver: main.Driver, Cgroup: main.Cgroup})
		if err != nil {
			answer(func() { fail(classified(CallExec, err)) })
			return
		}
		k.task.children = append(k.task.children, p)
		p.ended = append(p.ended, func() { answer(func() { reply(p.row.Exit, nil) }) })
		p.after(m.clock, 0, func() { m.exit(p, driver.ExitResult{}) })
	})
}
