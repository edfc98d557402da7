package main

import (
	"context"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// fault replaces calls of the driver. The functions that are nil replace nothing.
type fault struct {
	info         func(*sdk.Info)
	capabilities func(*driver.Capabilities)
	fingerprints func(*wrong, context.Context, func(driver.Fingerprint)) error
	start        func(*wrong, context.Context, *driver.TaskConfig) ([]byte, error)
	wait         func(*wrong, context.Context, driver.TaskID) (driver.ExitResult, error)
	stop         func(*wrong, context.Context, driver.TaskID, time.Duration, string) error
	inspect      func(*wrong, context.Context, driver.TaskID) (driver.Status, error)
}

// wrong is a driver with a fault.
type wrong struct {
	*mock.Driver
	fault fault

	mu    sync.Mutex
	noted map[driver.TaskID]bool // guarded by mu
}

var _ sdk.Driver = (*wrong)(nil)

func newWrong(d *mock.Driver, f fault) *wrong {
	return &wrong{Driver: d, fault: f, noted: map[driver.TaskID]bool{}}
}

// note remembers a task and reports whether it was remembered already.
func (w *wrong) note(id driver.TaskID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.noted[id]
	w.noted[id] = true
	return was
}

// has reports whether a task is remembered.
func (w *wrong) has(id driver.TaskID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.noted[id]
}

// running reports whether a task runs.
func (w *wrong) running(ctx context.Context, id driver.TaskID) bool {
	s, err := w.Driver.Inspect(ctx, id)
	return err == nil && s.State == driver.TaskRunning
}

// Info is that of the mock driver, with a required key.
func (w *wrong) Info() sdk.Info {
	info := w.Driver.Info()
	info.TaskSchema.GetObject().GetAttributes()["run_for"].GetAttr().Required = true
	if w.fault.info != nil {
		w.fault.info(&info)
	}
	return info
}

func (w *wrong) Capabilities() driver.Capabilities {
	c := w.Driver.Capabilities()
	if w.fault.capabilities != nil {
		w.fault.capabilities(&c)
	}
	return c
}

func (w *wrong) Fingerprints(ctx context.Context, report func(driver.Fingerprint)) error {
	if w.fault.fingerprints != nil {
		return w.fault.fingerprints(w, ctx, report)
	}
	return w.Driver.Fingerprints(ctx, report)
}

func (w *wrong) Start(ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
	if w.fault.start != nil {
		return w.fault.start(w, ctx, c)
	}
	return w.Driver.Start(ctx, c)
}

func (w *wrong) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	if w.fault.wait != nil {
		return w.fault.wait(w, ctx, id)
	}
	return w.Driver.Wait(ctx, id)
}

func (w *wrong) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if w.fault.stop != nil {
		return w.fault.stop(w, ctx, id, grace, signal)
	}
	return w.Driver.Stop(ctx, id, grace, signal)
}

func (w *wrong) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	if w.fault.inspect != nil {
		return w.fault.inspect(w, ctx, id)
	}
	return w.Driver.Inspect(ctx, id)
}
