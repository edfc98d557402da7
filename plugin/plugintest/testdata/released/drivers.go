package main

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/schema"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// containers is a driver that runs containers. A container is a task of raw_exec, whose shim survives
// the driver.
type containers struct {
	*rawexec.Driver
	info         sdk.Info
	capabilities driver.Capabilities
	// machine is the folder of the containers.
	machine string
	// waitsEarly: WaitTask answers with code 0 as soon as a container is stopping.
	waitsEarly bool
	// needsFingerprint: StartTask panics before a fingerprint was reported.
	needsFingerprint bool
	// forgetful: RecoverTask always fails, and tasks of an earlier process run on.
	forgetful bool

	fingerprinted atomic.Bool
	mu            sync.Mutex
	// stopping has the tasks that this process has, and a channel that is closed when a stop begins;
	// guarded by mu.
	stopping map[driver.TaskID]chan struct{}
}

func newContainers(dir string, info sdk.Info) *containers {
	return &containers{
		Driver: rawexec.New(rawexec.Options{}), info: info, machine: dir, capabilities: driver.Capabilities{SendSignals: true},
		stopping: map[driver.TaskID]chan struct{}{},
	}
}

// podman has a default of volumes that omits an attribute. The labels of a task are a list of maps.
func podman(dir string) *containers {
	flag := func() *sdk.Spec { return sdk.Default(sdk.Attribute("bool", false), "true") }
	text := func() *sdk.Spec { return sdk.Attribute("string", false) }
	d := newContainers(dir, sdk.Info{
		Name: "podman", Version: "0.5.2", HandleVersion: 1,
		ConfigSchema: sdk.Object(map[string]*sdk.Spec{
			"socket_path": text(),
			"gc":          sdk.Default(sdk.Block(sdk.Object(map[string]*sdk.Spec{"container": flag()}), false), "{ container = true }"),
			"volumes":     sdk.Default(sdk.Block(sdk.Object(map[string]*sdk.Spec{"enabled": flag(), "selinuxlabel": text()}), false), "{ enabled = true }"),
		}),
		TaskSchema: sdk.Object(map[string]*sdk.Spec{
			"image": sdk.Attribute("string", true), "command": text(), "args": sdk.Attribute("list(string)", false),
			"labels": sdk.Attribute("list(map(string))", false), "volumes": sdk.Attribute("list(string)", false), "tty": sdk.Attribute("bool", false),
		}),
	})
	d.waitsEarly, d.needsFingerprint, d.capabilities.FSIsolation = true, true, driver.FSImage
	return d
}

func lxc(dir string) *containers {
	d := newContainers(dir, sdk.Info{Name: "lxc", Version: "0.3.0", HandleVersion: 1, TaskSchema: commandTask()})
	d.capabilities.FSIsolation = driver.FSImage
	return d
}

func skeleton(dir string) *containers {
	d := newContainers(dir, sdk.Info{
		Name: "skeleton", Version: "0.1.0", HandleVersion: 1, TaskSchema: commandTask(),
		ConfigSchema: sdk.Object(map[string]*sdk.Spec{"shell": sdk.Default(sdk.Attribute("string", false), `"bash"`)}),
	})
	d.forgetful = true
	return d
}

func commandTask() *sdk.Spec {
	return sdk.Object(map[string]*sdk.Spec{"command": sdk.Attribute("string", true), "args": sdk.Attribute("list(string)", false)})
}

func (d *containers) Info() sdk.Info { return d.info }

func (d *containers) Capabilities() driver.Capabilities { return d.capabilities }

// Configure accepts every config: a client checks it against the schema.
func (d *containers) Configure([]byte) error {
	config, err := sdk.Encode(map[string]any{"enabled": true, "shim_dir": filepath.Join(d.machine, "containers")})
	if err != nil {
		return err
	}
	return d.Driver.Configure(config)
}

func (d *containers) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	report(driver.Fingerprint{Health: driver.Healthy, Description: "Healthy", Attributes: map[string]string{"driver." + d.info.Name: "1"}})
	d.fingerprinted.Store(true)
	<-ctx.Done()
	return ctx.Err()
}

// has returns an error unless this process has the task, and the channel of its stop.
func (d *containers) has(id driver.TaskID) (chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if stopping, is := d.stopping[id]; is {
		return stopping, nil
	}
	return nil, driver.ErrUnknownTask
}

func (d *containers) add(id driver.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopping[id] = make(chan struct{})
}

// Start starts a container. It does not use the config that a container engine reads.
func (d *containers) Start(ctx context.Context, task *driver.TaskConfig) ([]byte, error) {
	if d.needsFingerprint && !d.fingerprinted.Load() {
		panic("runtime error: invalid memory address or nil pointer dereference")
	}
	var config struct {
		Command string   `codec:"command"`
		Args    []string `codec:"args"`
	}
	err := schema.Decode(task.Config, &config)
	if err != nil {
		return nil, err
	}
	container := *task
	container.Mounts, container.Network, container.Resources.Cgroup = nil, nil, ""
	if container.Config, err = sdk.Encode(map[string]any{"command": config.Command, "args": config.Args}); err != nil {
		return nil, err
	}
	state, err := d.Driver.Start(ctx, &container)
	if err == nil {
		d.add(task.ID)
	}
	return state, err
}

func (d *containers) Recover(ctx context.Context, task *driver.TaskConfig, version int32, state []byte) error {
	if _, err := d.has(task.ID); err == nil {
		return nil
	}
	if d.forgetful {
		return errors.New("failed to decode driver config: EOF")
	}
	err := d.Driver.Recover(ctx, task, version, state)
	if err == nil {
		d.add(task.ID)
	}
	return err
}

func (d *containers) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	stopping, err := d.has(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	if !d.waitsEarly {
		return d.Driver.Wait(ctx, id)
	}
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-stopping:
			cancel()
		case <-waiting.Done():
		}
	}()
	exit, err := d.Driver.Wait(waiting, id)
	if err == nil || ctx.Err() != nil {
		return exit, err
	}
	if status, err := d.Driver.Inspect(ctx, id); err == nil && status.Exit != nil {
		return *status.Exit, nil
	}
	return driver.ExitResult{}, nil
}

func (d *containers) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	stopping, err := d.has(id)
	if err != nil {
		return err
	}
	d.mu.Lock()
	select {
	case <-stopping:
	default:
		close(stopping)
	}
	d.mu.Unlock()
	return d.Driver.Stop(ctx, id, grace, signal)
}

func (d *containers) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	_, err := d.has(id)
	if err == nil {
		err = d.Driver.Destroy(ctx, id, force)
	}
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.stopping, id)
	}
	return err
}

// Inspect reports that a running task has ended in the year 1.
func (d *containers) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	if _, err := d.has(id); err != nil {
		return driver.Status{}, err
	}
	status, err := d.Driver.Inspect(ctx, id)
	if status.State == driver.TaskRunning {
		status.CompletedAt = time.Time{}.Add(time.Nanosecond)
	}
	return status, err
}

// Events does not notice that the client has closed the stream.
func (*containers) Events(context.Context, func(driver.Event)) error { select {} }

func (d *containers) Signal(ctx context.Context, id driver.TaskID, signal string) error {
	_, err := d.has(id)
	switch {
	case err != nil:
		return err
	case d.forgetful:
		return errors.New("This driver does not support signals")
	}
	return d.Driver.Signal(ctx, id, signal)
}
