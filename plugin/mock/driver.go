package mock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/hclspec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// Name is the name of the driver in a job.
const Name = "mock"

// version is the version of the driver.
const version = "0.1.0"

// Driver is the driver in one process. Use [New].
type Driver struct {
	boot string
	// exit ends the driver's process.
	exit func(code int)

	// unhealthy and fingerprints are the plugin's config. They do not change after Configure.
	unhealthy    string
	fingerprints int

	mu    sync.Mutex
	tasks map[driver.TaskID]*task // guarded by mu; the value is nil while the task starts
}

var (
	_ sdk.Driver   = (*Driver)(nil)
	_ sdk.Signaler = (*Driver)(nil)
)

// New returns a driver without tasks. exit ends the process of the driver: os.Exit.
func New(exit func(code int)) (*Driver, error) {
	boot, err := process.BootID()
	if err != nil {
		return nil, err
	}
	return &Driver{boot: boot, exit: exit, fingerprints: 1, tasks: map[driver.TaskID]*task{}}, nil
}

// Info implements [sdk.Driver].
func (*Driver) Info() sdk.Info {
	return sdk.Info{
		Name: Name, Version: version, TaskSchema: taskSchema(), HandleVersion: 1,
		ConfigSchema: sdk.Object(map[string]*hclspec.Spec{
			"unhealthy":    sdk.Attribute("string", false),
			"fingerprints": sdk.Default(sdk.Attribute("number", false), "1"),
		}),
	}
}

// Configure implements [sdk.Driver].
func (d *Driver) Configure(config []byte) error {
	c := struct {
		Unhealthy    string `codec:"unhealthy"`
		Fingerprints int    `codec:"fingerprints"`
	}{Fingerprints: 1}
	if err := sdk.Decode(config, &c); err != nil {
		return err
	}
	d.unhealthy, d.fingerprints = c.Unhealthy, max(c.Fingerprints, 1)
	return nil
}

// Capabilities implements [sdk.Driver].
func (*Driver) Capabilities() driver.Capabilities {
	return driver.Capabilities{SendSignals: true, NetworkModes: []driver.NetworkMode{driver.NetworkHost}}
}

// Fingerprints implements [sdk.Driver].
func (d *Driver) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	f := driver.Fingerprint{Health: driver.Healthy, Description: "Healthy"}
	if d.unhealthy != "" {
		f.Health, f.Description = driver.Unhealthy, d.unhealthy
	}
	for n := range d.fingerprints {
		if ctx.Err() != nil {
			break
		}
		f.Attributes = map[string]string{"driver.mock.version": version}
		if n > 0 {
			f.Description = fmt.Sprintf("report %d", n+1)
		}
		report(f)
	}
	<-ctx.Done()
	return ctx.Err()
}

// Start implements [sdk.Driver].
func (d *Driver) Start(ctx context.Context, cfg *driver.TaskConfig) ([]byte, error) {
	b, err := parse(cfg.Config)
	if err != nil {
		return nil, err
	}
	if err := d.hang(ctx, &b, callStart); err != nil {
		return nil, err
	}
	if err := d.reserve(cfg.ID); err != nil {
		return nil, err
	}
	t, err := d.start(cfg, b)
	d.mu.Lock()
	if err == nil {
		d.tasks[cfg.ID] = t
	} else {
		delete(d.tasks, cfg.ID)
	}
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return []byte(d.boot), d.crash(t, callStart)
}

// reserve reserves an id for a start.
func (d *Driver) reserve(id driver.TaskID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, used := d.tasks[id]; used {
		return fmt.Errorf("the task id %q is in use", id)
	}
	d.tasks[id] = nil
	return nil
}

// start starts a task.
func (d *Driver) start(cfg *driver.TaskConfig, b behaviour) (*task, error) {
	time.Sleep(b.startBlockFor)
	if b.startError != nil {
		return nil, b.startError
	}
	f := fileOf(cfg)
	switch used, err := f.exists(); {
	case err != nil:
		return nil, err
	case used:
		return nil, fmt.Errorf("the task id %q is in use", cfg.ID)
	}
	if err := write(cfg.StdoutPath, b.stdout); err != nil {
		return nil, err
	}
	r := record{ID: cfg.ID, Name: cfg.Name, Boot: d.boot, Behaviour: b, StartedAt: time.Now()}
	if b.RunFor != nil {
		r = r.plan(r.StartedAt.Add(*b.RunFor), b.Exit)
	}
	return newTask(f, r), f.write(r)
}

