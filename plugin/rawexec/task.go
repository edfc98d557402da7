package rawexec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// settleFor is how long Stop and Destroy wait after the last SIGKILL before they return an error
// with the remaining processes.
const settleFor = 10 * time.Second

// killMargin is how long the driver waits after the grace for the shim to kill its task, before the
// driver kills it.
const killMargin = time.Second

// task is a task that the driver has.
type task struct {
	id     driver.TaskID
	folder shim.Folder
	config *driver.TaskConfig // nil: the driver did not start the task and has not recovered it
	known  state              // guarded by the driver's mu: of the handle, or zero
	killAt time.Time          // guarded by the driver's mu: the end of the grace of a stop, or zero

	// done is closed when all processes of the task have ended. After that exit and record do not
	// change.
	done   chan struct{}
	exit   driver.ExitResult
	record shim.Record
}

// ended reports whether all processes of the task have ended.
func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// Recover takes a task over from its handle. It kills the processes of a task without a record.
func (d *Driver) Recover(_ context.Context, c *driver.TaskConfig, _ int32, encoded []byte) error {
	var st state
	if err := json.Unmarshal(encoded, &st); err != nil {
		return fmt.Errorf("decode the handle: %w", err)
	}
	err := takeOver(d, c, st)
	if errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(fmt.Errorf("no shim has a record of task %q: the machine has restarted, or the folder %s was deleted", c.ID, st.Folder), d.machine.killLost(st))
	}
	return err
}

// takeOver adds the task of a handle to the driver. It is an [fs.ErrNotExist] if the task has no record.
func takeOver(d *Driver, c *driver.TaskConfig, st state) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[c.ID]; t != nil {
		if t.config == nil {
			t.config = c
		}
		return nil
	}
	r, err := st.Folder.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return err
	case err == nil && r.Protocol > shim.Protocol:
		return fmt.Errorf("the shim of task %q speaks protocol %d, and this driver up to %d: run the newer driver", c.ID, r.Protocol, shim.Protocol)
	}
	// If the record cannot be read, the handle names the processes and the control group.
	d.adopt(&task{id: c.ID, folder: st.Folder, config: c, known: st, done: make(chan struct{})})
	return nil
}

// killShim kills a shim that does not answer. The kernel kills the task's first process with it.
func killShim(id process.Identity) {
	if p, err := process.Open(id); err == nil {
		_ = p.Signal(syscall.SIGKILL)
		_ = p.Close()
	}
}

// read returns the record. If the record cannot be read, it builds one from the handle.
func (d *Driver) read(t *task) (shim.Record, error) {
	r, err := t.folder.Read()
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		return shim.Record{TaskID: string(t.id), Phase: shim.Starting, Shim: t.known.Shim, Task: t.known.Task, Cgroup: t.known.Cgroup}, err
	}
	return r, nil
}

// Wait returns the result when all processes of the task have ended.
func (d *Driver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	select {
	case <-t.done:
		return t.exit, nil
	case <-ctx.Done():
		return driver.ExitResult{}, context.Cause(ctx)
	}
}

// Signal sends a signal to the task's first process, unless the task has ended.
func (d *Driver) Signal(ctx context.Context, id driver.TaskID, name string) error {
	if name == "" {
		return errors.New("no signal is named")
	}
	sig, err := parseSignal(name)
	if err != nil {
		return err
	}
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if t.ended() {
		return errEnded
	}
	return t.folder.Signal(ctx, sig)
}

// Stop stops a task. An unknown signal is an error and does not stop the task.
func (d *Driver) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, name string) error {
	sig, err := parseSignal(name)
	if err != nil {
		return err
	}
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if t.ended() {
		return nil
	}
	d.mu.Lock()
	if at := time.Now().Add(grace); t.killAt.IsZero() || at.Before(t.killAt) {
		t.killAt = at
	}
	d.mu.Unlock()
	if err := t.folder.Stop(ctx, sig, grace); err != nil {
		if locked, _ := t.folder.Locked(); locked {
			d.log.Error("a shim does not answer, and its task is stopped without it", "task", string(id), "error", err)
			d.stopAlone(context.WithoutCancel(ctx), t, sig, grace)
		}
	}
	if d.awaitEnd(ctx, t, grace+killMargin) == nil {
		return nil
	}
	if ctx.Err() == nil { // the shim has answered, and does not kill
		d.kill(ctx, t)
	}
	return d.awaitEnd(ctx, t, settleFor)
}

