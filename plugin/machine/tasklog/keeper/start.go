package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Command describes how to run a keeper.
type Command struct {
	// Path is the program, and Args its arguments before those of the keeper, for example
	// "logkeeper".
	Path string
	Args []string
	// Env is the whole environment of the keeper. It needs none.
	Env []string
	// Stderr gets errors of the keeper's life, or is nil. It must not be a pipe: its reader would end
	// with the client.
	Stderr *os.File
}

// Keeper is a log keeper that runs. Its owner calls [Keeper.Close] or [Keeper.Stop].
type Keeper struct {
	// ID is the keeper's process.
	ID process.Identity

	process *process.Process
	fifos   []*os.File
}

// Start returns the task's keeper: the one that runs, or a new one. When Start returns, both FIFOs
// exist and have a reader: the task may start. If the context ends before that, or the program does
// not report that it is ready, it is killed. The program of a keeper is the child of this process, and
// a goroutine of this package reaps it.
func Start(ctx context.Context, command Command, c Config) (*Keeper, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("start a log keeper: %w", err)
	}
	found, err := Find(c)
	if err != nil || found != nil {
		return found, err
	}
	if err := launch(ctx, command, c); err != nil {
		return nil, fmt.Errorf("start a log keeper for task %s: %w", c.Task, err)
	}
	found, err = Find(c)
	if err == nil && found == nil {
		err = fmt.Errorf("the log keeper of task %s ended after it was ready", c.Task)
	}
	return found, err
}

// launch starts the process and waits until it is ready.
func launch(ctx context.Context, command Command, c Config) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(command.Path, append(append([]string{}, command.Args...), c.args()...)...)
	cmd.Env, cmd.Dir, cmd.Stdout = append([]string{}, command.Env...), "/", w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if command.Stderr != nil {
		cmd.Stderr = command.Stderr
	}
	if err := errors.Join(cmd.Start(), w.Close()); err != nil {
		return err
	}
	id, err := process.Identify(cmd.Process.Pid) // a child that is not reaped
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	go process.Reap(id, func() { _ = cmd.Wait() })
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	err = process.AwaitReady(r, Protocol)
	if !stop() {
		return fmt.Errorf("it did not become ready: %w", context.Cause(ctx))
	}
	if err != nil {
		_ = cmd.Process.Kill() // A program that has closed its output may live.
	}
	return err
}

// Find returns the task's keeper, or nil if none runs.
func Find(c Config) (_ *Keeper, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("find the log keeper of task %s: %w", c.Task, err)
		}
	}()
	dir, err := os.OpenRoot(c.Logs)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file, err := dir.OpenFile(c.identityFile(), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		// A process that is being started holds a copy of the file until its exec: Close alone would leave
		// the lock with it, and the next keeper could not start.
		return nil, unix.Flock(int(file.Fd()), unix.LOCK_UN)
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return nil, err
	}
	var id process.Identity
	if err := json.NewDecoder(io.LimitReader(file, 4096)).Decode(&id); err != nil {
		return nil, fmt.Errorf("%s is locked and names no process: a keeper is starting or ending; retry: %w", file.Name(), err)
	}
	return attach(c, id)
}

// attach opens the process and the FIFOs.
func attach(c Config, id process.Identity) (_ *Keeper, err error) {
	k := &Keeper{ID: id}
	k.process, err = process.Open(id)
	if errors.Is(err, process.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range streams() {
		// Blocking mode: the runtime then does not watch the FIFO for data.
		fd, err := unix.Open(c.FIFO(name), unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			k.Close()
			return nil, fmt.Errorf("open FIFO %s: %w", c.FIFO(name), err)
		}
		k.fifos = append(k.fifos, os.NewFile(uintptr(fd), c.FIFO(name)))
	}
	return k, nil
}

// Wait returns nil when the keeper has ended, or the cause of the context's end. Its owner then
// starts another one while the task runs.
func (k *Keeper) Wait(ctx context.Context) error { return k.process.Wait(ctx) }

// Stop requests the keeper to end, waits for it, and closes k. The task must have ended. The end takes up
// to twice [DrainTime] if a process still writes to a FIFO and the disk is slow. If the context ends
// first, the keeper is killed, and the error states it.
func (k *Keeper) Stop(ctx context.Context) error {
	defer k.Close()
	if err := k.signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("stop log keeper %d: %w", k.ID.PID, err)
	}
	err := k.process.Wait(ctx)
	if err == nil {
		return nil
	}
	killed := k.signal(unix.SIGKILL)
	return errors.Join(fmt.Errorf("log keeper %d did not end in time and was killed: %w", k.ID.PID, err), killed)
}

// signal sends a signal. It is no error if the keeper has ended.
func (k *Keeper) signal(s unix.Signal) error {
	if err := k.process.Signal(s); !errors.Is(err, process.ErrGone) {
		return err
	}
	return nil
}

// Close releases what this process holds. The keeper goes on.
func (k *Keeper) Close() {
	_ = k.process.Close()
	for _, fifo := range k.fifos {
		_ = fifo.Close()
	}
	k.fifos = nil
}
