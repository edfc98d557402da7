package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// attached implements go-plugin's interface for a running plugin.
type attached struct {
	process *process.Process
	// ended is closed after the process has ended.
	ended <-chan struct{}
	// cause states why.
	cause *cause
	// socket is where the process listens, or empty if it has not stated it.
	socket string
}

// Wait implements runner.AttachedRunner.
func (a *attached) Wait(context.Context) error {
	<-a.ended
	return nil
}

// Kill implements runner.AttachedRunner. It does not wait.
func (a *attached) Kill(context.Context) error {
	if a.process == nil {
		return nil
	}
	if err := a.process.Signal(syscall.SIGKILL); !errors.Is(err, process.ErrGone) {
		return err
	}
	return nil
}

// ID implements runner.AttachedRunner. go-plugin does not kill a process without an id.
func (a *attached) ID() string {
	if a.process == nil {
		return ""
	}
	return fmt.Sprint(a.process.Identity().PID)
}

// PluginToHost and HostToPlugin implement runner.AddrTranslator: host and plugin see the same
// files.
func (a *attached) PluginToHost(network, address string) (hostNetwork, hostAddress string, err error) {
	if network != "unix" {
		return "", "", fmt.Errorf("the plugin serves %q, not a unix socket", plain(network))
	}
	return network, address, nil
}

func (a *attached) HostToPlugin(network, address string) (pluginNetwork, pluginAddress string, err error) {
	return network, address, nil
}

// runner implements go-plugin's interface to start a plugin.
type runner struct {
	attached
	options Options
	env     []string
	// command has the state of the process after ended is closed.
	command *exec.Cmd
	stdout  *firstLine
	// The process is killed when starting ends, unless spare was called before. spare reports
	// whether it was called in time.
	starting context.Context
	spare    func() bool
}

// Start implements runner.Runner.
func (r *runner) Start(context.Context) error {
	if err := CheckFile(r.options.Path); err != nil {
		return err
	}
	log, err := openLog(r.options.LogFile, r.options.MaxLogBytes)
	if err != nil {
		return err
	}
	defer log.Close()
	r.cause = newCause(r.options.LogFile)
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the plugin: %w", err)
	}
	defer write.Close()
	command := exec.Command(r.options.Path, r.options.Args...)
	command.Env = r.env
	command.Stdout, command.Stderr = write, log // Stdin is /dev/null
	command.Dir = "/"
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	start := command.Start
	if r.options.Group != nil {
		start = func() error { return r.options.Group.Start(command.SysProcAttr, command.Start) }
	}
	if err := start(); err != nil {
		_ = read.Close()
		return errors.Join(fmt.Errorf("starting the plugin: %w", err), discard(command))
	}
	// The process is not reaped yet, so no other process can have its pid.
	identity, err := process.Identify(command.Process.Pid)
	if err == nil {
		r.process, err = process.Open(identity)
	}
	if err != nil {
		_ = read.Close()
		return errors.Join(err, discard(command))
	}
	r.command, r.stdout = command, &firstLine{file: read}
	r.spare = context.AfterFunc(r.starting, func() { _ = r.Kill(context.Background()) })
	ended := make(chan struct{})
	r.ended, r.cause.status = ended, func() string { return command.ProcessState.String() }
	go func() {
		defer close(ended)
		_ = command.Wait()
		// A child process of the plugin may still hold the pipe open.
		_ = read.SetReadDeadline(time.Now().Add(time.Second))
	}()
	return nil
}

// noLine is a part of go-plugin's error for a program that ends before it has written a line.
const noLine = "Failed to read any lines"

// failed describes the error of a handshake, after the process was killed.
func (r *runner) failed(err error) string {
	text := plain(err.Error())
	if !strings.Contains(text, noLine) {
		return text
	}
	select {
	case <-r.ended:
		return fmt.Sprintf("the program ended with %s. Is it a plugin?", r.command.ProcessState)
	default: // it cannot be killed
		return text
	}
}

// discard kills and reaps the process of a failed start, if there is one.
func discard(command *exec.Cmd) error {
	if command.Process == nil {
		return nil
	}
	err := command.Process.Kill()
	_ = command.Wait()
	return err
}

// Stdout implements runner.Runner.
func (r *runner) Stdout() io.ReadCloser { return r.stdout }

// Stderr implements runner.Runner. The plugin writes to a file.
func (r *runner) Stderr() io.ReadCloser { return io.NopCloser(bytes.NewReader(nil)) }

// Name implements runner.Runner.
func (r *runner) Name() string { return r.options.Path }

// Diagnose implements runner.Runner.
func (r *runner) Diagnose(context.Context) string { return "" }

// maxFirstLine is the longest first line of a plugin, in bytes.
const maxFirstLine = 4096

// firstLine returns the first line of a plugin and discards the rest. Without it go-plugin would
// stop to read at a long line, and the plugin would block. It ends without an error.
type firstLine struct {
	file *os.File
	read int
	done bool
}

// Read implements io.Reader.
func (f *firstLine) Read(p []byte) (int, error) {
	for {
		n, err := f.file.Read(p)
		if err != nil || n == 0 {
			// go-plugin does not close it.
			_ = f.file.Close()
			return 0, io.EOF
		}
		if f.done {
			continue
		}
		if at := bytes.IndexByte(p[:n], '\n'); at >= 0 {
			f.done = true
			return at + 1, nil
		}
		if f.read += n; f.read > maxFirstLine {
			f.done = true
			p[n-1] = '\n'
		}
		return n, nil
	}
}

// Close implements io.Closer.
func (f *firstLine) Close() error { return f.file.Close() }
