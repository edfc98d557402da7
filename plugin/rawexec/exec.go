package rawexec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec/shim"
)

// maxOutput is the largest size of each stream in Exec's answer, in bytes. The rest is dropped.
const maxOutput = 4 << 20

var errEnded = errors.New("the task has ended")

// Exec runs a command beside a task and returns its output, at most 4 MiB of each stream.
func (d *Driver) Exec(ctx context.Context, id driver.TaskID, command []string, timeout time.Duration) (driver.Output, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var stdout, stderr bounded
	exit, err := d.run(ctx, id, command, func(cmd *exec.Cmd) (func(), error) {
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		return func() {}, cmd.Start()
	})
	return driver.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Exit: exit}, err
}

// bounded keeps the first maxOutput bytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxOutput-b.Len())])
	return len(p), nil
}

// ExecStreaming runs a command beside a task, connected to the streams.
func (d *Driver) ExecStreaming(ctx context.Context, id driver.TaskID, command []string, s driver.ExecStreams) (driver.ExitResult, error) {
	return d.run(ctx, id, command, func(cmd *exec.Cmd) (func(), error) {
		if s.TTY {
			return startTerminal(cmd, s)
		}
		return startPipes(cmd, s)
	})
}

// run runs a command with the task's user, folder, environment and control group. The command ends
// with the task, with the context, and with the driver. start starts it with its streams, and
// returns a function that waits for their end.
func (d *Driver) run(ctx context.Context, id driver.TaskID, command []string, start func(*exec.Cmd) (func(), error)) (driver.ExitResult, error) {
	t, err := d.find(id)
	if err != nil {
		return driver.ExitResult{}, err
	}
	d.mu.Lock()
	c := t.config
	d.mu.Unlock()
	r, err := d.read(t)
	switch {
	case t.ended():
		return driver.ExitResult{}, errEnded
	case c == nil:
		return driver.ExitResult{}, errors.New("the task was not recovered from its handle, so that its environment is not known")
	case len(command) == 0:
		return driver.ExitResult{}, errors.New("the command is empty")
	case err != nil:
		return driver.ExitResult{}, err
	}
	spec, err := specOf(c)
	if err != nil {
		return driver.ExitResult{}, err
	}
	path, err := lookUp(command[0], spec.Dir, c.Env["PATH"])
	if err != nil {
		return driver.ExitResult{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with this call
		select {
		case <-t.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	g, err := d.machine.group(r.Cgroup)
	if err != nil {
		return driver.ExitResult{}, err
	}
	cmd := newCommand(ctx, path, command, spec, g == nil)
	var streams func()
	var leader process.Identity
	begin := func() (err error) {
		if streams, err = start(cmd); err == nil {
			leader, err = process.Identify(cmd.Process.Pid) // not reaped yet
		}
		return err
	}
	if g != nil {
		err = g.Start(cmd.SysProcAttr, begin)
	} else {
		err = begin()
	}
	if err != nil {
		if t.ended() {
			return driver.ExitResult{}, errEnded
		}
		return driver.ExitResult{}, fmt.Errorf("exec %s: %w", command[0], err)
	}
	_ = cmd.Wait() // the process state contains the result
	streams()
	switch {
	case g == nil: // nothing else would find what the command has left
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleFor)
		_ = process.KillSession(brief, leader)
		cancel()
	case t.ended(): // the command may have started after the shim's last kill
		_ = g.Kill(context.WithoutCancel(ctx))
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return driver.ExitResult{Code: 128 + int(status.Signal()), Signal: int(status.Signal())}, nil
	}
	return driver.ExitResult{Code: cmd.ProcessState.ExitCode()}, nil
}

// newCommand returns a command of a task. alone: it has no control group, so its end takes with it what
// can be found of its descendants.
func newCommand(ctx context.Context, path string, command []string, spec *shim.Spec, alone bool) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path)
	cmd.Args, cmd.Dir, cmd.Env = command, spec.Dir, spec.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // nil would be the driver's environment
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if u := spec.User; u != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	cmd.Cancel = func() error { // not reaped yet, so no other process has its pid
		var err error
		if alone {
			err = process.KillDescendants(cmd.Process.Pid)
		}
		return errors.Join(err, syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL))
	}
	cmd.WaitDelay = time.Second
	return cmd
}

// startPipes starts a command with pipes. The end of the command does not wait for the end of its
// input.
func startPipes(cmd *exec.Cmd, s driver.ExecStreams) (func(), error) {
	cmd.Stdout, cmd.Stderr = s.Stdout, s.Stderr
	if s.Stdin == nil {
		return func() {}, cmd.Start()
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the host's input, or with the command
		_, _ = io.Copy(in, s.Stdin)
		_ = in.Close()
	}()
	return func() {}, nil
}

// startTerminal starts a command with a new terminal.
func startTerminal(cmd *exec.Cmd, s driver.ExecStreams) (func(), error) {
	pty, tty, err := openTerminal()
	if err != nil {
		return nil, fmt.Errorf("open a terminal: %w", err)
	}
	if c := cmd.SysProcAttr.Credential; c != nil { // some programs open their terminal by its name
		if err := tty.Chown(int(c.Uid), -1); err != nil {
			return nil, errors.Join(fmt.Errorf("give the terminal to the user of the task: %w", err), tty.Close(), pty.Close())
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr.Setctty = true
	err = cmd.Start()
	_ = tty.Close()
	if err != nil {
		return nil, errors.Join(err, pty.Close())
	}
	ended := make(chan struct{})
	go func() { // ends with the call
		for {
			select {
			case size := <-s.Resize:
				_ = control(pty, func(fd int) error {
					return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(size.Height), Col: uint16(size.Width)})
				})
			case <-ended:
				return
			}
		}
	}()
	if s.Stdin != nil {
		go func() { // ends with the host's input, or with the terminal
			if _, err := io.Copy(pty, s.Stdin); err == nil {
				_, _ = pty.Write([]byte{endOfInput})
			}
		}()
	}
	printed := make(chan struct{})
	go func() {
		_, _ = io.Copy(s.Stdout, pty) // EIO at the end of the last process with the terminal
		close(printed)
	}()
	return func() {
		timer := time.NewTimer(cmd.WaitDelay) // a background process may keep the terminal open
		defer timer.Stop()
		select {
		case <-printed:
		case <-timer.C:
		}
		close(ended)
		_ = pty.Close()
		<-printed
	}, nil
}

// endOfInput is Ctrl-D, which ends the input of a terminal.
const endOfInput = 4

// openTerminal opens both sides of a new terminal.
func openTerminal() (pty, tty *os.File, err error) {
	if pty, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	var number int
	err = control(pty, func(fd int) (err error) {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, pty.Close())
	}
	return pty, tty, nil
}

// control calls f with a descriptor that stays open.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}
