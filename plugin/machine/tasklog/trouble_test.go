package tasklog_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// killedAt is the environment variable of a process that kills itself. Its value is the number of
// the operation, negative for the time after it.
const killedAt = "NODEDRAIN_TEST_KILLED_AT"

// No line is lost when the process is killed before or after any operation of its rotations. The
// process prints each line that it has written; all of them are in the log. (NP-T6)
func TestWriter_KilledAtEachStepOfARotation(t *testing.T) {
	t.Parallel()
	if at := os.Getenv(killedAt); at != "" {
		writeAndDie(t, at)
		return
	}
	kills := 0
	for at := 1; ; at++ {
		done := false
		for _, when := range []int{at, -at} {
			dir := t.TempDir()
			command := exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$")
			command.Env = []string{killedAt + "=" + strconv.Itoa(when), "DIR=" + dir}
			printed, err := command.Output()
			done = err == nil
			kills += btoi(!done)
			var acknowledged []string
			for _, line := range strings.Split(string(printed), "\n") {
				if strings.HasPrefix(line, "line ") {
					acknowledged = append(acknowledged, line)
				}
			}
			// The next life continues.
			w, err := tasklog.Open(openRoot(t, dir), "a", tasklog.Limits{MaxFiles: 3, MaxFileSize: 64})
			must.NoError(t, err)
			if !w.LineStart() {
				t.Fatal("a line is torn")
			}
			_, err = w.Append([]byte("next life\n"))
			must.NoError(t, err)
			must.NoError(t, w.Close())
			log := content(t, dir, "a")
			// Three files of 64 bytes hold the last eight lines at least.
			for _, line := range acknowledged[max(0, len(acknowledged)-8):] {
				must.StrContains(t, log, line+"\n", must.Sprintf("killed at %d", when))
			}
			must.True(t, strings.HasSuffix(log, "next life\n"))
			must.LessEq(t, 3, len(files(t, dir, "a")))
		}
		if done {
			break
		}
	}
	must.Greater(t, 20, kills)
	t.Logf("%d kills", kills)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// writeAndDie writes lines and prints each one that was written, until it kills itself.
func writeAndDie(t *testing.T, when string) {
	at, err := strconv.Atoi(when)
	must.NoError(t, err)
	operations := 0
	folder := tasklog.OnDisk(openRoot(t, os.Getenv("DIR")))
	die := func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} }
	folder.Before = func(string) error {
		if operations++; operations == at || operations == 1-at {
			die() // before operation at, or after operation -at, which is before the next one
		}
		return nil
	}
	w, err := tasklog.OpenIn(folder, "a", tasklog.Limits{MaxFiles: 3, MaxFileSize: 64})
	must.NoError(t, err)
	for i := range 24 {
		line := fmt.Sprintf("line %010d", i)
		_, err := w.Append([]byte(line + "\n"))
		must.NoError(t, err)
		fmt.Println(line)
	}
	must.NoError(t, w.Close())
}

// troubled is a log whose disk refuses operations.
type troubled struct {
	*tasklog.Log
	dir string

	mu     sync.Mutex
	refuse map[string]error
	hang   chan struct{} // writes wait until it is closed, or nil
	hangs  chan struct{} // has a value after a write has begun to wait
}

func newTroubled(t *testing.T, limits tasklog.Limits) *troubled {
	d := &troubled{dir: t.TempDir(), refuse: map[string]error{}, hangs: make(chan struct{}, 1)}
	folder := tasklog.OnDisk(openRoot(t, d.dir))
	folder.Before = func(operation string) error {
		d.mu.Lock()
		hang, err := d.hang, d.refuse[operation]
		d.mu.Unlock()
		if operation == "write" && hang != nil {
			select {
			case d.hangs <- struct{}{}:
			default: // the test does not wait for it
			}
			<-hang
		}
		return err
	}
	w, err := tasklog.OpenIn(folder, "a", limits)
	must.NoError(t, err)
	d.Log = tasklog.NewLog(w)
	return d
}

