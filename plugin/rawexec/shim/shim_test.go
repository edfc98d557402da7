package shim

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"github.com/shoenig/test/wait"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/process"
)

// A record keeps its size, so that a full disk cannot refuse the last one.
func TestRecord_size(t *testing.T) {
	t.Parallel()
	file, err := os.Create(filepath.Join(t.TempDir(), "record"))
	must.NoError(t, err)
	defer file.Close()
	r := Record{Protocol: 1, TaskID: strings.Repeat("a/b", 300), Phase: Starting}
	must.NoError(t, r.write(file))
	r.Phase, r.Exit, r.Task = Exited, &Exit{Code: 137, Signal: 9, OOMKilled: true}, process.Identity{Boot: "b", PID: 3, Start: 4}
	must.NoError(t, r.write(file))
	b, err := os.ReadFile(file.Name())
	must.NoError(t, err)
	must.Len(t, recordSize, b)
	got, err := parseRecord(b)
	must.NoError(t, err)
	must.Eq(t, r, got)
	r.TaskID = strings.Repeat("x", recordSize)
	must.ErrorContains(t, r.write(file), "at most 4095 fit")
}

func TestExitOf(t *testing.T) {
	t.Parallel()
	must.Eq(t, &Exit{Code: 3}, exitOf(syscall.WaitStatus(3<<8)))
	must.Eq(t, &Exit{Code: 137, Signal: 9}, exitOf(syscall.WaitStatus(9)))
}

// Requests of another protocol and unknown ones are refused.
func TestDo_refuses(t *testing.T) {
	t.Parallel()
	s := &shim{ended: true}
	must.ErrorContains(t, s.do(request{Protocol: 2, Operation: opKill}), "protocol 2")
	must.ErrorContains(t, s.do(request{Protocol: 1, Operation: "sing"}), "unknown operation")
	must.ErrorContains(t, s.do(request{Protocol: 1, Operation: opSignal}), "signal 0")
	must.NoError(t, s.do(request{Protocol: 1, Operation: opSignal, Signal: 15}))
	var in request
	must.ErrorContains(t, readLine(strings.NewReader("{}"), &in), "read a line")
	must.ErrorContains(t, readLine(strings.NewReader(strings.Repeat("x", 2*maxLine)+"\n"), &in), "read a line")
	must.ErrorContains(t, readLine(strings.NewReader("x\n"), &in), "decode")
}

// A shim does not end during a request. Regression: a driver whose SIGKILL ended the task got no
// answer, and reported that the signal had failed.
func TestServe_holdsTheEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	must.NoError(t, err)
	s := &shim{ended: true, log: slog.New(slog.DiscardHandler)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.serve(listener)
	}()
	conn, err := net.Dial("unix", path)
	must.NoError(t, err)
	defer conn.Close()
	held := func() bool {
		free := s.answering.TryLock()
		if free {
			s.answering.Unlock()
		}
		return !free
	}
	must.Wait(t, wait.InitialSuccess(wait.BoolFunc(held), wait.Timeout(time.Minute), wait.Gap(time.Millisecond)))
	_, err = conn.Write([]byte(`{"protocol":1,"operation":"signal","signal":9}` + "\n"))
	must.NoError(t, err)
	s.answering.Lock() // as the end of the shim does
	var out response
	must.NoError(t, readLine(conn, &out))
	must.Eq(t, response{Protocol: 1}, out)
	s.answering.Unlock()
	must.NoError(t, listener.Close())
	<-served
}

// The folder of all shims must be the driver's own.
func TestFolder_create(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "shims")
	f := FolderOf(base, "a/../b")
	must.Eq(t, base, filepath.Dir(string(f)))
	must.NoError(t, f.Create(&Spec{TaskID: "a/../b"}))
	must.ErrorIs(t, f.Create(&Spec{TaskID: "a/../b"}), ErrUsed)
	locked, err := f.Locked()
	must.NoError(t, err)
	must.False(t, locked)
	must.NoError(t, f.Remove())
	must.NoError(t, os.Chmod(base, 0o755))
	must.ErrorContains(t, f.Create(&Spec{}), "mode 0700")
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`{"protocol":1,"phase":"exited","exit":{"code":1}}`))
	f.Add([]byte(`{"protocol":1,"phase":"ending"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseRecord(b)
		if err == nil && (r.Phase == Exited || r.Phase == Ending) && r.Exit == nil {
			t.Fatal("a result without an exit")
		}
	})
}
