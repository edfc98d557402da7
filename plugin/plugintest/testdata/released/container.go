package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
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

// containerOf returns the container of a task on the machine, whether it exists or not.
func containerOf(machine, task string) container {
	sum := sha256.Sum256([]byte(task))
	return container{filepath.Join(machine, "containers", hex.EncodeToString(sum[:8]))}
}

func (c container) exists() bool {
	_, err := os.Stat(c.dir)
	return err == nil
}

// parent starts the arguments from the second one, with the first one as its folder. It writes the
// process and the exit code to files. A shell reports a signal as 128 plus its number.
const parent = `dir=$1; shift
setsid "$@" & echo -n $! >"$dir/pid.new"; mv "$dir/pid.new" "$dir/pid"
wait $!; echo -n $? >"$dir/exit.new"; mv "$dir/exit.new" "$dir/exit"`

// start starts the container and waits until its process runs.
func (c container) start(argv, env []string, stdout, stderr string) error {
	out, err := os.OpenFile(stdout, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer out.Close()
	errs, err := os.OpenFile(stderr, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer errs.Close()
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return err
	}
	shell := exec.Command("/bin/sh", append([]string{"-c", parent, "container", c.dir}, argv...)...)
	shell.Env, shell.Stdout, shell.Stderr = env, out, errs
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- shell.Wait() }()
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
