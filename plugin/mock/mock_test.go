package mock_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// driverProcess is one simulated process of the driver.
type driverProcess struct {
	*mock.Driver
	died chan struct{}
}

// newDriverProcess returns a driver process. died is closed when its simulated process ends.
func newDriverProcess(t *testing.T) *driverProcess {
	t.Helper()
	p := &driverProcess{died: make(chan struct{})}
	var once sync.Once
	var err error
	p.Driver, err = mock.New(func(int) { once.Do(func() { close(p.died) }) })
	must.NoError(t, err)
	return p
}

var errGone = &driver.Error{Class: driver.Gone, Call: "Call", Err: errors.New("the driver is gone")}

// during runs a call, which ends when the driver's process dies.
func during[T any](ctx context.Context, p *driverProcess, call func(context.Context) (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		v, err := call(ctx)
		answers <- answer{v, err}
	}()
	select {
	case <-p.died:
		return none, errGone
	default:
	}
	select {
	case <-p.died:
		return none, errGone
	case a := <-answers:
		select {
		case <-p.died: // the process died in the call
			return none, errGone
		default:
			return a.value, a.err
		}
	}
}

func (p *driverProcess) Start(ctx context.Context, task *driver.TaskConfig) (driver.Handle, error) {
	return during(ctx, p, func(ctx context.Context) (driver.Handle, error) {
		if _, err := p.Driver.Start(ctx, task); err != nil {
			return nil, err
		}
		return json.Marshal(task)
	})
}

func (p *driverProcess) Recover(ctx context.Context, _ driver.TaskID, handle driver.Handle) error {
	_, err := during(ctx, p, func(ctx context.Context) (none struct{}, err error) {
		var task driver.TaskConfig
		if err := json.Unmarshal(handle, &task); err != nil {
			return none, err
		}
		return none, p.Driver.Recover(ctx, &task, 1, nil)
	})
	return err
}

func (p *driverProcess) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	return during(ctx, p, func(ctx context.Context) (driver.ExitResult, error) { return p.Driver.Wait(ctx, id) })
}

func (p *driverProcess) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	_, err := during(ctx, p, func(ctx context.Context) (none struct{}, err error) {
		return none, p.Driver.Stop(ctx, id, grace, signal)
	})
	return err
}

// Encode uses the driver's schema.
func (p *driverProcess) Encode(config []byte, lookup func(string) (string, bool)) ([]byte, error) {
	s, err := schema.New(p.Info().TaskSchema)
	if err != nil {
		return nil, err
	}
	return s.Encode(config, lookup)
}

// node is a node with the driver in this process.
type node struct {
	process *driverProcess
	dir     string
	tasks   int
}

func newNode(t *testing.T) *node {
	t.Helper()
	return &node{process: newDriverProcess(t), dir: t.TempDir()}
}

func (n *node) Task(t *testing.T) *driver.TaskConfig {
	t.Helper()
	n.tasks++
	must.NoError(t, os.MkdirAll(filepath.Join(n.dir, "web"), 0o700))
	return &driver.TaskConfig{
		ID: driver.TaskID(fmt.Sprintf("alloc/web/%d", n.tasks)), Name: "web", AllocDir: n.dir,
		StdoutPath: filepath.Join(n.dir, fmt.Sprintf("stdout.%d", n.tasks)),
	}
}

// start starts a task with a config.
func start(t *testing.T, n *node, keys string) (*driver.TaskConfig, driver.Handle, error) {
	t.Helper()
	task := n.Task(t)
	var err error
	task.Config, err = n.process.Encode([]byte(keys), nil)
	must.NoError(t, err)
	handle, err := n.process.Start(t.Context(), task)
	return task, handle, err
}

