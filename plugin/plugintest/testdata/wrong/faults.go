package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// faults are the faults by their names: those that need a process or the protocol, and some whose
// findings the tests of the command read. Package drivertest has the others. The name "none" has no
// fault.
func faults() map[string]fault {
	return map[string]fault{
		"none": {},
		// The driver takes the end of the stream for its own end.
		"ends-with-stream": {
			fingerprints: func(w *wrong, ctx context.Context, report func(driver.Fingerprint)) error {
				defer w.note("stream")
				return w.Driver.Fingerprints(ctx, report)
			},
			start: func(w *wrong, ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
				time.Sleep(200 * time.Millisecond)
				if w.has("stream") {
					return nil, errors.New("the driver has ended")
				}
				return w.Driver.Start(ctx, c)
			},
		},
		"loose-schema": {info: func(info *sdk.Info) {
			info.TaskSchema.GetObject().GetAttributes()["run_for"].GetAttr().Required = false
		}},
		"claims-exec": {capabilities: func(c *driver.Capabilities) { c.Exec = true }},
		"wrong-start-time": {inspect: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			s, err := w.Driver.Inspect(ctx, id)
			s.StartedAt = s.StartedAt.Add(-time.Hour)
			return s, err
		}},
		"loses-output": {start: func(w *wrong, ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
			c.StdoutPath = "/dev/null"
			return w.Driver.Start(ctx, c)
		}},
		"keeps-failed-start": {
			start: func(w *wrong, ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
				state, err := w.Driver.Start(ctx, c)
				if err != nil {
					w.note(c.ID)
				}
				return state, err
			},
			inspect: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.Status, error) {
				s, err := w.Driver.Inspect(ctx, id)
				if err != nil && w.has(id) {
					return driver.Status{ID: id, State: driver.TaskExited}, nil
				}
				return s, err
			},
		},
		"answers-one-waiter": {wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			second := w.note(id)
			result, err := w.Driver.Wait(ctx, id)
			if err == nil && second {
				result = driver.ExitResult{Unknown: true}
			}
			return result, err
		}},
		"forgets-exits": {inspect: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			s, err := w.Driver.Inspect(ctx, id)
			s.Exit = nil
			return s, err
		}},
		"answers-wait-early": {stop: stopNoted, wait: waitUntilNoted},
		"panics": {stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if signal == "SIGHUP" {
				panic("this signal has no name")
			}
			return w.Driver.Stop(ctx, id, grace, signal)
		}},
	}
}

// stopNoted notes a running task and stops it.
func stopNoted(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if (signal == "" || unix.SignalNum(signal) != 0) && w.running(ctx, id) {
		w.note(id)
	}
	return w.Driver.Stop(ctx, id, grace, signal)
}

// waitUntilNoted answers with code 0 as soon as [stopNoted] has begun. Released drivers do that.
func waitUntilNoted(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	for w.running(ctx, id) {
		if w.has(id) {
			return driver.ExitResult{}, nil
		}
		select {
		case <-ctx.Done():
			return driver.ExitResult{}, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return w.Driver.Wait(ctx, id)
}
