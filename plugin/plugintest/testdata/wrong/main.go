// Command wrong is a driver with one fault, which its argument names: "wrong FAULT". It is the mock
// driver otherwise, or the raw_exec driver. The tests of "nodedrain plugin test" run it. Faults that
// need no process are those of packages drivertest and devicetest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "usage: wrong FAULT:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return errors.New("one argument is required")
	}
	switch fault := args[0]; fault {
	case "none", "answers-one-waiter", "forgets-exits", "panics":
		d, err := mock.New(os.Exit)
		if err != nil {
			return err
		}
		sdk.Serve(&wrongTasks{Driver: d, fault: fault, waited: map[driver.TaskID]bool{}})
	case "ignores-users", "accepts-existing-users", "gives-its-environment":
		sdk.Serve(wrongProcesses{rawexec.New(rawexec.Options{}), fault})
	default:
		return errors.New("unknown fault")
	}
	return nil
}

// wrongTasks is the mock driver with a required key and a fault.
type wrongTasks struct {
	*mock.Driver
	fault string

	mu     sync.Mutex
	waited map[driver.TaskID]bool // guarded by mu
}

// Info is that of the mock driver, with a required key.
func (w *wrongTasks) Info() sdk.Info {
	info := w.Driver.Info()
	info.TaskSchema.GetObject().GetAttributes()["run_for"].GetAttr().Required = true
	return info
}

// Wait returns the result of a task to the first caller only.
func (w *wrongTasks) Wait(ctx context.Context, id driver.TaskID) (driver.ExitResult, error) {
	w.mu.Lock()
	second := w.waited[id]
	w.waited[id] = true
	w.mu.Unlock()
	result, err := w.Driver.Wait(ctx, id)
	if err == nil && second && w.fault == "answers-one-waiter" {
		result = driver.ExitResult{Unknown: true}
	}
	return result, err
}

// Stop panics at a signal.
func (w *wrongTasks) Stop(ctx context.Context, id driver.TaskID, grace time.Duration, signal string) error {
	if signal == "SIGHUP" && w.fault == "panics" {
		panic("this signal has no name")
	}
	return w.Driver.Stop(ctx, id, grace, signal)
}

// Inspect returns no result of a task.
func (w *wrongTasks) Inspect(ctx context.Context, id driver.TaskID) (driver.Status, error) {
	status, err := w.Driver.Inspect(ctx, id)
	if w.fault == "forgets-exits" {
		status.Exit = nil
	}
	return status, err
}

// wrongProcesses is the raw_exec driver with a fault of its starts.
type wrongProcesses struct {
	*rawexec.Driver
	fault string
}

// Start changes the user or the environment of a task.
func (w wrongProcesses) Start(ctx context.Context, c *driver.TaskConfig) ([]byte, error) {
	name := c.User
	switch w.fault {
	case "ignores-users":
		c.User = ""
	case "accepts-existing-users":
		if c.User = ""; name == "" {
			break
		}
		if _, err := user.Lookup(name); err != nil {
			return nil, err
		}
	case "gives-its-environment":
		for _, variable := range os.Environ() {
			if name, value, _ := strings.Cut(variable, "="); c.Env[name] == "" {
				c.Env[name] = value
			}
		}
	}
	return w.Driver.Start(ctx, c)
}