// At each call the driver's process crashes once, after the call took effect. The next process
// recovers the task, and the repeated call succeeds.
func TestDriver_crashAt(t *testing.T) {
	t.Parallel()
	calls := map[string]func(*node, context.Context, driver.TaskID) error{
		"WaitTask": func(n *node, ctx context.Context, id driver.TaskID) error {
			_, err := n.process.Wait(ctx, id)
			return err
		},
		"StopTask": func(n *node, ctx context.Context, id driver.TaskID) error {
			return n.process.Stop(ctx, id, time.Second, "")
		},
		"SignalTask": func(n *node, ctx context.Context, id driver.TaskID) error {
			_, err := during(ctx, n.process, func(ctx context.Context) (any, error) { return nil, n.process.Signal(ctx, id, "SIGHUP") })
			return err
		},
		"DestroyTask": func(n *node, ctx context.Context, id driver.TaskID) error {
			_, err := during(ctx, n.process, func(ctx context.Context) (any, error) { return nil, n.process.Destroy(ctx, id, true) })
			return err
		},
		"InspectTask": func(n *node, ctx context.Context, id driver.TaskID) error {
			_, err := during(ctx, n.process, func(ctx context.Context) (any, error) { _, err := n.process.Inspect(ctx, id); return nil, err })
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t)
				task, handle, err := start(t, n, fmt.Sprintf(`{"run_for": "1h", "exit_code": 3, "crash_at": %q}`, name))
				must.NoError(t, err)
				must.EqOp(t, driver.Gone, driver.ClassOf(call(n, t.Context(), task.ID)))
				n.process = newDriverProcess(t)
				if err := n.process.Recover(t.Context(), task.ID, handle); name == "DestroyTask" && err != nil {
					return
				}
				must.NoError(t, call(n, t.Context(), task.ID))
			})
		})
	}
}

// The process crashes in StartTask after the task has started. The host has no handle, and the id
// cannot be used again.
func TestDriver_crashAtStart(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task, _, err := start(t, n, `{"crash_at": "StartTask"}`)
	must.EqOp(t, driver.Gone, driver.ClassOf(err))
	n.process = newDriverProcess(t)
	_, err = n.process.Start(t.Context(), task)
	must.ErrorContains(t, err, "in use")
}

// A call that hangs ends with its context and has no effect.
func TestDriver_hangAt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		task, _, err := start(t, n, `{"hang_at": "StopTask"}`)
		must.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		must.ErrorIs(t, n.process.Stop(ctx, task.ID, time.Second, ""), context.DeadlineExceeded)
		status, err := n.process.Inspect(t.Context(), task.ID)
		must.NoError(t, err)
		must.EqOp(t, driver.TaskRunning, status.State)
	})
}

// A stop continues after the crash of its process: the task ends at the end of its grace.
func TestDriver_stopOutlivesTheDriver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		task, handle, err := start(t, n, `{"stop_ignore": true, "crash_at": "StopTask"}`)
		must.NoError(t, err)
		began := time.Now()
		must.EqOp(t, driver.Gone, driver.ClassOf(n.process.Stop(t.Context(), task.ID, 4*time.Second, "SIGINT")))
		time.Sleep(time.Second)
		n.process = newDriverProcess(t)
		must.NoError(t, n.process.Recover(t.Context(), task.ID, handle))
		exit, err := n.process.Wait(t.Context(), task.ID)
		must.NoError(t, err)
		must.EqOp(t, driver.ExitResult{Code: 137, Signal: 9}, exit)
		must.EqOp(t, 4*time.Second, time.Since(began))
	})
}

// A slow start takes effect also after the host has stopped waiting.
func TestDriver_lateStart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t)
		task := n.Task(t)
		var err error
		task.Config, err = n.process.Encode([]byte(`{"start_block_for": "1m"}`), nil)
		must.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = n.process.Start(ctx, task)
		time.Sleep(2 * time.Minute)
		status, err := n.process.Inspect(t.Context(), task.ID)
		must.NoError(t, err)
		must.EqOp(t, driver.TaskRunning, status.State)
	})
}

