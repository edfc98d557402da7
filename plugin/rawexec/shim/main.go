package shim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// Argument is the first argument of a shim process.
const Argument = "raw_exec-shim"

// Files of a shim beside the standard streams.
const (
	fdLock   = 3
	fdRecord = 4
	fdReady  = 5 // closed when the task runs or has failed
)

// drain is how long the shim reads logs after the last process has ended.
const drain = 2 * time.Second

// Main runs a shim in the folder of its task, and returns the exit code. The caller's goroutine
// must run on the first thread of the process, because the kernel kills the task when the thread
// that started it ends.
func Main() int {
	runtime.LockOSThread()
	process.Economize()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	record := os.NewFile(fdRecord, "record")
	ready := os.NewFile(fdReady, "ready")
	syscall.CloseOnExec(fdLock)
	syscall.CloseOnExec(fdRecord)
	syscall.CloseOnExec(fdReady)

	// A shim must not end before its task. It uses a handler and does not ignore the signals,
	// because the task would inherit ignored signals.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT, unix.SIGPIPE, unix.SIGUSR1, unix.SIGUSR2)

	if err := process.Rename(Argument); err != nil {
		log.Warn("the shim has no name", "error", err)
	}

	s, spec, err := prepare(log, record)
	if err != nil {
		log.Error("the shim cannot start", "error", err)
		return 1
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: "socket"})
	if err != nil {
		return s.fail(fmt.Errorf("listen: %w", err))
	}
	defer listener.Close()
	logs, err := openLogs(log, spec)
	if err != nil {
		return s.fail(err)
	}
	if err := s.start(spec, logs); err != nil {
		return s.fail(err)
	}
	logs.begin()
	spec = nil // the environment may be large
	if err := ready.Close(); err != nil {
		log.Warn("the driver does not wait for the task", "error", err)
	}
	debug.FreeOSMemory()
	go s.serve(listener) // ends with the process
	s.await()
	logs.finish(drain)
	s.finish()
	// The request whose signal ended the task is answered before the shim ends.
	s.answering.Lock()
	return 0
}

// prepare reads the spec and writes the first record.
func prepare(log *slog.Logger, file *os.File) (*shim, *Spec, error) {
	b, err := io.ReadAll(os.Stdin)
	if err != nil {
		return nil, nil, fmt.Errorf("read the spec: %w", err)
	}
	var spec Spec
	if err := json.Unmarshal(b, &spec); err != nil {
		return nil, nil, fmt.Errorf("decode the spec: %w", err)
	}
	if spec.Protocol != Protocol {
		return nil, nil, fmt.Errorf("the spec has protocol %d, and this shim speaks %d", spec.Protocol, Protocol)
	}
	self, err := process.Identify(os.Getpid())
	if err != nil {
		return nil, nil, err
	}
	s := &shim{log: log, file: file, record: Record{
		Protocol: Protocol, TaskID: spec.TaskID, Phase: Starting, Shim: self, Cgroup: spec.Cgroup, OwnCgroup: spec.OwnCgroup,
	}}
	if err := s.record.write(file); err != nil {
		return nil, nil, err
	}
	if spec.Cgroup != "" {
		hierarchies, err := cgroup.Find(cmp.Or(spec.Root, "/"))
		if err != nil {
			return nil, nil, err
		}
		if s.group, err = hierarchies.OpenPath(spec.Cgroup); err != nil {
			return nil, nil, err
		}
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, nil, fmt.Errorf("become a subreaper: %w", err)
	}
	return s, &spec, nil
}

// fail ends a shim whose task did not start.
func (s *shim) fail(err error) int {
	s.log.Error("the task was not started", "error", err)
	if s.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if kill := s.group.Kill(ctx); kill != nil {
			err = errors.Join(err, kill)
		}
	}
	text := err.Error()
	s.record.Phase, s.record.Error = Failed, text[:min(len(text), 1000)]
	if err := s.record.write(s.file); err != nil {
		s.log.Error("the record was not written", "error", err)
	}
	return 1
}

// start forks the task and writes its record.
func (s *shim) start(spec *Spec, logs *logs) error {
	pidfd := -1
	attr := &syscall.ProcAttr{
		Dir:   spec.Dir,
		Env:   spec.Env,
		Files: logs.files(),
		Sys: &syscall.SysProcAttr{
			Setsid:    true,
			Pdeathsig: syscall.SIGKILL,
			PidFD:     &pidfd,
		},
	}
	if u := spec.User; u != nil {
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	fork := func() (err error) {
		s.pid, err = syscall.ForkExec(spec.Path, spec.Args, attr)
		return err
	}
	// The record must not state "starting" while the task runs. So the reaper starts after the write.
	var err error
	if s.group != nil {
		err = s.group.Start(attr.Sys, fork)
	} else {
		err = fork()
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", spec.Path, err)
	}
	logs.started()
	if pidfd >= 0 {
		s.pidfd = os.NewFile(uintptr(pidfd), "pidfd of the task")
	}
	id, err := process.Identify(s.pid)
	if err != nil {
		return errors.Join(err, s.abort())
	}
	s.record.Phase, s.record.Task, s.record.StartedAt = Running, id, time.Now()
	if err := s.record.write(s.file); err != nil {
		return errors.Join(err, s.abort())
	}
	return nil
}

// abort kills a task that has just started.
func (s *shim) abort() error {
	if err := syscall.Kill(s.pid, syscall.SIGKILL); err != nil { // the child is not reaped, so its pid is valid
		return err
	}
	_, err := syscall.Wait4(s.pid, nil, 0, nil)
	return err
}
