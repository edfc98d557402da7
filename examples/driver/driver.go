package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// handleVersion is the version of [state]. Increase it when an older driver cannot read the state.
const handleVersion = 1

// scripts is the driver.
type scripts struct {
	// shell runs the scripts. It does not change after Configure.
	shell string

	mu    sync.Mutex
	tasks map[driver.TaskID]*task // guarded by mu; the value is nil while the task starts
}

var (
	_ sdk.Driver   = (*scripts)(nil)
	_ sdk.Signaler = (*scripts)(nil)
)

func newDriver() *scripts { return &scripts{tasks: map[driver.TaskID]*task{}} }

// Info describes the driver and its schemas. The host checks configs against the schemas.
func (*scripts) Info() sdk.Info {
	return sdk.Info{
		Name:          "script",
		Version:       "1.0.0",
		HandleVersion: handleVersion,
		ConfigSchema: sdk.Object(map[string]*sdk.Spec{
			"shell": sdk.Default(sdk.Attribute("string", false), `"/bin/sh"`),
		}),
		TaskSchema: sdk.Object(map[string]*sdk.Spec{
			"script": sdk.Attribute("string", true),
			"shell":  sdk.Attribute("string", false),
		}),
	}
}

// Configure reads the config of the driver.
func (d *scripts) Configure(config []byte) error {
	var c struct {
		Shell string `codec:"shell"`
	}
	if err := sdk.Decode(config, &c); err != nil {
		return err
	}
	d.shell = c.Shell
	return nil
}

// Capabilities states what the driver supports. The host refuses jobs that request more.
func (*scripts) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		SendSignals:  true,
		FSIsolation:  driver.FSNone,
		NetworkModes: []driver.NetworkMode{driver.NetworkHost},
		NoMounts:     true,
	}
}

// Fingerprints reports the health at once. The health never changes, so it then waits for the end
// of its context.
func (*scripts) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	groups, err := cgroup.Find("/")
	switch {
	case err != nil:
		report(driver.Fingerprint{Health: driver.Unhealthy, Description: err.Error()})
	case !groups.Usable():
		report(driver.Fingerprint{Health: driver.Undetected, Description: "this user may not create control groups"})
	default:
		report(driver.Fingerprint{Health: driver.Healthy, Description: "healthy", Attributes: map[string]string{"driver.script": "1"}})
	}
	<-ctx.Done()
	return ctx.Err()
}

// Start starts a task. The state that it returns is the input of Recover.
func (d *scripts) Start(_ context.Context, c *driver.TaskConfig) ([]byte, error) {
	if c.User != "" {
		return nil, fmt.Errorf("user %q: the driver script runs tasks as its own user", c.User)
	}
	config := taskConfig{Shell: d.shell}
	if err := sdk.Decode(c.Config, &config); err != nil {
		return nil, err
	}
	if err := d.reserve(c.ID); err != nil {
		return nil, err
	}
	t, err := start(c, config)
	if err != nil {
		d.forget(c.ID)
		return nil, err
	}
	d.adopt(t)
	return json.Marshal(t.state)
}

// Recover takes a task over that another process of this driver has started.
func (d *scripts) Recover(_ context.Context, c *driver.TaskConfig, _ int32, encoded []byte) error {
	if _, err := d.find(c.ID); err == nil {
		return nil
	}
	var s state
	if err := json.Unmarshal(encoded, &s); err != nil {
		return fmt.Errorf("read the state of the task: %w", err)
	}
	if err := d.reserve(c.ID); err != nil {
		return err
	}
	t, err := takeOver(c, s)
	if err != nil {
		d.forget(c.ID)
		return err
	}
	d.adopt(t)
	return nil
}

// Wait returns when the task has ended.
func (d *scripts) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	return t.wait(ctx)
}

// Stop returns when the task has ended.
func (d *scripts) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if signal == "" {
		signal = "SIGTERM"
	}
	return t.stop(ctx, grace, signal)
}

// Signal sends a signal to the task.
func (d *scripts) Signal(_ context.Context, id driver.TaskID, signal string) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	return t.signal(signal)
}

// Destroy removes the task from the driver. With force it kills the task first.
func (d *scripts) Destroy(ctx context.Context, id driver.TaskID, force bool) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	if !force && !t.ended() {
		return errors.New("the task runs")
	}
	if err := t.remove(ctx); err != nil {
		return err
	}
	d.forget(id)
	return nil
}

// Inspect returns the state of the task, and its result at the end.
func (d *scripts) Inspect(_ context.Context, id driver.TaskID) (driver.Status, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.Status{}, err
	}
	return t.status(), nil
}

// reserve reserves an id, so that two calls with the same id do not start two processes.
func (d *scripts) reserve(id driver.TaskID) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, used := d.tasks[id]; used {
		return fmt.Errorf("the task id %q is in use", id)
	}
	d.tasks[id] = nil
	return nil
}

// adopt adds a task whose id is reserved.
func (d *scripts) adopt(t *task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks[t.id] = t
}

func (d *scripts) forget(id driver.TaskID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.tasks, id)
}

func (d *scripts) find(id driver.TaskID) (*task, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t := d.tasks[id]; t != nil {
		return t, nil
	}
	return nil, driver.ErrUnknownTask
}
