package rawexec

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// watch waits for the end of a task and its shim, and sets the result.
func (d *Driver) watch(t *task) {
	d.awaitShim(t)
	r, err := d.read(t)
	settled := err == nil && (r.Phase == shim.Exited || r.Phase == shim.Failed)
	if !settled {
		d.clear(t, r)
	}
	t.record = r
	t.exit = driver.ExitResult{Unknown: true}
	if err == nil && r.Exit != nil {
		t.exit = driver.ExitResult{Code: r.Exit.Code, Signal: r.Exit.Signal, OOMKilled: r.Exit.OOMKilled}
	}
	if t.record.EndedAt.IsZero() {
		t.record.EndedAt = time.Now()
	}
	if t.exit.Unknown && r.Phase != shim.Failed {
		killed := "the processes of its control group were killed"
		if r.Cgroup == "" {
			killed = "the processes of its session were killed, and others of the task may run"
		}
		d.events.send(driver.Event{Task: t.id, Time: time.Now(), Message: "the shim of the task died: " + killed + ", and the exit result is lost"})
	}
	close(t.done)
}

// awaitShim returns after the shim has ended.
func (d *Driver) awaitShim(t *task) {
	ctx := context.Background() // the goroutine ends when the task or the driver ends
	for {
		r, _ := d.read(t)
		if !r.Shim.IsZero() {
			if p, opened := process.Open(r.Shim); opened == nil {
				_ = p.Wait(ctx)
				_ = p.Close()
				return
			}
		}
		// There is no readable record. The lock states whether a shim runs.
		if locked, err := t.folder.Locked(); err == nil && !locked {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// remainAfter is how long processes of a task may remain after its first process has ended, before an event
// names them. The shim kills them meanwhile.
const remainAfter = time.Second

// reportRemaining sends an event if processes of the task remain after its first process has ended, and again
// if they have changed. It returns when the task has ended.
func (d *Driver) reportRemaining(t *task) {
	reported := ""
	for wait := remainAfter; ; wait = min(2*wait, time.Minute) {
		r, _ := d.read(t)
		if p, err := process.Open(r.Task); err == nil {
			_ = p.Wait(context.Background()) // the goroutine ends when the task or the driver ends
			_ = p.Close()
		}
		select {
		case <-t.done:
			return
		case <-time.After(wait):
		}
		r, err := d.read(t)
		if err != nil || r.Phase != shim.Ending {
			continue
		}
		left := d.machine.remaining(r)
		if left == "" || left == reported {
			continue
		}
		reported = left
		d.log.Error("processes remain after the first process of a task has ended", "task", string(t.id), "processes", left)
		d.events.send(driver.Event{
			Task: t.id, Time: time.Now(), Annotations: map[string]string{driver.WaitsFor: left},
			Message: fmt.Sprintf("the first process has ended with exit code %d, and processes remain after the kill: %s", r.Exit.Code, left),
		})
	}
}

// clear kills the processes that a dead shim has left, and returns when all have ended.
func (d *Driver) clear(t *task, r shim.Record) {
	wait := time.Second
	for {
		err := d.machine.clear(r)
		if err == nil {
			return
		}
		left := cmp.Or(d.machine.remaining(r), err.Error())
		d.log.Error("processes remain after the kill", "task", string(t.id), "processes", left, "error", err)
		d.events.send(driver.Event{Task: t.id, Time: time.Now(), Message: "processes remain after the kill: " + left, Annotations: map[string]string{driver.WaitsFor: left}})
		time.Sleep(wait)
		wait = min(2*wait, time.Minute)
	}
}
