package tasklog_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// Everything that a task prints is in the log when its pipe has ended.
func TestLog_Copy(t *testing.T) {
	t.Parallel()
	d := newTroubled(t, tasklog.Limits{MaxFileSize: 1 << 20, MaxFiles: 20})
	r, w, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	var expected bytes.Buffer
	printed := make(chan struct{})
	go func() {
		defer close(printed)
		defer w.Close()
		for i := range 20_000 {
			_, _ = io.WriteString(io.MultiWriter(w, &expected), strings.Repeat("x", i%200)+"\n")
		}
	}()
	must.NoError(t, d.Copy(t.Context(), r, time.Second))
	<-printed
	must.NoError(t, d.Close(t.Context()))
	if lines, _ := d.Dropped(); lines > 0 {
		t.Skipf("the disk is too slow for this test: %d lines were dropped", lines)
	}
	must.Eq(t, expected.String(), content(t, d.dir, "a"))
}

// The end of the context ends a copy of a pipe that stays open, after what the pipe has. (NP-T5)
func TestLog_CopyOfAPipeThatStaysOpen(t *testing.T) {
	t.Parallel()
	d := newTroubled(t, tasklog.Limits{})
	r, w, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = io.WriteString(w, "the last line\n")
	must.NoError(t, err)
	cancel()
	must.NoError(t, d.Copy(ctx, r, time.Minute))
	must.NoError(t, d.Close(t.Context()))
	must.Eq(t, "the last line\n", content(t, d.dir, "a"))
}

// A process that outlives its task and prints for ever does not hold up the end. (NP-T5)
func TestLog_CopyOfAPipeThatIsNeverEmpty(t *testing.T) {
	t.Parallel()
	d := newTroubled(t, tasklog.Limits{MaxFiles: 2})
	r, w, err := os.Pipe()
	must.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		line := bytes.Repeat([]byte("y\n"), 30_000)
		for err := error(nil); err == nil; _, err = w.Write(line) {
			cancel()
		}
	}()
	err = d.Copy(ctx, r, 50*time.Millisecond)
	if err != nil {
		must.ErrorIs(t, err, tasklog.ErrNotDrained)
	}
	must.NoError(t, r.Close())
	<-ended
	must.NoError(t, d.Close(t.Context()))
}

// Bytes stay in the pipe until they have reached the file, so that the next life of a killed process
// finds them there. When the disk hangs they leave it, so that the task does not wait.
func TestLog_CopyTakesWhatIsWritten(t *testing.T) {
	t.Parallel()
	d := newTroubled(t, tasklog.Limits{})
	d.hang = make(chan struct{})
	r, w, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	copied := make(chan error, 1)
	go func() { copied <- d.Copy(t.Context(), r, time.Second) }()
	// More than the pipe holds: these writes return although no write to the disk does. The first piece is
	// on its way to the disk before the others come, so the log's other buffer holds all of them.
	line := strings.Repeat("x", 1023) + "\n"
	_, err = io.WriteString(w, strings.Repeat(line, 16))
	must.NoError(t, err)
	<-d.hangs
	for range 62 {
		_, err = io.WriteString(w, line)
		must.NoError(t, err)
	}
	close(d.hang)
	must.NoError(t, w.Close())
	must.NoError(t, <-copied)
	must.NoError(t, d.Close(t.Context()))
	must.Eq(t, strings.Repeat(line, 78), content(t, d.dir, "a"))
}

// inPipe returns how many bytes a pipe holds.
func inPipe(t *testing.T, f *os.File) int {
	t.Helper()
	n := 0
	raw, err := f.SyscallConn()
	must.NoError(t, err)
	var failed error
	must.NoError(t, raw.Control(func(fd uintptr) { n, failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
	must.NoError(t, failed)
	return n
}

// While a write runs, its bytes are still in the pipe.
func TestLog_CopyLeavesBytesInThePipeDuringTheWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := tasklog.OnDisk(openRoot(t, dir))
	r, w, err := os.Pipe()
	must.NoError(t, err)
	defer r.Close()
	held := make(chan int, 1)
	folder.Before = func(operation string) error {
		if operation == "write" {
			held <- inPipe(t, r)
		}
		return nil
	}
	writer, err := tasklog.OpenIn(folder, "a", tasklog.Limits{})
	must.NoError(t, err)
	l := tasklog.NewLog(writer)
	_, err = io.WriteString(w, "a line\n")
	must.NoError(t, err)
	must.NoError(t, w.Close())
	must.NoError(t, l.Copy(t.Context(), r, time.Second))
	must.Eq(t, len("a line\n"), <-held)
	must.NoError(t, l.Close(t.Context()))
	must.Eq(t, "a line\n", content(t, dir, "a"))
}

// After a time in which the disk was slow, bytes again stay in the pipe until they have reached the file. Bug:
// the copy never waited for the disk again, so the death of its process lost lines. (NP-T6)
func TestLog_CopyWaitsAgainAfterASlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		r, w, err := os.Pipe()
		must.NoError(t, err)
		defer r.Close()
		defer w.Close()
		once, end, err := d.CopyPieces(r)
		must.NoError(t, err)
		defer end()
		for range 3 {
			release := d.hold()
			_, err = io.WriteString(w, strings.Repeat(strings.Repeat("x", 1023)+"\n", 48))
			must.NoError(t, err)
			for range 3 {
				must.NoError(t, once()) // the pipe is more than half full, so its bytes leave it
			}
			must.Zero(t, inPipe(t, r))
			release()
			synctest.Wait() // the log has caught up

			release = d.hold()
			_, err = io.WriteString(w, "a line\n")
			must.NoError(t, err)
			copied := make(chan error, 1)
			go func() { copied <- once() }()
			time.Sleep(time.Minute)
			must.Eq(t, len("a line\n"), inPipe(t, r))
			release()
			must.NoError(t, <-copied)
			must.Zero(t, inPipe(t, r))
		}
		must.NoError(t, d.Close(t.Context()))
		lines, _ := d.Dropped()
		must.Zero(t, lines)
	})
}

// hold makes writes to the disk wait until the function that it returns is called.
func (d *troubled) hold() (release func()) {
	hang := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hang = hang
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hang = nil
		close(hang)
	}
}
