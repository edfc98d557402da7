package shim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/internal/private"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// ErrUsed means that a task id was used before.
var ErrUsed = errors.New("a task with this id exists")

// A Folder is the path of the folder of a task's shim.
type Folder string

// FolderOf returns the folder of a task below the folder of all tasks.
func FolderOf(base, taskID string) Folder {
	sum := sha256.Sum256([]byte(taskID))
	return Folder(filepath.Join(base, hex.EncodeToString(sum[:16])))
}

func (f Folder) path(name string) string { return filepath.Join(string(f), name) }

// Exists reports whether the task has a folder.
func (f Folder) Exists() (bool, error) {
	_, err := os.Lstat(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Create creates the folder of a new task with its first record, and the folder of all tasks. The
// record names the control group before the group exists. The error is ErrUsed if the task already
// has a folder. The caller removes the folder after a failed start.
func (f Folder) Create(spec *Spec) error {
	base := filepath.Dir(string(f))
	mode, err := private.Make(base)
	if err == nil && mode.Perm() != 0o700 {
		err = fmt.Errorf("%s has mode %04o, and must have mode 0700", base, mode.Perm())
	}
	if err != nil {
		return fmt.Errorf("create the folder of shims: %w", err)
	}
	err = os.Mkdir(string(f), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return ErrUsed
	}
	if err != nil {
		return err
	}
	r := Record{Protocol: Protocol, TaskID: spec.TaskID, Phase: Starting, Cgroup: spec.Cgroup, OwnCgroup: spec.OwnCgroup}
	file, err := os.OpenFile(f.path("record"), os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(r.write(file), file.Close())
	}
	if err != nil {
		return errors.Join(err, f.Remove())
	}
	return nil
}

// Remove deletes the folder. The shim must have ended.
func (f Folder) Remove() error { return os.RemoveAll(string(f)) }

// Read returns the record of the task. The error is fs.ErrNotExist if there is none yet.
func (f Folder) Read() (Record, error) {
	const tries = 3 // a read may overlap a write
	var last error
	for range tries {
		b, err := os.ReadFile(f.path("record"))
		if err != nil {
			return Record{}, err
		}
		r, err := parseRecord(b)
		if err == nil {
			return r, nil
		}
		last = err
		time.Sleep(time.Millisecond)
	}
	return Record{}, fmt.Errorf("%s: %w", f.path("record"), last)
}

// A Launch describes how to start a shim.
type Launch struct {
	// Program is the path of this program.
	Program string
	// Fork starts the process with these attributes, in a control group that is never killed.
	Fork func(attr *syscall.SysProcAttr, start func() error) error
}

// Start starts a shim in a folder of Create, and returns its record when the task runs. After an
// error no process is left, except if the context ended: then the caller must send the request again,
// or kill the group.
func (f Folder) Start(ctx context.Context, l Launch, spec *Spec) (Record, error) {
	spec.Protocol = Protocol
	b, err := json.Marshal(spec)
	if err != nil {
		return Record{}, fmt.Errorf("encode the spec: %w", err)
	}
	ready, err := f.launch(l, b)
	if err != nil {
		return Record{}, fmt.Errorf("start a shim: %w", err)
	}
	defer ready.Close()
	stop := context.AfterFunc(ctx, func() { _ = ready.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if _, err := io.ReadAll(ready); err != nil { // the pipe closes when the task runs or the shim ends
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return Record{}, fmt.Errorf("start a shim: %w", err)
	}
	r, err := f.Read()
	switch {
	case err != nil:
		return Record{}, err
	case r.Phase == Failed:
		return r, errors.New(r.Error)
	case r.Phase == Starting:
		output, _ := os.ReadFile(f.path("log"))
		return Record{}, fmt.Errorf("the shim ended before its task began: %.500s", output)
	}
	return r, nil
}

// launch starts the process, and a goroutine that reaps it.
func (f Folder) launch(l Launch, spec []byte) (ready *os.File, err error) {
	var files []*os.File // those of the shim
	defer func() {
		for _, file := range files {
			_ = file.Close()
		}
	}()
	open := func(name string, flags int) (*os.File, error) {
		file, err := os.OpenFile(f.path(name), flags|os.O_CREATE, 0o600)
		if err == nil {
			files = append(files, file)
		}
		return file, err
	}
	in, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	files = append(files, in)
	log, err := open("log", os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	lock, err := open("lock", os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	record, err := open("record", os.O_RDWR)
	if err != nil {
		return nil, err
	}
	ready, readyIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, readyIn)

	attr := &os.ProcAttr{
		Dir:   string(f),
		Env:   []string{},
		Files: []*os.File{in, log, log, lock, record, readyIn},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	var p *os.Process
	err = l.Fork(attr.Sys, func() (err error) {
		p, err = os.StartProcess(l.Program, []string{"nodedrain", Argument}, attr)
		return err
	})
	if err != nil {
		return nil, errors.Join(err, ready.Close())
	}
	id, err := process.Identify(p.Pid) // a child that is not reaped
	if err != nil {
		return nil, errors.Join(err, p.Kill(), ready.Close())
	}
	go process.Reap(id, func() { _, _ = p.Wait() })
	if err := out.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, errors.Join(err, p.Kill(), ready.Close())
	}
	if _, err := out.Write(spec); err != nil { // the shim has started nothing, because its spec is not complete
		return nil, errors.Join(fmt.Errorf("write the spec: %w", err), p.Kill(), ready.Close())
	}
	return ready, nil
}

// Locked reports whether a shim runs or is being started.
func (f Folder) Locked() (bool, error) {
	lock, err := os.Open(f.path("lock"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.Close()
	err = unix.Flock(int(lock.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// A process that is being started holds a copy of the file until its exec, so Close alone would
	// not release the lock.
	return false, unix.Flock(int(lock.Fd()), unix.LOCK_UN)
}

// Signal sends a signal to the task's first process.
func (f Folder) Signal(ctx context.Context, sig syscall.Signal) error {
	return f.request(ctx, request{Operation: opSignal, Signal: int(sig)})
}

// Stop requests the shim to send the signal, and to kill all processes after the grace. It returns when
// the signal was sent. The shim continues without its caller.
func (f Folder) Stop(ctx context.Context, sig syscall.Signal, grace time.Duration) error {
	return f.request(ctx, request{Operation: opStop, Signal: int(sig), Grace: grace})
}

// Kill requests the shim to kill all processes of the task.
func (f Folder) Kill(ctx context.Context) error { return f.request(ctx, request{Operation: opKill}) }

// request sends a request to the shim. A shim that does not answer within two seconds is an error.
func (f Folder) request(ctx context.Context, in request) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in.Protocol = Protocol
	if err := f.exchange(ctx, in); err != nil {
		return fmt.Errorf("ask the shim: %w", err)
	}
	return nil
}

func (f Folder) exchange(ctx context.Context, in request) error {
	// The path of a socket has at most 107 bytes. The path through an open folder is short.
	dir, err := os.Open(string(f))
	if err != nil {
		return err
	}
	defer dir.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(dir.Fd()))+"/socket")
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return err
	}
	var out response
	if err := readLine(conn, &out); err != nil {
		return err
	}
	if out.Error != "" {
		return errors.New(out.Error)
	}
	return nil
}
