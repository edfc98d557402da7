package machine

import (
	"errors"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// run is one process of the client, and the shell of its core. After its death, started effects
// continue on the machine, but they are not answered.
type run struct {
	node *Node
	core *client.Core
	// processes are the processes of drivers and device plugins that the client uses.
	processes map[client.Plugin]process
	served    served
	disks
	probes
	// stepped: the core has made its first step.
	stepped bool
}

var _ client.Shell = (*run)(nil)

// process is a process of a driver or a device plugin.
type process interface {
	Generation() int
	Alive() bool
	Kill(by scripted.Sender)
	NotifyEnd(reply func())
}

// died is the error of a launch or call if the process of a plugin has ended.
func died(p client.Plugin) error {
	if p.Type == client.DevicePlugin {
		return errors.New("the device plugin has died")
	}
	return errors.New("the driver has died")
}

// alive reports whether the client of the run still runs.
func (r *run) alive() bool { return r.node.run == r }

// begins records the start of an effect for a subject. It returns false if the client is dead.
func (r *run) begins(name, subject string) bool {
	if !r.alive() {
		return false
	}
	r.node.options.Observer.Began(r.node, name, subject)
	if effect := r.node.options.Effect; effect != nil && !effect(name, true) {
		r.node.KillClient()
		return false
	}
	return true
}

// answers answers an effect, if the client still runs.
func (r *run) answers(name string, reply func()) {
	if !r.alive() {
		return
	}
	if effect := r.node.options.Effect; effect != nil && !effect(name, false) {
		r.node.KillClient()
		return
	}
	reply()
}

// after calls do after a time, unless the machine restarts before.
func (r *run) after(d time.Duration, do func()) (cancel func()) {
	boot := r.node.machine.BootNumber()
	return r.node.clock.After(d, func() {
		if r.node.machine.BootNumber() == boot {
			do()
		}
	})
}

// Launch takes over the newest process of the plugin and kills older processes, or starts one.
func (r *run) Launch(p client.Plugin, reply func(client.Launched)) {
	if !r.begins("Launch", p.String()) {
		return
	}
	if p.Type == client.DevicePlugin {
		r.launchDevices(p, reply)
		return
	}
	program := r.node.programs[p.Name]
	launched := func(d *scripted.Driver, err error, reattached bool) {
		r.launched(p, d, err, reply, func(generation client.Generation) {
			reply(client.Launched{Generation: generation, Capabilities: d.Capabilities(), Reattached: reattached})
			d.Fingerprints(func(f driver.Fingerprint) {
				if r.alive() {
					r.core.Fingerprint(p.Name, generation, f)
				}
			}, func(error) {})
		})
	}
	if living := program.Living(); len(living) > 0 {
		d := living[len(living)-1]
		for _, old := range living[:len(living)-1] {
			old.Kill(scripted.ByClient)
		}
		r.after(folderTime, func() { launched(d, nil, true) })
		return
	}
	program.Launch(func(d *scripted.Driver, err error) { launched(d, err, false) })
}

// launched answers a launch of a plugin: with its process, or with an error.
func (r *run) launched(p client.Plugin, of process, err error, reply func(client.Launched), answer func(client.Generation)) {
	if err == nil && !of.Alive() {
		err = died(p)
	}
	if err != nil {
		r.answers("Launch", func() { reply(client.Launched{Err: err}) })
		return
	}
	generation := client.Generation(of.Generation())
	r.answers("Launch", func() {
		r.processes[p] = of
		answer(generation)
		of.NotifyEnd(func() {
			if r.alive() {
				r.core.PluginDown(p, generation, "")
			}
		})
	})
}

// Abandon kills a process of a plugin.
func (r *run) Abandon(p client.Plugin, generation client.Generation) {
	if !r.begins("Abandon", p.String()) {
		return
	}
	if of := r.processes[p]; of != nil && client.Generation(of.Generation()) == generation {
		of.Kill(scripted.ByClient)
	}
}

// process returns the process of a plugin that a call is for, or an error if it has ended.
func (r *run) process(p client.Plugin, generation client.Generation, call string) (process, error) {
	of := r.processes[p]
	if of == nil || client.Generation(of.Generation()) != generation || !of.Alive() {
		return nil, &driver.Error{Class: driver.Gone, Call: call, Err: died(p)}
	}
	return of, nil
}

// Save writes a record.
func (r *run) Save(record *client.Record, reply func(error)) {
	if !r.begins("Save", string(record.Alloc.ID)) {
		return
	}
	r.after(saveTime, func() {
		var err error
		if r.node.diskFull {
			err = syscall.ENOSPC
		} else if r.alive() {
			r.node.disk[record.Alloc.ID] = record
			r.node.options.Observer.Saved(r.node, record)
		}
		if record.Ended && r.alive() {
			r.node.watchdog.remove(record.Alloc.ID)
		}
		r.answers("Save", func() { reply(err) })
	})
}

// Discard removes a record.
func (r *run) Discard(alloc cluster.AllocID, reply func(error)) {
	if !r.begins("Discard", string(alloc)) {
		return
	}
	r.after(folderTime, func() {
		if r.alive() {
			delete(r.node.disk, alloc)
			r.node.disks.remove(alloc)
			r.node.options.Observer.Discarded(r.node, alloc)
		}
		r.answers("Discard", func() { reply(nil) })
	})
}

// Build guards the allocation, and creates its disk.
func (r *run) Build(alloc *cluster.Allocation, reply func(error)) {
	if !r.begins("Build", string(alloc.ID)) {
		return
	}
	r.after(folderTime, func() {
		if r.alive() {
			r.node.watchdog.put(alloc)
			r.node.disks.build(alloc.ID)
		}
		r.answers("Build", func() { reply(nil) })
	})
}

// driver returns the process of the driver that the call is for, or an error if it has ended.
func (r *run) driver(ref client.TaskRef, call string) (*scripted.Driver, error) {
	of, err := r.process(client.Plugin{Type: client.DriverPlugin, Name: ref.Driver}, ref.Generation, call)
	if err != nil {
		return nil, err
	}
	return of.(*scripted.Driver), nil
}

// Start creates the cgroup and starts the task.
func (r *run) Start(ref client.TaskRef, alloc *cluster.Allocation, parts []device.Part, reply func(driver.Handle, error)) {
	if !r.begins("Start", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(h driver.Handle, err error) {
		if err == nil && r.alive() {
			r.served.begin(ref)
		}
		r.answers("Start", func() { reply(h, err) })
	}
	d, err := r.driver(ref, scripted.CallStart)
	if err != nil {
		r.after(folderTime, func() { answer(nil, err) })
		return
	}
	reserved, err := device.Merge(parts)
	if err != nil {
		r.after(folderTime, func() { answer(nil, &driver.Error{Class: driver.Fatal, Call: scripted.CallStart, Err: err}) })
		return
	}
	r.node.machine.MakeCgroup(cgroup(ref.Alloc, ref.Task))
	r.node.volumes.starts(ref.ID, alloc, ref.Task)
	config := taskConfig(r.node, ref.ID, alloc, ref.Task)
	config.DeviceEnv, config.Mounts, config.Devices = reserved.Env, reserved.Mounts, reserved.Devices
	d.Start(config, answer)
}

// Recover passes a task to a new process of its driver.
func (r *run) Recover(ref client.TaskRef, _ *cluster.Allocation, handle driver.Handle, reply func(error)) {
	recovered := func(err error) {
		if err == nil {
			r.served.begin(ref)
		}
		reply(err)
	}
	r.call(ref, "Recover", recovered, func(d *scripted.Driver, answer func(error)) { d.Recover(ref.ID, handle, answer) })
}

// call makes a driver call whose answer is only an error.
func (r *run) call(ref client.TaskRef, name string, reply func(error), do func(d *scripted.Driver, answer func(error))) {
	if !r.begins(name, cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(err error) { r.answers(name, func() { reply(err) }) }
	d, err := r.driver(ref, name)
	if err != nil {
		r.after(folderTime, func() { answer(err) })
		return
	}
	do(d, once(r, name, callTimeout, answer))
}

// once answers once: with the answer, or with an error at the end of the time limit.
func once(r *run, name string, limit time.Duration, answer func(error)) func(error) {
	done := false
	var cancel func()
	first := func(err error) {
		if !done {
			done = true
			cancel()
			answer(err)
		}
	}
	cancel = r.after(limit, func() {
		first(&driver.Error{Class: driver.Deadline, Call: name, Err: errors.New("no answer in time")})
	})
	return first
}

// Wait answers when the task has ended.
func (r *run) Wait(ref client.TaskRef, reply func(driver.ExitResult, error)) {
	if !r.begins("Wait", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(e driver.ExitResult, err error) {
		if err == nil && r.alive() && r.node.watchdog.notes[ref.Alloc] != nil {
			r.core.StoppedByWatchdog(r.node.watchdog.read(ref.Alloc))
		}
		r.answers("Wait", func() { reply(e, err) })
	}
	d, err := r.driver(ref, scripted.CallWait)
	if err != nil {
		r.after(folderTime, func() { answer(driver.ExitResult{}, err) })
		return
	}
	d.Wait(ref.ID, answer)
}

// Inspect answers with the driver's state of the task.
func (r *run) Inspect(ref client.TaskRef, reply func(driver.Status, error)) {
	var status driver.Status
	r.call(ref, "Inspect", func(err error) { reply(status, err) }, func(d *scripted.Driver, answer func(error)) {
		d.Inspect(ref.ID, func(s driver.Status, err error) {
			status = s
			answer(err)
		})
	})
}

// Stop makes the driver stop the task.
func (r *run) Stop(ref client.TaskRef, grace time.Duration, signal string, reply func(error)) {
	if !r.begins("Stop", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(err error) { r.answers("Stop", func() { reply(err) }) }
	d, err := r.driver(ref, scripted.CallStop)
	if err != nil {
		r.after(folderTime, func() { answer(err) })
		return
	}
	d.Stop(ref.ID, grace, signal, once(r, "Stop", min(grace, client.Never-client.StopSlack)+client.StopSlack, answer))
}

// Kill kills the cgroup of the task. If the cgroup does not contain the task, the driver destroys
// the task first.
func (r *run) Kill(ref client.TaskRef, reply func([]client.Process, error)) {
	if !r.begins("Kill", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(left []client.Process, err error) { r.answers("Kill", func() { reply(left, err) }) }
	destroyed := func(err error) {
		switch {
		case !r.alive(): // a dead client kills nothing
		case err != nil && driver.ClassOf(err) != driver.NotFound:
			answer(nil, err)
		default:
			kill(r, ref, answer)
		}
	}
	if !r.node.options.Containers || ref.Generation == 0 {
		destroyed(nil)
		return
	}
	destroy(r, ref, "Kill", destroyed)
}

// destroy destroys a task by force.
func destroy(r *run, ref client.TaskRef, name string, answer func(error)) {
	d, err := r.driver(ref, scripted.CallDestroy)
	if err != nil {
		r.after(folderTime, func() { answer(err) })
		return
	}
	d.Destroy(ref.ID, true, once(r, name, callTimeout, answer))
}

// kill kills the cgroup of the task, and answers when it is empty or after a second. If the client has no record
// of the start, its processes first get the default kill timeout, as from the shims of a node.
func kill(r *run, ref client.TaskRef, answer func([]client.Process, error)) {
	if ref.ID == "" && len(r.node.machine.LivingIn(cgroup(ref.Alloc, ref.Task))) > 0 {
		r.after(cluster.DefaultKillTimeout, func() {
			if r.alive() {
				killNow(r, ref, answer)
			}
		})
		return
	}
	killNow(r, ref, answer)
}

func killNow(r *run, ref client.TaskRef, answer func([]client.Process, error)) {
	m, path := r.node.machine, cgroup(ref.Alloc, ref.Task)
	if err := kernel(r.node, KillGroup); err != nil {
		r.after(folderTime, func() { answer(nil, err) })
		return
	}
	m.KillCgroup(path, scripted.ByClient)
	finish := func() {
		var left []client.Process
		for _, p := range m.LivingIn(path) {
			left = append(left, client.Process{PID: p.PID, Command: p.Command, State: "D"})
		}
		answer(left, nil)
	}
	var cancelLimit func()
	cancelWait := m.AwaitEmpty(path, func() {
		cancelLimit()
		finish()
	})
	cancelLimit = r.after(killTime, func() {
		cancelWait()
		finish()
	})
}

// AwaitEmpty answers when the cgroup of the task is empty.
func (r *run) AwaitEmpty(ref client.TaskRef, reply func(error)) {
	if !r.begins("AwaitEmpty", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(err error) { r.answers("AwaitEmpty", func() { reply(err) }) }
	if err := kernel(r.node, AwaitGroup); err != nil {
		r.after(folderTime, func() { answer(err) })
		return
	}
	r.node.machine.AwaitEmpty(cgroup(ref.Alloc, ref.Task), func() { answer(nil) })
}

// Clean destroys the task, kills its cgroup and removes it.
func (r *run) Clean(ref client.TaskRef, reply func([]client.Process, error)) {
	if !r.begins("Clean", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	answer := func(left []client.Process, err error) {
		if err == nil && len(left) == 0 && r.alive() {
			r.served.end(ref)
		}
		r.answers("Clean", func() { reply(left, err) })
	}
	destroyed := func(failed error) {
		if !r.alive() {
			return // a dead client kills nothing
		}
		if failed != nil && driver.ClassOf(failed) == driver.Gone {
			answer(nil, failed)
			return
		}
		kill(r, ref, func(left []client.Process, err error) {
			if err != nil || len(left) > 0 {
				answer(left, err)
				return
			}
			if failed != nil && driver.ClassOf(failed) != driver.NotFound {
				answer(nil, failed)
				return
			}
			if err := kernel(r.node, RemoveGroup); err != nil {
				answer(nil, err)
				return
			}
			answer(nil, r.node.machine.RemoveCgroup(cgroup(ref.Alloc, ref.Task)))
		})
	}
	if ref.Generation == 0 || ref.ID == "" {
		destroyed(nil)
		return
	}
	destroy(r, ref, "Clean", destroyed)
}

// Report sends reports to the servers.
func (r *run) Report(reports []cluster.AllocReport, reply func(bool)) {
	if !r.begins("Report", "") {
		return
	}
	r.node.options.Observer.Reported(r.node, reports)
	r.node.options.Report(reports, func(taken bool) {
		if taken {
			r.node.options.Observer.Taken(r.node, reports)
		}
		r.answers("Report", func() { reply(taken) })
	})
}

// Publish sends the facts of the node to the servers.
func (r *run) Publish(facts client.NodeFacts) {
	if r.begins("Publish", "") && r.node.options.Publish != nil {
		r.node.options.Publish(facts)
	}
}
