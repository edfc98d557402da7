package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// newRawExec returns a node that runs one task of raw_exec: a shell with this script. change
// changes its group. The test must call stopRawExec.
func newRawExec(t *testing.T, script string, change ...func(*cluster.TaskGroup)) (*world, *operators, nodeapi.Task) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it creates control groups")
	}
	w := newWorld(t, map[string]config.Plugin{"raw_exec": {Name: "raw_exec", Enabled: true}})
	w.begin()
	// The names of control groups are those of the whole machine.
	w.id = cluster.AllocID(uuid.NewString())
	a := w.alloc(w.id, "")
	command, err := json.Marshal(map[string]any{"command": "/bin/sh", "args": []string{"-c", script}})
	must.NoError(t, err)
	task := a.Job.TaskGroups[0].Tasks[0]
	ready := filepath.Join(t.TempDir(), "ready")
	task.Driver, task.Config, task.Env = "raw_exec", command, map[string]string{"COLOR": "red", "READY": ready}
	for _, c := range change {
		c(a.Job.TaskGroups[0])
	}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{a}}
	w.await(func(s *scripted) bool {
		return s.reported[w.id].ClientStatus != "" && s.reported[w.id].ClientStatus != cluster.ClientPending
	})
	w.servers.set(func() {
		r := w.servers.reported[w.id]
		must.EqOp(t, cluster.ClientRunning, r.ClientStatus, must.Sprintf("%+v", r.TaskStates.Tasks))
	})
	o := w.node.operators()
	tasks, err := o.List(t.Context(), string(w.id))
	must.NoError(t, err)
	must.SliceLen(t, 1, tasks)
	must.True(t, tasks[0].Running)
	if strings.Contains(script, "$READY") { // the task runs before it has set its traps
		w.eventually("the task is ready", func() bool {
			_, err := os.Stat(ready)
			return err == nil
		})
	}
	return w, o, tasks[0]
}

// stopAlloc stops an allocation, as a drain does, and returns when its end is reported.
func (w *world) stopAlloc(a *cluster.Allocation) {
	w.Helper()
	stopped := a.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 2
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{stopped}}
	w.await(func(s *scripted) bool { return s.reported[a.ID].ClientStatus != cluster.ClientRunning })
}

// stopRawExec ends the task and the node.
func (w *world) stopRawExec() {
	w.Helper()
	w.stopAlloc(w.alloc(w.id, ""))
	w.stop()
}

// output collects the output of a command, and wakes waiters.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer  // guarded by mu
	lines chan struct{} // gets a value for each write
}

func newOutput() *output { return &output{lines: make(chan struct{}, 1<<16)} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	select {
	case o.lines <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// awaitText waits until the command has printed something.
func (o *output) awaitText(t *testing.T, part string) {
	t.Helper()
	for !strings.Contains(o.String(), part) {
		select {
		case <-o.lines:
		case <-t.Context().Done():
			t.Fatalf("the command has printed %q", o)
		}
	}
}

// A command is killed when its caller closes the connection. One that cannot start is answered at once.
func TestExec_callerGoes(t *testing.T) {
	w, o, task := newRawExec(t, "sleep 600")
	defer w.stopRawExec()
	_, err := o.Exec(t.Context(), task, []string{"no-such-program"}, driver.ExecStreams{})
	must.ErrorContains(t, err, "no-such-program")
	// A command that did not exist was answered after the delay for tasks that have ended.
	must.True(t, o.runs(t.Context(), refOf(task)))
	for _, tty := range []bool{false, true} {
		ctx, goes := context.WithCancelCause(t.Context())
		stdout := newOutput()
		ended := make(chan error, 1)
		go func() {
			_, err := o.Exec(ctx, task, []string{"/bin/sh", "-c", "trap '' HUP TERM INT; echo $$.; while :; do sleep 0.1; done"}, driver.ExecStreams{Stdout: stdout, TTY: tty})
			ended <- err
		}()
		stdout.awaitText(t, ".")
		pid, err := strconv.Atoi(strings.TrimSpace(strings.Split(stdout.String(), ".")[0]))
		must.NoError(t, err)
		goes(errors.New("gone"))
		must.Error(t, <-ended)
		for deadline := t.Context(); syscall.Kill(pid, 0) == nil; {
			must.NoError(t, deadline.Err())
			_, err := o.List(t.Context(), string(w.id))
			must.NoError(t, err)
		}
	}
}

// The stop of an allocation does not wait for a command that ignores signals.
func TestExec_taskStops(t *testing.T) {
	w, o, task := newRawExec(t, "exec sleep 600")
	defer w.stop()
	stdout := newOutput()
	ended := make(chan error, 1)
	go func() {
		_, err := o.Exec(t.Context(), task, []string{"/bin/sh", "-c", "trap '' HUP TERM INT; echo ready; while :; do sleep 0.1; done"}, driver.ExecStreams{Stdout: stdout})
		ended <- err
	}()
	stdout.awaitText(t, "ready")
	a := w.alloc(w.id, "")
	w.stopAlloc(a)
	must.ErrorIs(t, <-ended, nodeapi.ErrTaskEnded)
	must.False(t, o.runs(t.Context(), refOf(task)))
	_, err := o.Exec(t.Context(), task, []string{"ls"}, driver.ExecStreams{})
	must.Error(t, err)
	must.ErrorIs(t, o.Signal(t.Context(), task, "SIGHUP"), nodeapi.ErrState)
	must.ErrorIs(t, o.Restart(t.Context(), string(w.id), "", false), nodeapi.ErrState)
	must.ErrorIs(t, o.Restart(t.Context(), "none", "", false), nodeapi.ErrUnknown)
}

// A signal reaches the task. A restart ends the present start of the task and starts a new one.
func TestSignalAndRestart(t *testing.T) {
	w, o, task := newRawExec(t, "trap 'echo hup > hup' HUP; echo ready > ready; while :; do sleep 0.05; done")
	defer w.stopRawExec()
	file := func(name string) string { return filepath.Join(w.config.DataDir, allocsDir, string(w.id), "t", name) }
	await := func(name string) {
		t.Helper()
		for {
			if _, err := os.Stat(file(name)); err == nil {
				return
			}
			_, err := o.List(t.Context(), string(w.id))
			must.NoError(t, err)
		}
	}
	await("ready")
	must.NoError(t, o.Signal(t.Context(), task, "SIGHUP"))
	await("hup")
	must.Error(t, o.Signal(t.Context(), task, "SIGNONE"))
	must.NoError(t, os.Remove(file("ready")))
	must.NoError(t, o.Restart(t.Context(), string(w.id), "t", false))
	await("ready")
	tasks, err := o.List(t.Context(), string(w.id))
	must.NoError(t, err)
	must.NotEqOp(t, task.ID, tasks[0].ID)
	w.await(func(s *scripted) bool {
		states := s.reported[w.id].TaskStates
		return states != nil && states.Tasks[0].State == cluster.TaskRunning && states.Tasks[0].Restarts == 1
	})
}