// stopAlone stops a task whose shim does not answer. The result is lost.
func (d *Driver) stopAlone(ctx context.Context, t *task, sig syscall.Signal, grace time.Duration) {
	r, err := d.read(t)
	if err == nil && !r.Task.IsZero() {
		if p, err := process.Open(r.Task); err == nil {
			_ = p.Signal(sig)
			_ = p.Signal(syscall.SIGCONT)
			brief, cancel := context.WithTimeout(ctx, grace)
			_ = p.Wait(brief)
			cancel()
			_ = p.Close()
		}
	}
	killShim(r.Shim) // the watch of the task kills the rest
}

// awaitEnd waits until all processes of the task have ended. The error names the remaining
// processes.
func (d *Driver) awaitEnd(ctx context.Context, t *task, atMost time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		r, _ := d.read(t)
		return fmt.Errorf("task %q has not ended: %s", t.id, cmp.Or(d.machine.remaining(r), "no process is left, and its shim runs"))
	}
}

// Destroy removes a task and its folder.
func (d *Driver) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if !t.ended() {
		if !force {
			return errors.New("the task runs: destroy it with force, or stop it first")
		}
		d.kill(ctx, t)
		if err := d.awaitEnd(ctx, t, settleFor); err != nil {
			return err
		}
	}
	if t.record.OwnCgroup {
		g, err := d.machine.group(t.record.Cgroup)
		if err == nil && g != nil {
			err = g.Remove(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := t.folder.Remove(); err != nil {
		return fmt.Errorf("destroy task %q: %w", id, err)
	}
	d.forget(t)
	return nil
}

// kill requests the shim to kill the task. It kills a shim that does not answer, and then the watch of
// the task kills the processes. It sends the request again to a shim that is still starting.
func (d *Driver) kill(ctx context.Context, t *task) {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for t.folder.Kill(ctx) != nil {
		if r, _ := d.read(t); !r.Shim.IsZero() {
			killShim(r.Shim)
			return
		}
		select {
		case <-t.done:
			return
		case <-ctx.Done():
			return
		case <-again.C:
		}
	}
}

// Inspect returns the state of a task. If the first process has ended, the task still counts as
// running until the other processes have ended too.
func (d *Driver) Inspect(_ context.Context, id driver.TaskID) (driver.Status, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.Status{}, err
	}
	st := driver.Status{ID: id, State: driver.TaskRunning, Attributes: map[string]string{}}
	d.mu.Lock()
	if t.config != nil {
		st.Name = t.config.Name
	}
	killed := !t.killAt.IsZero() && time.Now().After(t.killAt)
	d.mu.Unlock()
	r, err := d.read(t)
	if t.ended() {
		r, err = t.record, nil
		st.State, st.CompletedAt, st.Exit = driver.TaskExited, r.EndedAt, &t.exit
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		st.Attributes["record"] = err.Error()
	}
	st.StartedAt = r.StartedAt
	if r.Task.PID != 0 {
		st.Attributes["pid"] = strconv.Itoa(r.Task.PID)
	}
	if r.Shim.PID != 0 {
		st.Attributes["shim_pid"] = strconv.Itoa(r.Shim.PID)
	}
	if r.Cgroup != "" {
		st.Attributes["cgroup"] = r.Cgroup
	}
	if (killed || r.Phase == shim.Ending) && !t.ended() {
		if left := d.machine.remaining(r); left != "" {
			st.Attributes[driver.WaitsFor] = left
		}
	}
	return st, nil
}

var _ interface {
	sdk.Driver
	sdk.Signaler
	sdk.Execer
	sdk.StreamExecer
	sdk.StatsSource
	sdk.EventSource
} = (*Driver)(nil)
