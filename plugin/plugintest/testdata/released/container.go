package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// container is a container of the machine. Its folder survives the plugin, and so does its parent
// process, which writes the exit code.
type container struct{ dir string }

// spec is what a container runs.
type spec struct {
	Argv           []string
	Env            []string
	Stdout, Stderr string
}

// containerOf returns the container of a task on the machine, whether it exists or not.
func containerOf(machine, task string) container {
	sum := sha256.Sum256([]byte(task))
	return container{filepath.Join(machine, "containers", hex.EncodeToString(sum[:8]))}
}

func (c container) exists() bool {
	_, err := os.Stat(c.dir)
	return err == nil
}

// start starts the container and waits until its process runs.
func (c container) start(s spec) error {
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.write("spec", text); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	parent := exec.Command(self, "container", c.dir)
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := parent.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- parent.Wait() }()
	for c.pid() == 0 {
		select {
		case err := <-ended:
			return errors.Join(errors.New("the container did not start"), err, os.RemoveAll(c.dir))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// write writes a file of the container at once.
func (c container) write(name string, text []byte) error {
	path := filepath.Join(c.dir, name)
	return errors.Join(os.WriteFile(path+".new", text, 0o600), os.Rename(path+".new", path))
}

// number reads a number from a file of the container.
func (c container) number(name string) (int, bool) {
	text, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
	return n, err == nil
}

// pid returns the process of the container, or 0.
func (c container) pid() int {
	pid, _ := c.number("pid")
	return pid
}

// exited returns the exit code, if the container has ended.
func (c container) exited() (code int, is bool) { return c.number("exit") }

// stopping reports whether a stop is in progress.
func (c container) stopping() bool {
	_, err := os.Stat(filepath.Join(c.dir, "stopping"))
	return err == nil
}

// stop sends the signal, waits for the grace, and kills the container.
func (c container) stop(signal syscall.Signal, grace time.Duration) error {
	if err := c.write("stopping", nil); err != nil {
		return err
	}
	c.signal(signal)
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, is := c.exited(); is {
			return nil
		}
	}
	c.signal(syscall.SIGKILL)
	for {
		if _, is := c.exited(); is {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// signal sends a signal to the process of the container, while it runs.
func (c container) signal(s syscall.Signal) {
	if _, is := c.exited(); !is && c.pid() > 0 {
		_ = syscall.Kill(c.pid(), s)
	}
}

// remove kills the container and removes its folder.
func (c container) remove() error {
	if err := c.stop(syscall.SIGKILL, 0); err != nil {
		return err
	}
	return os.RemoveAll(c.dir)
}

// runContainer is the parent process of a container.
func runContainer(dir string) error {
	c := container{dir}
	text, err := os.ReadFile(filepath.Join(dir, "spec"))
	if err != nil {
		return err
	}
	var s spec
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if len(s.Argv) == 0 {
		return errors.New("the container has no command")
	}
	stdout, err := os.OpenFile(s.Stdout, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	stderr, err := os.OpenFile(s.Stderr, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	command := exec.Command(s.Argv[0], s.Argv[1:]...)
	command.Env, command.Stdout, command.Stderr = s.Env, stdout, stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return err
	}
	_, _ = stdout.Close(), stderr.Close()
	if err := c.write("pid", []byte(strconv.Itoa(command.Process.Pid))); err != nil {
		return err
	}
	_ = command.Wait() // the state has the exit code
	code := command.ProcessState.ExitCode()
	if status, is := command.ProcessState.Sys().(syscall.WaitStatus); is && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if err := c.write("exit", []byte(strconv.Itoa(code))); err != nil {
		return fmt.Errorf("the exit code %d: %w", code, err)
	}
	return nil
}
