package shim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// logs are the task's standard streams.
type logs struct {
	log     *slog.Logger
	child   []int // files 0, 1 and 2 of the task
	rotated []rotated
	copying sync.WaitGroup
	cancel  context.CancelFunc // ends the copies after their drain
}

// rotated is a stream that the shim writes.
type rotated struct {
	log  *tasklog.Log
	pipe *os.File // what the task writes
}

// openLogs opens the standard streams. It uses plain descriptors, because os.File would make them
// non-blocking for the task.
func openLogs(log *slog.Logger, spec *Spec) (*logs, error) {
	l := &logs{log: log}
	null, err := unix.Open("/dev/null", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open stdin: %w", err)
	}
	l.child = append(l.child, null)
	for _, stream := range []struct {
		name string
		to   Log
	}{{"stdout", spec.Stdout}, {"stderr", spec.Stderr}} {
		fd, err := l.open(stream.to)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", stream.name, err)
		}
		l.child = append(l.child, fd)
	}
	return l, nil
}

func (l *logs) open(to Log) (int, error) {
	if to.Rotate {
		return l.rotate(to)
	}
	path := to.Path
	if path == "" {
		path = os.DevNull
	}
	flags := unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == fs.ModeNamedPipe {
		// Opened for reading and writing, the FIFO needs no reader, and the task gets no SIGPIPE
		// while the reader restarts.
		flags = unix.O_RDWR
	}
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NOCTTY, 0o600)
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// rotate opens a pipe to rotated files.
func (l *logs) rotate(to Log) (int, error) {
	dir, err := os.OpenRoot(filepath.Dir(to.Path))
	if err != nil {
		return 0, err
	}
	w, err := tasklog.Open(dir, filepath.Base(to.Path), tasklog.Limits{MaxFiles: to.MaxFiles, MaxFileSize: to.MaxFileSize})
	if err != nil {
		return 0, errors.Join(err, dir.Close())
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, errors.Join(err, w.Close(), dir.Close())
	}
	if err := unix.SetNonblock(pipe[0], true); err != nil {
		return 0, errors.Join(err, w.Close(), dir.Close())
	}
	l.rotated = append(l.rotated, rotated{log: tasklog.NewLog(w), pipe: os.NewFile(uintptr(pipe[0]), to.Path)})
	return pipe[1], nil
}

// files returns the files of the task.
func (l *logs) files() []uintptr {
	return []uintptr{uintptr(l.child[0]), uintptr(l.child[1]), uintptr(l.child[2])}
}

// started closes the task's files in this process, so that a pipe ends with its last writer.
func (l *logs) started() {
	for _, fd := range l.child {
		_ = unix.Close(fd)
	}
}

// begin starts goroutines that copy the rotated streams. They end with the streams, or with finish.
func (l *logs) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for _, r := range l.rotated {
		l.copying.Go(func() {
			if err := r.log.Copy(ctx, r.pipe, drain); err != nil {
				l.log.Error("a log is not complete", "error", err)
			}
		})
	}
}

// finish waits until the output of the task is in the files. It waits at most atMost for each of
// two steps: reading the pipes, and writing the buffers.
func (l *logs) finish(atMost time.Duration) {
	l.cancel()
	l.copying.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), atMost)
	defer cancel()
	for _, r := range l.rotated {
		if err := r.log.Close(ctx); err != nil {
			l.log.Error("a log is not complete", "error", err)
		}
	}
}
