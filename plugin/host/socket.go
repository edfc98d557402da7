package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/socket"
)

// prepareSockets creates the folder for the sockets of a plugin.
func prepareSockets(dir string) error {
	if _, err := private.Make(dir); err != nil {
		return fmt.Errorf("the socket folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("the socket folder: %w", err)
	}
	return nil
}

// listener returns the pid of the running process that listens on a socket.
func listener(ctx context.Context, path string) (int, error) {
	var d net.Dialer
	connection, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	unix, is := connection.(*net.UnixConn)
	if !is {
		return 0, fmt.Errorf("%s is not a unix socket", path)
	}
	peer, err := socket.Peer(unix)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}

// checkListener returns an error if another process or none listens on a socket.
func checkListener(ctx context.Context, path string, pid int) error {
	got, err := listener(ctx, path)
	if err != nil {
		return fmt.Errorf("the socket of the plugin: %w", err)
	}
	if got != pid {
		return fmt.Errorf("the socket of the plugin belongs to the process %d, not to %d: a script must start the plugin with exec", got, pid)
	}
	return nil
}

// sweep kills the processes that listen in a plugin's socket folder and empties the folder. These
// processes are plugins of a client that died before it wrote their record.
func sweep(ctx context.Context, dir string) error {
	var errs []error
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSocket {
			return err
		}
		errs = append(errs, killListener(ctx, path))
		return nil
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("kill a plugin that has no record: %w", err)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// removeSocket removes the socket of a process that has ended, if nothing listens on it. A plugin with an old
// go-plugin has it in the folder for temporary files, and leaves it there if it is killed.
func removeSocket(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return
	}
	if _, err := listener(ctx, path); noListener(err) {
		_ = os.Remove(path) // what stays does no harm
	}
}

// killListener kills the process that listens on a socket, if there is one. An error means that a
// process may still listen.
func killListener(ctx context.Context, path string) error {
	pid, err := listener(ctx, path)
	if noListener(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the process that listens on %s could not be found: %w", path, err)
	}
	identity, err := process.Identify(pid)
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	p, err := process.Open(identity)
	if errors.Is(err, process.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	defer p.Close()
	// The pid listened before the pidfd was opened. If it still listens, the pidfd is for the same
	// process.
	again, err := listener(ctx, path)
	switch {
	case noListener(err):
		return nil
	case err != nil:
		return fmt.Errorf("the process %d listened on %s and was not killed: %w", pid, path, err)
	case again != pid:
		return fmt.Errorf("the process that listens on %s changed from %d to %d, and was not killed", path, pid, again)
	}
	return end(ctx, p)
}

// noListener reports whether a connection error means that no process listens. Other errors do
// not mean that: for example, a process that hangs does not accept another connection (EAGAIN).
func noListener(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT)
}

// end kills a process and waits for its end.
func end(ctx context.Context, p *process.Process) error {
	if err := p.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, process.ErrGone) {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		if d, described := p.Identity().Describe(); described == nil {
			return fmt.Errorf("a killed process does not end: %s", d)
		}
		return err
	}
	return nil
}
