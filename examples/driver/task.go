package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// taskConfig is the config of a task. Its keys are the keys of the task schema.
type taskConfig struct {
	Script string `codec:"script"`
	Shell  string `codec:"shell"`
}

// state is the data with which a later process of the driver can take a task over.
type state struct {
	// Shell is the process of the script. No other process ever has the same identity.
	Shell process.Identity
	// Group is the control group of the task.
	Group   string
	Started time.Time
}

// task is one start of a task.
type task struct {
	id    driver.TaskID
	name  string
	state state
	// group contains all processes of the task.
	group *cgroup.Group
	// shell is open until the task is removed.
	shell *process.Process

	// done is closed when the task has ended. exit and completed do not change after that.
	done      chan struct{}
	exit      driver.ExitResult
	completed time.Time
}

// start starts the process of a task. After an error no process and no group is left.
func start(c *driver.TaskConfig, config taskConfig) (*task, error) {
	groups, err := cgroup.Find("/")
	if err != nil {
		return nil, err
	}
	group, err := groups.Create(strings.ReplaceAll(string(c.ID), "/", "."), cgroup.Limits{
		CPUShares: c.Resources.CPU, MemoryBytes: c.Resources.MemoryBytes(), MemoryLowBytes: c.Resources.MemoryLowBytes(),
	})
	if err != nil {
		return nil, err
	}
	t := &task{id: c.ID, name: c.Name, group: group, done: make(chan struct{})}
	command, err := t.fork(c, config)
	if err != nil {
		return nil, errors.Join(err, t.clear(context.Background()))
	}
	go t.watch(func() driver.ExitResult { // ends with the task
		_ = command.Wait() // the process state contains the result
		return resultOf(command.ProcessState)
	})
	return t, nil
}

// fork starts the shell in the group.
func (t *task) fork(c *driver.TaskConfig, config taskConfig) (*exec.Cmd, error) {
	command := exec.Command(config.Shell, "-c", config.Script)
	command.Dir = filepath.Join(c.AllocDir, c.Name)
	for key, value := range c.Env {
		command.Env = append(command.Env, key+"="+value)
	}
	// The paths are FIFOs with a reader, or files. The task writes to them directly, so that no
	// output is lost when the driver dies.
	out, err := os.OpenFile(c.StdoutPath, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the standard output: %w", err)
	}
	defer out.Close()
	errs, err := os.OpenFile(c.StderrPath, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the standard error: %w", err)
	}
	defer errs.Close()
	command.Stdout, command.Stderr = out, errs
	// In a new session the task gets no signals for the driver's process group.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := t.group.Start(command.SysProcAttr, command.Start); err != nil {
		return nil, fmt.Errorf("start the script: %w", err)
	}
	t.state = state{Group: t.group.Path(), Started: time.Now()}
	if t.state.Shell, err = process.Identify(command.Process.Pid); err != nil {
		return nil, err
	}
	t.shell, err = process.Open(t.state.Shell)
	return command, err
}

func takeOver(c *driver.TaskConfig, s state) (*task, error) {
	groups, err := cgroup.Find("/")
	if err != nil {
		return nil, err
	}
	t := &task{id: c.ID, name: c.Name, state: s, done: make(chan struct{})}
	if t.group, err = groups.OpenPath(s.Group); err != nil {
		return nil, err
	}
	if t.shell, err = process.Open(s.Shell); errors.Is(err, process.ErrGone) {
		// The result is lost, and the client does not request it again.
		return nil, errors.Join(errors.New("the task has ended without its driver"), t.clear(context.Background()))
	}
	if err != nil {
		return nil, err
	}
	go t.watch(func() driver.ExitResult { // ends with the task
		_ = t.shell.Wait(context.Background()) // after an error the result is unknown, too
		// The process is not a child of this process, so its exit code is lost. Never invent a
		// result.
		return driver.ExitResult{Unknown: true}
	})
	return t, nil
}

// watch waits for the end of the shell. Then it kills background processes of the script.
func (t *task) watch(wait func() driver.ExitResult) {
	t.exit = wait()
	t.completed = time.Now()
	_ = t.group.Kill(context.Background()) // Destroy kills again, and returns the error
	close(t.done)
}

// resultOf returns the result of a process. After a signal the code is 128 plus its number.
func resultOf(ended *os.ProcessState) driver.ExitResult {
	status, _ := ended.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return driver.ExitResult{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}
	}
	return driver.ExitResult{Code: status.ExitStatus()}
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

func (t *task) wait(ctx context.Context) (driver.ExitResult, error) {
	select {
	case <-t.done:
		return t.exit, nil
	case <-ctx.Done():
		return driver.ExitResult{}, ctx.Err()
	}
}

// signal sends a signal to the shell. An unknown name is an error and has no effect.
func (t *task) signal(name string) error {
	number := unix.SignalNum(name)
	if number == 0 {
		return fmt.Errorf("unknown signal %q", name)
	}
	if err := t.shell.Signal(number); err != nil && !errors.Is(err, process.ErrGone) {
		return err
	}
	return nil
}

// stop sends the signal, and kills the task after the grace.
func (t *task) stop(ctx context.Context, grace time.Duration, signal string) error {
	if t.ended() {
		return nil
	}
	if err := t.signal(signal); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	if err := t.group.Kill(ctx); err != nil {
		return err
	}
	_, err := t.wait(ctx)
	return err
}

// remove kills all processes of the task, and removes the group.
func (t *task) remove(ctx context.Context) error {
	if err := t.clear(ctx); err != nil {
		return err
	}
	if _, err := t.wait(ctx); err != nil {
		return err
	}
	_ = t.shell.Close() // on an error another call has closed it
	return nil
}

// clear kills all processes in the group, and removes the group.
func (t *task) clear(ctx context.Context) error {
	if err := t.group.Kill(ctx); err != nil {
		return err
	}
	if err := t.group.Wait(ctx); err != nil {
		return err
	}
	return t.group.Remove(ctx)
}

func (t *task) status() driver.Status {
	s := driver.Status{ID: t.id, Name: t.name, State: driver.TaskRunning, StartedAt: t.state.Started}
	if t.ended() {
		exit := t.exit
		s.State, s.Exit, s.CompletedAt = driver.TaskExited, &exit, t.completed
	}
	return s
}
