package tasklog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Copy reads the pipe or FIFO into the log until the pipe ends, or until the context ends and the pipe
// is empty, or until drain has passed after the end of the context. The pipe must be open for reading
// in non-blocking mode, as [os.Pipe] and [os.OpenFile] open it. Copy is the only caller of [Log.Put]
// while it runs. It returns nil after the end of the pipe or the context, and otherwise what failed;
// [ErrNotDrained] means that data was left in the pipe.
//
// Bytes leave the pipe after they have reached the file. If the disk needs longer than a few
// milliseconds and the pipe fills, they leave it for the log's buffer, so that the task does not wait.
func (l *Log) Copy(ctx context.Context, pipe *os.File, drain time.Duration) error {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return fmt.Errorf("log %s: %w", l.writer.name, err)
	}
	var view [2]int // the pipe's data is copied into this one without leaving the first
	if err := syscall.Pipe2(view[:], syscall.O_CLOEXEC|syscall.O_NONBLOCK); err != nil {
		return fmt.Errorf("log %s: %w", l.writer.name, err)
	}
	defer func() { _ = syscall.Close(view[0]); _ = syscall.Close(view[1]) }()

	end := time.Time{}
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Now()) })
	defer stop()
	c := newCopier(l, raw, view)
	for {
		switch err := c.once(ctx.Err() != nil); {
		case err == nil:
		case errors.Is(err, io.EOF), errors.Is(err, errEmpty):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
			_ = pipe.SetReadDeadline(time.Time{})
		default:
			return fmt.Errorf("log %s: %w", l.writer.name, err)
		}
		if ctx.Err() == nil {
			continue
		}
		// The task's last lines are in the pipe. A process that goes on writing must not hold up the end.
		now := time.Now()
		if end.IsZero() {
			end = now.Add(drain)
		}
		if !now.Before(end) {
			return fmt.Errorf("log %s: %w", l.writer.name, ErrNotDrained)
		}
	}
}

// ErrNotDrained means that a pipe had data when the time to drain it was over. A process that left
// its task may still write to it.
var ErrNotDrained = errors.New("the pipe still had data at the end of the time to drain it")

// errEmpty means that a pipe is open and has no data.
var errEmpty = errors.New("the pipe is empty")

// copier copies piece by piece. A piece costs no memory, because a keeper has little.
type copier struct {
	log    *Log
	raw    syscall.RawConn
	view   [2]int
	buffer []byte
	timer  *time.Timer
	wait   time.Duration // zero while the disk is slow

	// see, count and take are callbacks for raw. The rest is their parameters and results.
	see    func(fd uintptr) bool
	count  func(fd uintptr)
	take   func(fd uintptr)
	last   bool // whether see returns at an empty pipe
	n      int  // bytes that were observed
	held   int  // bytes that the pipe holds
	failed error
}

func newCopier(l *Log, raw syscall.RawConn, view [2]int) *copier {
	c := &copier{log: l, raw: raw, view: view, buffer: make([]byte, pieceSize), timer: time.NewTimer(time.Hour), wait: patience}
	c.timer.Stop()
	c.see = func(fd uintptr) bool {
		c.n, c.failed = tee(int(fd), c.view[1], len(c.buffer))
		return c.last || !errors.Is(c.failed, syscall.EAGAIN)
	}
	c.count = func(fd uintptr) { c.held, c.failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }
	c.take = func(fd uintptr) { c.failed = readAll(int(fd), c.buffer[:c.n]) }
	return c
}

// once copies what the pipe has, at most a piece. It waits for data, unless last is set.
func (c *copier) once(last bool) error {
	c.last = last
	err := c.raw.Read(c.see)
	switch {
	case err != nil:
		return err
	case errors.Is(c.failed, syscall.EAGAIN):
		return errEmpty
	case c.failed != nil:
		return fmt.Errorf("read the pipe: %w", c.failed)
	case c.n == 0:
		return io.EOF
	}
	if err := readAll(c.view[0], c.buffer[:c.n]); err != nil {
		return err
	}
	if c.log.idle() {
		c.wait = patience // after Put the log is never idle at once
	}
	c.log.Put(c.buffer[:c.n])
	if err := c.await(); err != nil {
		return err
	}
	// The bytes that were observed leave the pipe.
	if err := c.raw.Control(c.take); err != nil {
		return err
	}
	return c.failed
}

// await waits until the piece has reached the file, or until the task would have to wait.
func (c *copier) await() error {
	for !c.log.await(c.timer, c.wait) {
		if c.wait == 0 {
			return nil
		}
		if err := errors.Join(c.raw.Control(c.count), c.failed); err != nil {
			return err
		}
		if c.held > pipeSize/2 {
			c.wait = 0 // until the log has caught up
			return nil
		}
	}
	return nil
}

// tee copies bytes from one pipe to another one, and leaves them in the first.
func tee(from, to, length int) (int, error) {
	for {
		n, err := unix.Tee(from, to, length, unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, syscall.EINTR) {
			return int(n), err
		}
	}
}

// readAll fills p from a pipe that has enough data.
func readAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Read(fd, p)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the pipe: %w", err)
		}
		if n == 0 {
			return fmt.Errorf("read the pipe: %w", io.ErrUnexpectedEOF)
		}
		p = p[n:]
	}
	return nil
}

// pieceSize is how much Copy takes at a time, in bytes.
const pieceSize = 16 << 10

// pipeSize is how much a pipe holds, in bytes, unless its owner changed it.
const pipeSize = 64 << 10
