// Package frozen stops processes in tests.
package frozen

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Stop sends SIGSTOP to a process and returns when all its threads have stopped. The signal alone is
// not enough: a thread on another processor runs for some time after kill(2) has returned.
func Stop(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatalf("stopping process %d: %v", pid, err)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		stopped, err := allStopped(pid)
		if err != nil {
			t.Fatalf("stopping process %d: %v", pid, err)
		}
		if stopped {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("process %d does not stop", pid)
		}
	}
}

// allStopped reports whether all threads of a process are stopped.
func allStopped(pid int) (bool, error) {
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "stat"))
	if err != nil || len(files) == 0 {
		return false, errors.Join(err, errors.New("it has ended"))
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return false, err
		}
		if _, after, _ := bytes.Cut(line[bytes.LastIndexByte(line, ')'):], []byte(") ")); !bytes.HasPrefix(after, []byte("T")) {
			return false, nil
		}
	}
	return true, nil
}
