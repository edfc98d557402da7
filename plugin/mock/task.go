package mock

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// task is a task that this process of the driver has.
type task struct {
	file file
	// changing is held while the record changes on disk. It must be locked before mu.
	changing sync.Mutex
	removed  bool // guarded by changing

	mu      sync.Mutex
	record  record        // guarded by mu
	changed chan struct{} // guarded by mu; closed when the record changes
}

func newTask(f file, r record) *task {
	return &task{file: f, record: r, changed: make(chan struct{})}
}

// now returns the record, and a channel that is closed when the record changes.
func (t *task) now() (record, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record, t.changed
}

// change writes a changed record to disk, and then stores it.
func (t *task) change(change func(record) record) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	if t.removed {
		return driver.ErrUnknownTask
	}
	before, _ := t.now()
	next := change(before)
	if err := t.file.write(next); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.record = next
	close(t.changed)
	t.changed = make(chan struct{})
	return nil
}

// remove removes the record.
func (t *task) remove() error {
	t.changing.Lock()
	defer t.changing.Unlock()
	err := t.file.remove()
	t.removed = err == nil
	return err
}

// signal returns the record of a task that gets a signal now.
func (r record) signal(number unix.Signal) record {
	now, b := time.Now(), r.Behaviour
	code, chosen := b.SignalCodes[unix.SignalName(number)]
	switch {
	case r.ended(now):
		return r
	case number == unix.SIGKILL:
		return r.plan(now, driver.ExitResult{Code: 128 + int(number), Signal: int(number)})
	case chosen:
		return r.plan(now.Add(b.KillAfter), driver.ExitResult{Code: code})
	case b.StopIgnore || len(b.SignalCodes) > 0:
		return r
	}
	return r.plan(now.Add(b.KillAfter), driver.ExitResult{Code: 128 + int(number), Signal: int(number)})
}

// stop returns the record of a task that gets a signal now, and SIGKILL after the grace.
func (r record) stop(number unix.Signal, grace time.Duration) record {
	if r.ended(time.Now()) {
		return r
	}
	killed := driver.ExitResult{Code: 128 + int(unix.SIGKILL), Signal: int(unix.SIGKILL)}
	return r.signal(number).plan(time.Now().Add(grace), killed)
}

// wait returns the result of the task when it has ended.
func (t *task) wait(ctx context.Context) (driver.ExitResult, error) {
	for {
		r, changed := t.now()
		var over <-chan time.Time
		if r.End != nil {
			left := time.Until(r.End.At)
			if left <= 0 {
				return r.End.Exit, nil
			}
			over = time.After(left)
		}
		select {
		case <-over:
		case <-changed:
		case <-ctx.Done():
			return driver.ExitResult{}, ctx.Err()
		}
	}
}

// status is the answer of InspectTask.
func (t *task) status() driver.Status {
	r, _ := t.now()
	s := driver.Status{ID: r.ID, Name: r.Name, State: driver.TaskRunning, StartedAt: r.StartedAt}
	if r.ended(time.Now()) {
		exit := r.End.Exit
		s.State, s.CompletedAt, s.Exit = driver.TaskExited, r.End.At, &exit
	}
	return s
}
