package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
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
	"github.com/seed-f9cf0b39/nodedrain/client/datacopy"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/host"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

// A stream of data is cut when nothing arrives for a time, and not when all of it takes as long. Bug: no test had a
// copy that takes longer.
func TestData_stallCountsFromTheLastProgress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pauses []time.Duration // before each part
		want   error
	}{
		"slow":                {[]time.Duration{0, 20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second}, nil},
		"steady":              {[]time.Duration{10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second, 10 * time.Second}, nil},
		"nothing at first":    {[]time.Duration{30 * time.Second, 0, 0, 0, 0}, errDataStalled},
		"nothing in between":  {[]time.Duration{20 * time.Second, 20 * time.Second, 30 * time.Second, 0, 0}, errDataStalled},
		"nothing at the end":  {[]time.Duration{0, 0, 0, 0, 30 * time.Second}, errDataStalled},
		"slow, then a pause":  {[]time.Duration{20 * time.Second, 20 * time.Second, 20 * time.Second, 20 * time.Second, 30 * time.Second}, errDataStalled},
		"a pause, then quick": {[]time.Duration{24 * time.Second, 0, 0, 0, 0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, into := memory(t), memory(t)
			content := make([]byte, 4*256<<10)
			_, _ = rand.New(rand.NewSource(1)).Read(content)
			must.NoError(t, from.WriteFile("a", content, 0o600))
			var all bytes.Buffer
			must.NoError(t, datacopy.Send(t.Context(), &all, []datacopy.Source{{Name: "alloc/data", Root: from}}, datacopy.Position{}))
			synctest.Test(t, func(t *testing.T) {
				r, err := datacopy.NewReceiver(datacopy.Options{Into: into, Folders: []string{"alloc/data"}, MaxBytes: 100 << 20, Reserve: 1})
				must.NoError(t, err)
				out, in := io.Pipe()
				written := make(chan struct{})
				go func() {
					defer close(written)
					for _, pause := range c.pauses {
						time.Sleep(pause)
						if _, err := in.Write(all.Next(256<<10 + 8)); err != nil {
							return
						}
					}
					_ = in.CloseWithError(io.EOF)
				}()
				err = new(data).receive(&dataCopy{ctx: t.Context(), receiver: r}, out, "a", func(client.DataProgress) {})
				must.ErrorIs(t, err, c.want)
				must.EqOp(t, c.want == nil, err == nil)
				_ = out.Close()
				<-written
				must.NoError(t, r.Close())
			})
		})
	}
}

// memory opens a new folder, in memory where the machine has such a folder: each copy syncs its file system.
func memory(t *testing.T) *os.Root {
	t.Helper()
	path, err := os.MkdirTemp("/dev/shm", "node-test-")
	if err != nil {
		path = t.TempDir()
	}
	t.Cleanup(func() { must.NoError(t, os.RemoveAll(path)) })
	root, err := os.OpenRoot(path)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, root.Close()) })
	return root
}

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
