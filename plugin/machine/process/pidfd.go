package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/internal/await"
)

// A Process is an open process. Its pidfd never refers to another one. Close it after use. Its
// methods may be called concurrently.
type Process struct {
	id   Identity
	file *os.File // the pidfd
}

// Open opens the process that id names. The error is ErrGone if it has ended and was reaped, or if
// the pid belongs to another process now. A zombie can be opened: Wait returns at once.
func Open(id Identity) (*Process, error) {
	if id.PID <= 0 {
		return nil, ErrGone
	}
	fd, err := unix.PidfdOpen(id.PID, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
		return nil, ErrGone // EINVAL and ENOENT: a thread of another process has the number
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", id, err)
	}
	p := &Process{id: id, file: os.NewFile(uintptr(fd), "pidfd of "+id.String())}
	// The pidfd holds the process that has the pid now. It is the right one if the identity matches.
	if _, err := id.stat(); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}

// Identity returns the identity of the process.
func (p *Process) Identity() Identity { return p.id }

// Close releases the pidfd. Calls of Wait that have begun go on.
func (p *Process) Close() error { return p.file.Close() }

// Signal sends a signal to the process. The error is ErrGone if it has ended and was reaped. A
// signal to a zombie has no effect and is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	err := p.control(func(fd int) error { return unix.PidfdSendSignal(fd, sig, nil, 0) })
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("send %s to %s: %w", unix.SignalName(sig), p.id, err)
	}
	return nil
}

// Ended reports whether all threads of the process have ended. It does not wait.
func (p *Process) Ended() (bool, error) {
	var ended bool
	err := p.control(func(fd int) (err error) {
		ended, err = hasEnded(fd)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask for the end of %s: %w", p.id, err)
	}
	return ended, nil
}

// Wait returns nil after all threads of the process have ended, or the cause of ctx. The caller
// need not be the parent. Wait does not reap.
func (p *Process) Wait(ctx context.Context) error {
	var fd int
	err := p.control(func(mine int) (err error) {
		fd, err = unix.FcntlInt(uintptr(mine), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for %s: %w", p.id, err)
	}
	f := os.NewFile(uintptr(fd), p.file.Name()) // non-blocking like the original: the runtime polls it
	defer f.Close()
	return await.Change(ctx, f, hasEnded)
}

// control calls f with the pidfd, which stays open during the call.
func (p *Process) control(f func(fd int) error) error {
	raw, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// hasEnded reports whether a pidfd is readable: all threads of its process have ended.
func hasEnded(fd int) (bool, error) {
	for {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, fmt.Errorf("poll a pidfd: %w", err)
		default:
			return n > 0, nil
		}
	}
}
