package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

// The wait before a stream is opened again grows with interruptions in a row only. Bug: no test had a stream that was
// open for long between two of them.
func TestKeepOpen(t *testing.T) {
	t.Parallel()
	const s, m = time.Second, time.Minute
	for name, c := range map[string]struct {
		open  []time.Duration // how long each stream is open
		waits []time.Duration // after each of them
	}{
		"at once":           {[]time.Duration{0, 0, 0, 0, 0, 0, 0}, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 2 * m, 2 * m}},
		"after short times": {[]time.Duration{m, m, 2 * m, m}, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s}},
		"each hour":         {[]time.Duration{time.Hour, time.Hour, time.Hour, time.Hour}, []time.Duration{5 * s, 5 * s, 5 * s, 5 * s}},
		"a long one":        {[]time.Duration{0, 0, 0, 0, 0, 0, time.Hour, 0, 0}, []time.Duration{5 * s, 10 * s, 20 * s, 40 * s, 80 * s, 2 * m, 5 * s, 10 * s, 20 * s}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				opened, closed := 0, time.Now()
				var waits []time.Duration
				keepOpen(ctx, func() error {
					if opened > 0 {
						must.EqOp(t, waits[opened-1], time.Since(closed))
					}
					if opened == len(c.open) {
						end()
						return nil
					}
					time.Sleep(c.open[opened])
					opened, closed = opened+1, time.Now()
					return io.EOF
				}, func(err error, retryIn time.Duration) {
					must.ErrorIs(t, err, io.EOF)
					waits = append(waits, retryIn)
				})
				must.Eq(t, c.waits, waits)
			})
		})
	}
}

// destroyed is a driver whose DestroyTask and InspectTask have given answers.
type destroyed struct {
	driver.Driver
	hostCgroup bool
	destroy    error
	status     driver.Status
	inspect    error
}

func (d *destroyed) Capabilities() driver.Capabilities {
	return driver.Capabilities{HostCgroup: d.hostCgroup}
}
func (d *destroyed) Destroy(context.Context, driver.TaskID, bool) error { return d.destroy }
func (d *destroyed) Inspect(context.Context, driver.TaskID) (driver.Status, error) {
	return d.status, d.inspect
}

// A DestroyTask that fails counts as done only if the client itself can remove what is left: the driver keeps its
// tasks in the control group of the client, and the task does not run. Bug: no test had a driver that owns its tasks.
func TestTasks_destroy(t *testing.T) {
	t.Parallel()
	classes := map[driver.Class]bool{ // whether the rest decides
		driver.Fatal: true, driver.Recoverable: true, driver.Unsupported: true,
		driver.Deadline: false, driver.Gone: false,
	}
	ts := &tasks{logger: quiet()}
	run := func(d *destroyed) error {
		return ts.destroy(t.Context(), d, client.TaskRef{ID: "1", Driver: "d"})
	}
	for _, hostCgroup := range []bool{true, false} {
		for state, done := range map[driver.TaskState]bool{driver.TaskUnknown: true, driver.TaskExited: true, driver.TaskRunning: false} {
			for _, failed := range []error{nil, &driver.Error{Class: driver.NotFound}, errors.New("no answer")} {
				d := &destroyed{hostCgroup: hostCgroup, status: driver.Status{State: state}, inspect: failed}
				must.NoError(t, run(d))
				d.destroy = &driver.Error{Class: driver.NotFound}
				must.NoError(t, run(d))
				for class, rest := range classes {
					d.destroy = &driver.Error{Class: class, Err: errors.New("the network is busy")}
					want := rest && hostCgroup && (done || failed != nil)
					must.EqOp(t, want, run(d) == nil, must.Sprint(class, " ", hostCgroup, " ", state, " ", failed))
				}
			}
		}
	}
}

// recovering is a driver that takes over each task.
type recovering struct{ driver.Driver }

func (recovering) Capabilities() driver.Capabilities                           { return driver.Capabilities{} }
func (recovering) Recover(context.Context, driver.TaskID, driver.Handle) error { return nil }

// A task that is taken over gets the log keeper that its start would get, with the same limits. Bug: no test started
// a keeper for a task with limits that is taken over.
func TestTasks_recoverKeepsTheLimitsOfLogs(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]*cluster.LogConfig{
		"default": nil, "files": {MaxFiles: 3, MaxFileSizeMB: 10}, "size": {MaxFiles: 10, MaxFileSizeMB: 3}, "both": {MaxFiles: 2, MaxFileSizeMB: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			dirs, err := allocdir.Open(filepath.Join(dir, "allocs"))
			must.NoError(t, err)
			t.Cleanup(func() { must.NoError(t, dirs.Close()) })
			// A keeper that writes its arguments and fails.
			arguments := filepath.Join(dir, "arguments")
			command := keeper.Command{Path: "/bin/sh", Args: []string{"-c", `echo "$@" >> ` + arguments, "keeper"}}
			ts := &tasks{node: func() *cluster.Node { return &cluster.Node{ID: "n"} }, dirs: dirs, logs: newLogs(t.Context(), command, quiet()), logger: quiet()}
			task := &cluster.Task{Name: "web", Driver: "d", LogConfig: limits}
			alloc := &cluster.Allocation{ID: "a", TaskGroup: "g", JobID: "j", Job: &cluster.Job{ID: "j", TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{
				{Name: "other", LogConfig: &cluster.LogConfig{MaxFiles: 77, MaxFileSizeMB: 77}}, task,
			}}}}}
			must.NoError(t, ts.build(alloc))
			place := ts.logOf("a", "web")
			_, err = ts.logs.begin(t.Context(), recovering{}, false, place, task.Logs())
			must.Error(t, err)
			must.NoError(t, unix.Mkfifo(ts.logs.config(place, task.Logs()).FIFO("stdout"), 0o600))
			must.NoError(t, ts.recover(t.Context(), recovering{}, client.TaskRef{Alloc: "a", Task: "web", ID: "a/web/1", Driver: "d"}, alloc, nil))
			written, err := os.ReadFile(arguments)
			must.NoError(t, err)
			lines := strings.Split(strings.TrimSpace(string(written)), "\n")
			must.SliceLen(t, 2, lines)
			must.EqOp(t, lines[0], lines[1])
			if limits != nil {
				must.StrContains(t, lines[1], fmt.Sprintf("-max-files %d -max-file-size %d", limits.MaxFiles, limits.MaxFileSizeMB<<20))
			}
		})
	}
}

// The record of a plugin has the type and the name that it has reported last, and keeps all else. Bug: no test had a
// file whose type changes.
func TestPlugins_identifyReplacesTheType(t *testing.T) {
	t.Parallel()
	process := host.Record{Socket: "/s"}
	p := &pluginProgram{record: pluginRecord{Process: process}}
	steps := []host.Info{
		{Type: host.Device, Name: "x"}, {Type: host.Driver, Name: "y"}, {Type: host.Driver, Name: "z"},
		{Type: host.Device, Name: "z"}, {Type: host.Device, Name: "y"},
	}
	for _, info := range slices.Concat(steps, steps) {
		want := pluginRecord{Driver: info.Name, Process: process}
		if info.Type == host.Device {
			want = pluginRecord{Device: info.Name, Process: process}
		}
		must.Eq(t, want, p.identify(info))
		must.Eq(t, want, p.record)
	}
}