func (d *troubled) set(operation string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refuse[operation] = err
}

// Lines are dropped and counted while the disk is full, and return when there is room. (NP-T1) Only an
// error of the file itself rotates the log: a rotation makes no room and costs an old file. Bug: a log
// without quota rotated, and no test counted the files.
func TestLog_FullDisk(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO} {
		t.Run(full.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newTroubled(t, tasklog.Limits{})
				d.Put([]byte("before\n"))
				synctest.Wait()
				d.set("write", full)
				// Four times as much as the buffers hold, in pieces that end inside lines.
				var all bytes.Buffer
				for i := 0; all.Len() < 4*tasklog.BufferSize; i++ {
					fmt.Fprintf(&all, "line %06d of a task that prints a lot\n", i)
				}
				for text := all.Bytes(); len(text) > 0; {
					n := min(len(text), 10007)
					d.Put(text[:n])
					synctest.Wait() // the log tries to write the first piece, and its other buffer fills
					text = text[n:]
				}
				time.Sleep(time.Hour)
				lines, size := d.Dropped()
				must.Greater(t, 2*tasklog.BufferSize-tasklog.BufferSize/2, int(size))

				d.set("write", nil)
				time.Sleep(2 * tasklog.RetryAfter)
				d.Put([]byte("after\n"))
				must.NoError(t, d.Close(t.Context()))

				rotations := btoi(full == error(syscall.EIO))
				must.Len(t, 1+rotations, files(t, d.dir, "a"))
				got := strings.Split(strings.TrimSuffix(content(t, d.dir, "a"), "\n"), "\n")
				must.Eq(t, "before", got[0])
				must.Eq(t, "after", got[len(got)-1])
				kept := got[1 : len(got)-2]
				for i, line := range kept { // no hole before the dropped lines, and no torn line
					must.Eq(t, fmt.Sprintf("line %06d of a task that prints a lot", i), line)
				}
				must.Eq(t, fmt.Sprintf("nodedrain: %d lines (%d bytes) of this log were dropped: %v", lines, size, full), got[len(got)-2])
				must.Eq(t, strings.Count(all.String(), "\n"), len(kept)+int(lines))
			})
		})
	}
}

// A dropped line that has no end yet, and one whose beginning is in the log already.
func TestLog_DropsWholeLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		d.set("write", syscall.ENOSPC)
		d.Put([]byte("first\n"))
		synctest.Wait() // the log holds this line and tries to write it
		d.Put(bytes.Repeat([]byte("0123456789abcde\n"), tasklog.BufferSize/16-100))
		d.Put([]byte("the beginning of a line, "))
		d.Put([]byte(strings.Repeat("which goes on and on, ", 100)))
		d.Put([]byte("to its end\nand a second one\nand the first half of a third, "))
		time.Sleep(time.Hour)
		d.set("write", nil)
		time.Sleep(2 * tasklog.RetryAfter)
		d.Put([]byte("which goes on"))
		d.Put([]byte(" and ends\nlast\n"))
		must.NoError(t, d.Close(t.Context()))
		log := content(t, d.dir, "a")
		_, end, _ := strings.Cut(log, "the beginning of a line, ")
		must.Eq(t, "\nnodedrain: 3 lines (2282 bytes) of this log were dropped: no space left on device\nlast\n", end)
	})
}

// A task that prints faster than the disk writes does not wait, and the memory has a bound. (NP-T4)
func TestLog_SlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{MaxFileSize: 100 << 20})
		d.hang = make(chan struct{})
		line := bytes.Repeat([]byte("0123456789abcde\n"), 1024)
		start := time.Now()
		for range 6400 {
			d.Put(line) // 100 MiB
		}
		must.Zero(t, time.Since(start))
		_, dropped := d.Dropped()
		must.Greater(t, 100<<20-2*tasklog.BufferSize-1, int(dropped))
		close(d.hang)
		must.NoError(t, d.Close(t.Context()))
		must.StrContains(t, content(t, d.dir, "a"), "of this log were dropped: the disk is slow\n")
	})
}

