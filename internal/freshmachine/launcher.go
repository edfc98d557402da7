package freshmachine

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// variable is the environment variable that selects a mode. The empty value is namespaces, or
	// shared if the machine does not permit it.
	variable   = "NODEDRAIN_TEST_MACHINE"
	namespaces = "namespaces"
	shared     = "shared"
	off        = "off"
)

// Enter returns in the process that runs the tests. In the launcher it never returns: the process
// ends with the exit code of the tests. A TestMain that gives the test binary other roles, such as
// that of a plugin, calls it after these. Enter also returns in a test binary that another test of
// the same package has started.
func Enter() {
	mode := os.Getenv(variable)
	if mode == off || mode == "" && startedByTests() {
		return
	}
	code, err := launch(mode)
	if err != nil {
		fmt.Fprintln(os.Stderr, "freshmachine:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// startedByTests reports whether the parent runs the same program. The environment does not show it:
// tests start processes without one.
func startedByTests() bool {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return false
	}
	parent, err := os.Stat(filepath.Join("/proc", strconv.Itoa(os.Getppid()), "exe"))
	return err == nil && os.SameFile(own, parent)
}

// launch runs the tests and returns their exit code.
func launch(mode string) (int, error) {
	if err := adoptOrphans(); err != nil {
		return 0, err
	}
	parent := make(chan struct{})
	if err := watchParent(parent); err != nil {
		return 0, err
	}
	if mode != shared {
		code, err := run(namespaces, parent)
		if code != setupFailed || mode == namespaces {
			return code, err
		}
	}
	return run(shared, parent)
}

// run runs a supervisor until its end. When parent is closed, it lets the supervisor end the tests.
func run(mode string, parent <-chan struct{}) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// The supervisor reads the pipe. Its end is the end of the launcher.
	read, write, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer write.Close()
	cmd := exec.Command(self)
	cmd.Args = append([]string{supervisorName, mode}, os.Args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stdout, os.Stderr, []*os.File{read}
	if mode == namespaces {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	}
	signals := make(chan os.Signal, 8)
	notify(signals)
	defer signal.Stop(signals)
	err = cmd.Start()
	_ = read.Close()
	if err != nil {
		return setupFailed, fmt.Errorf("start a supervisor of the tests: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its error is in the state
		close(ended)
	}()
	for {
		select {
		case s := <-signals:
			_ = cmd.Process.Signal(s) // it may have ended
		case <-parent:
			parent = nil
			_ = write.Close()
		case <-ended:
			endChildren() // of a supervisor that was killed
			if code := cmd.ProcessState.ExitCode(); code >= 0 {
				return code, nil
			}
			return 0, fmt.Errorf("the supervisor of the tests ended: %s", cmd.ProcessState)
		}
	}
}

// notify relays the signals that this process forwards towards the tests.
func notify(to chan<- os.Signal) {
	signal.Notify(to, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
}

// watchParent closes a channel when the parent ends, if that is the go command. Another parent, such
// as a shell, may end before the tests.
func watchParent(ended chan<- struct{}) error {
	parent := os.Getppid()
	name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(parent), "comm"))
	if err != nil || strings.TrimSpace(string(name)) != "go" {
		return nil // it has another name, has ended, or has no pid in this namespace
	}
	fd, err := unix.PidfdOpen(parent, 0)
	if err != nil {
		return fmt.Errorf("open the parent process: %w", err)
	}
	if os.Getppid() != parent {
		close(ended)
		return unix.Close(fd)
	}
	go func() { // it ends with this process
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || err != nil && err != unix.EINTR {
				close(ended)
				return
			}
		}
	}()
	return nil
}
