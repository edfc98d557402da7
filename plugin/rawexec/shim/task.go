package shim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// shim is the state of the process.
type shim struct {
	log    *slog.Logger
	file   *os.File      // of the record
	group  *cgroup.Group // nil: only the descendants of the shim are the task
	pid    int           // of the task's first process
	pidfd  *os.File      // nil where the kernel has none
	record Record        // for the goroutine of Main

	answering sync.Mutex // held while a request is answered

	mu      sync.Mutex
	ended   bool        // guarded by mu: the first process has ended
	stopped unix.Signal // guarded by mu: the last stop signal, or 0
	killAt  time.Time   // guarded by mu: zero before a stop
	timer   *time.Timer // guarded by mu: kills at killAt, or nil
}

// signal sends a signal to the task's first process.
func (s *shim) signal(sig syscall.Signal) error {
	s.mu.Lock()
	ended := s.ended
	s.mu.Unlock()
	if ended {
		return nil
	}
	if s.pidfd == nil { // before Linux 5.3: the pid stays valid until the reaper has run
		return ignoreGone(syscall.Kill(s.pid, sig))
	}
	raw, err := s.pidfd.SyscallConn()
	if err != nil {
		return fmt.Errorf("signal the task: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = ignoreGone(unix.PidfdSendSignal(int(fd), sig, nil, 0)) })
	return errors.Join(err, failed)
}

func ignoreGone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

// stop sends the signal and kills all processes after the grace. A later stop never extends the
// grace, and sends its signal only if it differs from the last signal.
func (s *shim) stop(sig unix.Signal, grace time.Duration) error {
	at := time.Now().Add(max(grace, 0))
	s.mu.Lock()
	repeated := s.stopped == sig
	s.stopped = sig
	if s.killAt.IsZero() || at.Before(s.killAt) {
		s.killAt = at
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timer = time.AfterFunc(time.Until(at), s.kill)
	}
	s.mu.Unlock()
	if repeated {
		return nil
	}
	if err := s.signal(sig); err != nil {
		return err
	}
	return s.signal(unix.SIGCONT) // so that a stopped process receives the signal
}

// kill kills all processes of the task: those of its control group, and descendants of the shim that
// have left the group. The reaper notices their end.
func (s *shim) kill() {
	s.killGroup()
	// The shim is a subreaper, so orphaned descendants are its children.
	if err := process.KillDescendants(os.Getpid()); err != nil {
		s.log.Error("processes were not killed", "error", err)
	}
}

// killGroup kills the processes of the control group.
func (s *shim) killGroup() {
	if s.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := s.group.Kill(ctx); err != nil {
		s.log.Error("processes were not killed", "error", err)
	}
}

// await reaps children until all processes of the task have ended. The end of the task's first
// process is the result. All other processes are killed then.
func (s *shim) await() {
	for wait := unix.WNOHANG; ; {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, wait, nil)
		wait = unix.WNOHANG
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD): // no process below the shim
			s.awaitGroup()
			return
		case err != nil:
			s.log.Error("children were not reaped", "error", err)
			return
		case pid == 0: // children live, and may have forked while they were killed
			if s.record.Exit != nil {
				s.kill()
			}
			wait = 0
		case pid == s.pid && (status.Exited() || status.Signaled()):
			s.end(status)
			s.killGroup() // most tasks then have no child, and need no search for descendants
		}
	}
}

// end writes the result of the task's first process.
func (s *shim) end(status syscall.WaitStatus) {
	s.mu.Lock()
	s.ended = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	s.record.Phase, s.record.Exit, s.record.EndedAt = Ending, exitOf(status), time.Now()
	if s.group != nil && status.Signal() == syscall.SIGKILL {
		kills, err := s.group.OOMKills()
		if err != nil {
			s.log.Warn("out-of-memory kills were not counted", "error", err)
		}
		s.record.Exit.OOMKilled = kills > 0
	}
	s.write()
}

// awaitGroup waits until the control group is empty, and kills again what was started meanwhile.
func (s *shim) awaitGroup() {
	for s.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := s.group.Wait(ctx)
		cancel()
		if err == nil {
			return
		}
		remaining, _ := s.group.Remaining()
		s.log.Warn("processes remain after the kill", "error", err, "processes", fmt.Sprint(remaining))
		s.kill()
	}
}

// finish writes the last record. The shim runs until the write succeeds.
func (s *shim) finish() {
	s.record.Phase = Exited
	s.write()
}

func (s *shim) write() {
	for wait := time.Millisecond; ; wait = min(2*wait, time.Minute) {
		err := s.record.write(s.file)
		if err == nil {
			return
		}
		s.log.Error("the record was not written", "error", err)
		time.Sleep(wait)
	}
}