// Valid and invalid task configs.
func TestDriver_configs(t *testing.T) {
	t.Parallel()
	for keys, expected := range map[string]string{
		`{"run_for": "ten"}`:             `run_for: "ten" is no duration`,
		`{"kill_after": "-1s"}`:          `kill_after: "-1s" is no duration`,
		`{"hang_at": "Stop"}`:            `hang_at: "Stop" is none of the calls`,
		`{"crash_at": "all"}`:            `crash_at: "all" is none of the calls`,
		`{"signal_codes": {"SIGNO": 1}}`: `unknown signal "SIGNO"`,
		`{"start_error": "no disk"}`:     `no disk`,
	} {
		_, _, err := start(t, newNode(t), keys)
		must.ErrorContains(t, err, expected)
		must.NotEqOp(t, driver.Recoverable, driver.ClassOf(err))
	}
	_, _, err := start(t, newNode(t), `{"start_error": "no disk", "start_error_recoverable": true}`)
	must.EqOp(t, driver.Recoverable, driver.ClassOf(err))
	n := newNode(t)
	task, _, err := start(t, n, `{}`)
	must.NoError(t, err)
	must.ErrorContains(t, n.process.Stop(t.Context(), task.ID, 0, "SIGNO"), "unknown signal")
	must.ErrorContains(t, n.process.Signal(t.Context(), task.ID, "SIGNO"), "unknown signal")
}

// The driver does not recover a task if its record is missing, from an earlier boot, damaged, or
// from another task.
func TestDriver_refusesRecords(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct {
		to       func(record map[string]any) []byte
		expected string
	}{
		"damaged":      {func(map[string]any) []byte { return []byte("{") }, "JSON"},
		"earlier boot": {func(r map[string]any) []byte { r["boot"] = "another"; return encode(t, r) }, "booted"},
		"another task": {func(r map[string]any) []byte { r["id"] = "another"; return encode(t, r) }, "another"},
	} {
		n := newNode(t)
		task, handle, err := start(t, n, `{}`)
		must.NoError(t, err, must.Sprint(name))
		files, err := filepath.Glob(filepath.Join(n.dir, "web", ".mock-*.json"))
		must.NoError(t, err)
		must.SliceLen(t, 1, files)
		text, err := os.ReadFile(files[0])
		must.NoError(t, err)
		record := map[string]any{}
		must.NoError(t, json.Unmarshal(text, &record))
		must.NoError(t, os.WriteFile(files[0], change.to(record), 0o600))
		n.process = newDriverProcess(t)
		must.ErrorContains(t, n.process.Recover(t.Context(), task.ID, handle), change.expected)
		must.NoError(t, os.Remove(files[0]))
		must.ErrorIs(t, n.process.Recover(t.Context(), task.ID, handle), os.ErrNotExist)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must.NoError(t, err)
	return text
}

// Destroy leaves no file.
func TestDriver_destroyLeavesNothing(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	task, _, err := start(t, n, `{}`)
	must.NoError(t, err)
	must.NoError(t, n.process.Destroy(t.Context(), task.ID, true))
	left, err := os.ReadDir(filepath.Join(n.dir, "web"))
	must.NoError(t, err)
	must.SliceEmpty(t, left)
	must.ErrorIs(t, n.process.Stop(t.Context(), task.ID, 0, ""), driver.ErrUnknownTask)
}

// The plugin's config makes the driver unhealthy and makes it report often.
func TestDriver_fingerprints(t *testing.T) {
	t.Parallel()
	p := newDriverProcess(t)
	text, err := sdk.Encode(map[string]any{"unhealthy": "no coffee", "fingerprints": 1000})
	must.NoError(t, err)
	must.NoError(t, p.Configure(text))
	ctx, cancel := context.WithCancel(t.Context())
	reported := 0
	must.ErrorIs(t, p.Fingerprints(ctx, func(f driver.Fingerprint) {
		must.EqOp(t, driver.Unhealthy, f.Health)
		if reported++; reported == 1 {
			must.EqOp(t, "no coffee", f.Description)
		}
		if reported == 1000 {
			cancel()
		}
	}), context.Canceled)
	must.EqOp(t, 1000, reported)
}