// writeTimeout is the timeout of a write to a FIFO whose reader does not read.
const writeTimeout = 5 * time.Second

// write appends a text to a file, or writes it to a FIFO that has a reader.
func write(path, text string) error {
	if text == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return fmt.Errorf("open the standard output: %w", err)
	}
	defer f.Close()
	// A plain file has no deadline and needs none.
	if err := f.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return fmt.Errorf("write the standard output: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		return fmt.Errorf("write the standard output: %w", err)
	}
	return nil
}

// Recover implements [sdk.Driver].
func (d *Driver) Recover(ctx context.Context, cfg *driver.TaskConfig, _ int32, _ []byte) error {
	if _, err := d.find(cfg.ID); err == nil {
		return nil
	}
	f := fileOf(cfg)
	r, err := f.read(cfg.ID, d.boot)
	if err != nil {
		return err
	}
	if err := d.hang(ctx, &r.Behaviour, callRecover); err != nil {
		return err
	}
	t := d.adopt(newTask(f, r))
	return d.crash(t, callRecover)
}

// adopt adds a task that was recovered, unless another call has done so.
func (d *Driver) adopt(t *task) *task {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.tasks[t.record.ID]; known != nil {
		return known
	}
	d.tasks[t.record.ID] = t
	return t
}

// find returns a task that the driver has.
func (d *Driver) find(id driver.TaskID) (*task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[id]; t != nil {
		return t, nil
	}
	return nil, driver.ErrUnknownTask
}

// begin returns the task of a call. It hangs if the task's config states it.
func (d *Driver) begin(ctx context.Context, id driver.TaskID, call string) (*task, error) {
	t, err := d.find(id)
	if err != nil {
		return nil, err
	}
	r, _ := t.now()
	return t, d.hang(ctx, &r.Behaviour, call)
}

// hang blocks until the context ends, if the config states it.
func (*Driver) hang(ctx context.Context, b *behaviour, call string) error {
	if b.HangAt != call {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

// crash ends the driver's process if the config states it, once for each task.
func (d *Driver) crash(t *task, call string) error {
	if r, _ := t.now(); r.Behaviour.CrashAt != call || r.Crashed {
		return nil
	}
	err := t.change(func(r record) record {
		r.Crashed = true
		return r
	})
	if err != nil {
		return err
	}
	d.exit(2)
	return nil
}

// Wait implements [sdk.Driver].
func (d *Driver) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.begin(ctx, id, callWait)
	if err != nil {
		return driver.ExitResult{}, err
	}
	if err := d.crash(t, callWait); err != nil {
		return driver.ExitResult{}, err
	}
	return t.wait(ctx)
}

// Stop implements [sdk.Driver].
func (d *Driver) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	number, err := parseSignal(signal)
	if err != nil {
		return err
	}
	t, err := d.begin(ctx, id, callStop)
	if err != nil {
		return err
	}
	if err := t.change(func(r record) record { return r.stop(number, grace) }); err != nil {
		return err
	}
	if err := d.crash(t, callStop); err != nil {
		return err
	}
	_, err = t.wait(ctx)
	return err
}

// Signal implements [sdk.Signaler].
func (d *Driver) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	number, err := parseSignal(signal)
	if err != nil {
		return err
	}
	t, err := d.begin(ctx, id, callSignal)
	if err != nil {
		return err
	}
	if err := t.change(func(r record) record { return r.signal(number) }); err != nil {
		return err
	}
	return d.crash(t, callSignal)
}

// Destroy implements [sdk.Driver].
func (d *Driver) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	t, err := d.begin(ctx, id, callDestroy)
	if err != nil {
		return err
	}
	if r, _ := t.now(); !r.ended(time.Now()) {
		if !force {
			return errors.New("the task runs")
		}
		if err := t.change(func(r record) record { return r.signal(unix.SIGKILL) }); err != nil {
			return err
		}
	}
	if err := d.crash(t, callDestroy); err != nil {
		return err
	}
	if err := t.remove(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, id)
	return nil
}

// Inspect implements [sdk.Driver].
func (d *Driver) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	t, err := d.begin(ctx, id, callInspect)
	if err != nil {
		return driver.Status{}, err
	}
	return t.status(), d.crash(t, callInspect)
}
