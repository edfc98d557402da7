package freshmachine

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// supervisorName is the first argument of a supervisor.
	supervisorName = "nodedrain-test-supervisor"
	// setupFailed is the exit code of a supervisor if the machine does not permit its namespaces.
	setupFailed = 125
	// launcherPipe is the file descriptor whose end is the end of the launcher.
	launcherPipe = 3
)

// A supervisor never reaches TestMain. The time namespace needs the main thread, and the runtime
// runs init functions on it.
func init() {
	if len(os.Args) > 2 && os.Args[0] == supervisorName {
		code, err := supervise(os.Args[1], os.Args[2:])
		if err != nil {
			fmt.Fprintln(os.Stderr, "the supervisor of the tests:", err)
		}
		os.Exit(code)
	}
}

type childEnd struct {
	pid    int
	status unix.WaitStatus
}

// supervise runs the tests with these arguments, and returns their exit code when no descendant of
// this process is left.
func supervise(mode string, args []string) (code int, err error) {
	unix.CloseOnExec(launcherPipe)
	if err := adoptOrphans(); err != nil {
		return 1, err
	}
	if mode == namespaces {
		if err := setUp(); err != nil {
			return setupFailed, fmt.Errorf("no fresh machine is possible, the tests run without one: %w", err)
		}
	}
	signals := make(chan os.Signal, 8)
	notify(signals)
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	if err := os.Setenv(variable, off); err != nil {
		return 1, err
	}
	tests, err := syscall.ForkExec(self, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		return 1, fmt.Errorf("start the tests: %w", err)
	}
	launcher, ends := make(chan struct{}), make(chan childEnd)
	go func() { // it ends with this process
		_, _ = os.NewFile(launcherPipe, "launcher").Read(make([]byte, 1))
		close(launcher)
	}()
	go reap(ends)
	code, ending := 1, false // 1 also if the launcher has ended
	for {
		select {
		case e, open := <-ends:
			if !open {
				return code, err
			}
			if e.pid == tests && !ending {
				if code = e.status.ExitStatus(); e.status.Signaled() {
					code, err = 128+int(e.status.Signal()), fmt.Errorf("the process of the tests ended: %s", e.status.Signal())
				}
				ending = true
			}
		case <-launcher:
			launcher, ending = nil, true
		case s := <-signals:
			if n, is := s.(syscall.Signal); is && !ending {
				_ = syscall.Kill(tests, n) // a child that is not reaped
			}
			continue
		}
		if ending {
			killChildren()
		}
	}
}

// reap sends the end of each child. It closes the channel when no child is left.
func reap(ends chan<- childEnd) {
	for {
		var e childEnd
		var err error
		e.pid, err = unix.Wait4(-1, &e.status, 0, nil)
		switch err {
		case nil:
			ends <- e
		case unix.EINTR:
		default:
			close(ends)
			return
		}
	}
}

// setUp changes the namespaces of this process: it mounts a /proc of the pid namespace, and its
// children get clocks that have just begun.
func setUp() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWTIME); err != nil {
		return fmt.Errorf("create a time namespace: %w", err)
	}
	offsets, err := offsetsFor(age)
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/self/timens_offsets", []byte(offsets), 0); err != nil {
		return fmt.Errorf("set the clocks of the time namespace: %w", err)
	}
	return nil
}

// age is the time since the boot, in seconds, when the tests begin.
const age = 2

// offsetsFor returns the content of timens_offsets with which the clocks of this process's children show
// the seconds. The kernel adds an offset to the clock of the machine, and not to the clock that
// this process reads: the caller may have a time namespace with offsets of its own. A new namespace
// begins with those.
func offsetsFor(seconds int64) (string, error) {
	inherited, err := os.ReadFile("/proc/self/timens_offsets")
	if err != nil {
		return "", fmt.Errorf("read the clocks of the time namespace: %w", err)
	}
	var offsets strings.Builder
	for line := range strings.Lines(string(inherited)) {
		var name string
		var offset, nanoseconds int64
		if _, err := fmt.Sscan(line, &name, &offset, &nanoseconds); err != nil {
			return "", fmt.Errorf("read the clocks of the time namespace: line %q: %w", line, err)
		}
		clock := int32(unix.CLOCK_MONOTONIC)
		if name == "boottime" {
			clock = unix.CLOCK_BOOTTIME
		}
		var now unix.Timespec
		if err := unix.ClockGettime(clock, &now); err != nil {
			return "", fmt.Errorf("read the clock %s: %w", name, err)
		}
		fmt.Fprintf(&offsets, "%d %d 0\n", clock, offset+seconds-now.Sec)
	}
	return offsets.String(), nil
}