// A log whose next file cannot be opened goes on in the old one, and rotates when it can. (NP-T3)
func TestLog_ReadOnlyFolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{MaxFiles: 2, MaxFileSize: 64})
		d.set("create", syscall.EROFS)
		for i := range 10 {
			d.Put(fmt.Appendf(nil, "line %014d\n", i))
			synctest.Wait()
		}
		must.Eq(t, 1, len(files(t, d.dir, "a")))
		must.Eq(t, 200, len(content(t, d.dir, "a")))
		d.set("create", nil)
		d.Put([]byte("line of the next file\n"))
		must.NoError(t, d.Close(t.Context()))
		got := files(t, d.dir, "a")
		must.Eq(t, 2, len(got))
		must.Eq(t, "1: line of the next file\n", got[1])
	})
}

// A file that cannot be deleted stays until the next rotation.
func TestLog_FileThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{MaxFiles: 2, MaxFileSize: 64})
		d.set("remove", syscall.EIO)
		for range 5 {
			d.Put([]byte(strings.Repeat("x", 63) + "\n"))
			synctest.Wait()
		}
		must.Eq(t, 5, len(files(t, d.dir, "a")))
		d.set("remove", nil)
		d.Put([]byte("next\n"))
		must.NoError(t, d.Close(t.Context()))
		must.Eq(t, 2, len(files(t, d.dir, "a")))
	})
}

// The end of a log is bounded, and states what it lost.
func TestLog_CloseWithAFullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		d.set("write", syscall.ENOSPC)
		d.Put([]byte("these bytes are lost\n"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err := d.Close(ctx)
		must.ErrorIs(t, err, syscall.ENOSPC)
		must.ErrorContains(t, err, "are lost")
		must.Eq(t, 3*time.Second, time.Since(start))
	})
}

// The last line is torn when the log closes: its beginning is in the buffer, its rest was dropped, and it
// has no end. The log states what is missing, and the next line of the next log begins a line. Bug: no
// test closed a log inside a dropped line.
func TestLog_CloseInsideADroppedLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		d.set("write", syscall.EDQUOT)
		d.Put([]byte("first\n"))
		synctest.Wait() // the log holds this line and tries to write it
		d.Put(bytes.Repeat([]byte("0123456789abcde\n"), tasklog.BufferSize/16-100))
		d.Put([]byte("the beginning of a line, "))
		d.Put([]byte(strings.Repeat("which goes on and on, ", 100)))
		time.Sleep(time.Hour)
		d.set("write", nil)
		must.NoError(t, d.Close(t.Context()))
		_, end, found := strings.Cut(content(t, d.dir, "a"), "the beginning of a line, ")
		must.True(t, found)
		must.Eq(t, "\nnodedrain: 1 lines (2200 bytes) of this log were dropped: disk quota exceeded\n", end)
		w, err := tasklog.Open(openRoot(t, d.dir), "a", tasklog.Limits{})
		must.NoError(t, err)
		must.True(t, w.LineStart())
		must.NoError(t, w.Close())
	})
}

// The disk takes a part of the last line and is full when the log closes. The error counts the rest.
func TestLog_CloseInsideAWrittenLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		d.Put([]byte("a line without an end, "))
		synctest.Wait()
		d.set("write", syscall.EDQUOT)
		d.Put([]byte("and its rest"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		err := d.Close(ctx)
		must.ErrorIs(t, err, syscall.EDQUOT)
		all, log := "a line without an end, and its rest", content(t, d.dir, "a")
		must.StrHasPrefix(t, log, all)
		must.ErrorContains(t, err, fmt.Sprintf("the last %d bytes are lost", len(all)-len(log)))
		must.Greater(t, len(log), len(all))
	})
}

func TestLog_CloseWhileAWriteHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newTroubled(t, tasklog.Limits{})
		d.hang = make(chan struct{})
		d.Put([]byte("a line\n"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		must.ErrorContains(t, d.Close(ctx), "the disk does not answer a write")
		close(d.hang)
	})
}
