package main

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// faults are the faults by their names. The name "none" has no fault.
func faults() map[string]fault {
	all := map[string]fault{"none": {}}
	for _, some := range []map[string]fault{faultsOfHealth(), faultsOfStarts(), faultsOfWaits(), faultsOfStops()} {
		for name, f := range some {
			all[name] = f
		}
	}
	return all
}

func faultsOfHealth() map[string]fault {
	return map[string]fault{
		"late-health": {fingerprints: func(w *wrong, ctx context.Context, report func(driver.Fingerprint)) error {
			time.Sleep(2 * time.Second)
			return w.Driver.Fingerprints(ctx, report)
		}},
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
		"never-measures": {stats: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}},
		"ignores-unknown-signals": {stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if signal != "" && unix.SignalNum(signal) == 0 {
				return nil
			}
			return w.Driver.Stop(ctx, id, grace, signal)
		}},
		"claims-exec": {capabilities: func(c *driver.Capabilities) { c.Exec = true }},
	}
}

func faultsOfStarts() map[string]fault {
	return map[string]fault{
		"wrong-start-time": {inspect: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			s, err := w.Driver.Inspect(ctx, id)
			s.StartedAt = s.StartedAt.Add(-time.Hour)
			return s, err
		}},
		"loses-output": {start: func(w *wrong, ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
			c.StdoutPath = "/dev/null"
			return w.Driver.Start(ctx, c)
		}},
		"starts-twice": {start: func(w *wrong, ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
			if w.note(c.ID) {
				return []byte("again"), nil
			}
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
		"kills-what-it-recovers": {recover: func(w *wrong, ctx context.Context, c *driver.TaskConfig, state []byte) error {
			if w.running(ctx, c.ID) {
				return w.Driver.Stop(ctx, c.ID, 0, "SIGTERM")
			}
			return w.Driver.Recover(ctx, c, 1, state)
		}},
		"recovers-nothing": {recover: func(w *wrong, ctx context.Context, c *driver.TaskConfig, _ []byte) error {
			if w.running(ctx, c.ID) {
				return nil
			}
			return errors.New("this driver recovers no tasks")
		}},
	}
}

func faultsOfWaits() map[string]fault {
	return map[string]fault{
		"makes-results-up": {
			recover: func(w *wrong, ctx context.Context, c *driver.TaskConfig, state []byte) error {
				w.note(c.ID)
				return w.Driver.Recover(ctx, c, 1, state)
			},
			wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
				result, err := w.Driver.Wait(ctx, id)
				if w.has(id) {
					result = driver.ExitResult{}
				}
				return result, err
			},
		},
		"tells-one-waiter": {wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			second := w.note(id)
			result, err := w.Driver.Wait(ctx, id)
			if err == nil && second {
				result = driver.ExitResult{Unknown: true}
			}
			return result, err
		}},
		"signal-as-code": {wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			result, err := w.Driver.Wait(ctx, id)
			if result.Signal != 0 {
				result.Code = result.Signal
			}
			return result, err
		}},
		"answers-wait-once": {wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			if w.has(id) {
				return driver.ExitResult{}, driver.ErrUnknownTask
			}
			result, err := w.Driver.Wait(ctx, id)
			if err == nil {
				w.note(id)
			}
			return result, err
		}},
		"forgets-exits": {inspect: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.Status, error) {
			s, err := w.Driver.Inspect(ctx, id)
			s.Exit = nil
			return s, err
		}},
	}
}

// earlyWait is a fault of released drivers: WaitTask answers with code 0 as soon as StopTask has
// begun. If kept is true, it has this result also after the end of the task.
func earlyWait(kept bool) fault {
	return fault{
		stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if (signal == "" || unix.SignalNum(signal) != 0) && w.running(ctx, id) {
				w.note(id)
			}
			return w.Driver.Stop(ctx, id, grace, signal)
		},
		wait: func(w *wrong, ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
			for w.running(ctx, id) && !w.has(id) {
				select {
				case <-ctx.Done():
					return driver.ExitResult{}, ctx.Err()
				case <-time.After(5 * time.Millisecond):
				}
			}
			if w.has(id) && (kept || w.running(ctx, id)) {
				return driver.ExitResult{}, nil
			}
			return w.Driver.Wait(ctx, id)
		},
	}
}

func faultsOfStops() map[string]fault {
	stop := func(change func(time.Duration, string) (time.Duration, string)) fault {
		return fault{stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			grace, signal = change(grace, signal)
			return w.Driver.Stop(ctx, id, grace, signal)
		}}
	}
	return map[string]fault{
		"kills-early":        stop(func(grace time.Duration, signal string) (time.Duration, string) { return grace / 2, signal }),
		"kills-late":         stop(func(grace time.Duration, signal string) (time.Duration, string) { return grace + 2*time.Second, signal }),
		"own-signal":         stop(func(grace time.Duration, _ string) (time.Duration, string) { return grace, "SIGTERM" }),
		"answers-wait-early": earlyWait(false),
		"keeps-early-answer": earlyWait(true),
		"waits-for-the-grace": {stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			err := w.Driver.Stop(ctx, id, grace, signal)
			time.Sleep(grace)
			return err
		}},
		"panics": {stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if signal == "SIGHUP" {
				panic("this signal has no name")
			}
			return w.Driver.Stop(ctx, id, grace, signal)
		}},
		"fails-to-stop-the-dead": {stop: func(w *wrong, ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
			if !w.running(ctx, id) {
				return errors.New("the task does not run")
			}
			return w.Driver.Stop(ctx, id, grace, signal)
		}},
		"destroys-the-living": {destroy: func(w *wrong, ctx context.Context, id driver.TaskID, _ bool) error {
			return w.Driver.Destroy(ctx, id, true)
		}},
		"ignores-force": {destroy: func(w *wrong, ctx context.Context, id driver.TaskID, _ bool) error {
			return w.Driver.Destroy(ctx, id, false)
		}},
		"remembers-the-destroyed": {destroy: func(w *wrong, ctx context.Context, id driver.TaskID, force bool) error {
			if s, err := w.Driver.Inspect(ctx, id); err == nil && s.State == driver.TaskExited {
				return nil
			}
			return w.Driver.Destroy(ctx, id, force)
		}},
	}
}
