package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/record"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
	"github.com/seed-f9cf0b39/nodedrain/plugin/mock"
	"github.com/seed-f9cf0b39/nodedrain/plugin/rawexec"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// The test binary is also the program that serves plugins and runs as a log keeper.
func TestMain(m *testing.M) {
	switch args := strings.Join(os.Args[1:], " "); {
	case args == "plugin mock":
		d, err := mock.New(os.Exit)
		if err != nil {
			os.Exit(1)
		}
		sdk.Serve(d)
		os.Exit(0)
	case args == "plugin raw_exec":
		sdk.Serve(rawexec.New(rawexec.Options{}))
		os.Exit(0)
	case strings.HasPrefix(args, "plugin toys "):
		sdk.ServeDevice(toyPlugin(os.Args[3:]))
		os.Exit(0)
	case strings.HasPrefix(args, "web "):
		_, _ = fmt.Fprintln(os.Stderr, serveWeb(os.Args[2], os.Args[3]))
		os.Exit(1)
	case strings.HasPrefix(args, "logkeeper "):
		os.Exit(keeper.Main(os.Args[2:], os.Stdout, os.Stderr))
	}
	freshmachine.Enter()
	m.Run()
}

// world is a node with test servers.
type world struct {
	*testing.T
	servers *scripted
	// api are the servers for the client: servers, or a type with more methods.
	api    Servers
	config *config.Config
	node   *Node
	end    context.CancelFunc
	ended  chan error
	// links is the folder of the links of putBehindLinks, or empty.
	links string
	// id is the allocation of newRawExec.
	id cluster.AllocID
}

func newWorld(t *testing.T, plugins map[string]config.Plugin) *world {
	t.Helper()
	run, err := os.MkdirTemp("", "n d") // all paths of a node have spaces
	must.NoError(t, err)
	w := &world{T: t, servers: &scripted{
		ttl: time.Minute, feed: make(chan client.Changes), reported: make(map[cluster.AllocID]cluster.AllocReport), changed: make(chan struct{}, 1),
	}}
	w.api = w.servers
	base := t.TempDir()
	must.NoError(t, os.Mkdir(filepath.Join(base, "disk"), 0o755))
	must.NoError(t, os.Symlink("disk", filepath.Join(base, "link"))) // the path of each data directory has a link
	w.config = &config.Config{
		Name: "n1", DataDir: filepath.Join(base, "link", "da ta"), RunDir: run, Plugins: plugins,
		Limits: config.Limits{MaxKillTimeout: time.Minute, DriverCalls: 8},
	}
	t.Cleanup(func() {
		left := ""
		if !t.Failed() && !t.Skipped() {
			left = unrecorded(w)
		}
		w.killPlugins()
		w.killKeepers()
		must.NoError(t, errors.Join(os.RemoveAll(run), os.RemoveAll(w.links)))
		must.EqOp(t, "", left, must.Sprint("processes without a record are left"))
	})
	return w
}

// keepers returns the log keepers of running tasks.
func (w *world) keepers() (pids []int) {
	w.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.NoError(w, err)
	for _, line := range lines {
		words, err := os.ReadFile(line) // a process may be gone
		if err != nil || !strings.Contains(string(words), "logkeeper") || !strings.Contains(string(words), w.config.DataDir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
		must.NoError(w, err)
		pids = append(pids, pid)
	}
	return pids
}

// killKeepers kills the log keepers of running tasks, because they continue to run without a
// client.
func (w *world) killKeepers() {
	w.Helper()
	for _, pid := range w.keepers() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func (w *world) begin() {
	w.Helper()
	var err error
	w.node, err = Open(w.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}, Servers: w.api})
	must.NoError(w, err)
	ctx, end := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	w.end, w.ended = end, ended
	go func() {
		ended <- w.node.Run(ctx)
		close(ended)
	}()
}

func (w *world) stop() {
	w.Helper()
	w.end()
	must.NoError(w, <-w.ended)
	must.NoError(w, w.node.Close())
}

// kept returns the plugins in the records.
func (w *world) kept() map[string]pluginRecord {
	store, err := record.OpenDisk(filepath.Join(w.config.DataDir, recordsDir))
	must.NoError(w, err)
	left, err := readRecords(store)
	must.NoError(w, err)
	return left.plugins
}

// killPlugins kills the plugin processes, because they continue to run without the client.
func (w *world) killPlugins() {
	for _, r := range w.kept() {
		if alive, _ := r.Process.Process.Alive(); alive {
			_ = syscall.Kill(r.Process.Process.PID, syscall.SIGKILL)
		}
	}
}

// await waits until a condition on the servers holds.
func (w *world) await(holds func(s *scripted) bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for {
		yes := false
		w.servers.set(func() { yes = holds(w.servers) })
		if yes {
			return
		}
		select {
		case <-w.servers.changed:
		case <-ctx.Done():
			w.servers.set(func() {
				for _, r := range w.servers.reported {
					for _, task := range r.TaskStates.Tasks {
						w.Logf("%s, %s: %+v", r.Alloc, r.ClientStatus, task)
					}
				}
				w.Fatal("waited; the servers received no more")
			})
		}
	}
}

// eventually waits until a condition on files holds.
func (w *world) eventually(condition string, holds func() bool) {
	w.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			w.Fatalf("waited until %s", condition)
		}
	}
}

// awaitMock waits until the node is registered with a healthy driver mock.
func (w *world) awaitMock() {
	w.Helper()
	w.await(func(s *scripted) bool {
		n := len(s.registered)
		return n > 0 && s.registered[n-1].Drivers["mock"] != nil && s.registered[n-1].Drivers["mock"].Healthy
	})
}

func (w *world) awaitStatus(alloc cluster.AllocID, status cluster.ClientStatus) {
	w.Helper()
	w.await(func(s *scripted) bool { return s.reported[alloc].ClientStatus == status })
}

// alloc is an allocation of one mock task.
func (w *world) alloc(id cluster.AllocID, taskConfig string) *cluster.Allocation {
	job := &cluster.Job{Namespace: "default", ID: "j", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: 1, RestartPolicy: &cluster.RestartPolicy{Interval: time.Minute, Mode: cluster.RestartFail},
		Tasks: []*cluster.Task{{Name: "t", Driver: "mock", KillTimeout: time.Second, Config: json.RawMessage(taskConfig)}},
	}}}
	return &cluster.Allocation{
		ID: id, Namespace: "default", Name: "j.g[0]", NodeID: w.node.ID(), JobID: "j", Job: job, TaskGroup: "g",
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, AllocModifyIndex: 1,
	}
}

// A node runs tasks through a plugin's process. The next client takes the task over, with the same
// process of the plugin. It destroys tasks without a record.
func TestNode_restart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	id := w.node.ID()
	w.awaitMock()
	must.True(t, w.servers.registered[0].ReportsDrivers)
	must.Eq(t, time.Minute, w.servers.registered[0].MaxKillTimeout)

	running, wrong := w.alloc("a.1", `{"stdout_string": "hello\n"}`), w.alloc("a2", `{"run_for": "1s", "color": "red"}`)
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{running, wrong}}
	w.awaitStatus("a.1", cluster.ClientRunning)
	w.awaitStatus("a2", cluster.ClientFailed)
	messages := ""
	w.servers.set(func() {
		for _, e := range w.servers.reported["a2"].TaskStates.Tasks[0].Events {
			messages += e.Message + "\n"
		}
		clear(w.servers.reported)
	})
	must.StrContains(t, messages, "color", must.Sprint("the wrong key is named"))
	w.stop()

	before := w.kept()["mock"]
	must.Eq(t, "mock", before.Driver)
	alive, err := before.Process.Process.Alive()
	must.NoError(t, err)
	must.True(t, alive, must.Sprint("the plugin outlives the client"))
	ghost := filepath.Join(w.config.DataDir, allocsDir, "ghost")
	must.NoError(t, os.MkdirAll(filepath.Join(ghost, "t", "local"), 0o700))
	must.NoError(t, os.MkdirAll(filepath.Join(ghost, "alloc", "logs"), 0o700))

	w.begin()
	must.Eq(t, id, w.node.ID())
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{running.Copy()}}
	w.awaitStatus("a.1", cluster.ClientRunning)
	must.Eq(t, before, w.kept()["mock"], must.Sprint("the process was taken over"))
	w.servers.set(func() {
		must.Eq(t, 0, w.servers.reported["a.1"].TaskStates.Tasks[0].Restarts)
	})
	w.awaitLog("a.1", "hello\n") // one start

	stopped := running.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 3
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{stopped}}
	w.awaitStatus("a.1", cluster.ClientComplete)
	w.eventually("the folder without a record is removed", func() bool {
		_, err := os.Stat(ghost)
		return errors.Is(err, os.ErrNotExist)
	})
	w.stop()
}

// Ids and names with slashes, dots and 256 bytes stay below the data directory. Their tasks run,
// are taken over, and end.
func TestNode_strangeNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	long := strings.Repeat("x", 256)
	var placed []*cluster.Allocation
	for id, task := range map[string]string{
		"../../a": "..", "a/b": "c/d", "a": "b/c/d", "...": ".", "a.b": "alloc", long: long, long + "/": "../" + long, "Ünï\n": "\t",
	} {
		a := w.alloc(cluster.AllocID(id), `{"stdout_string": "hello\n"}`)
		job := cluster.JobID("../" + long)
		a.JobID, a.Job.ID, a.Name = job, job, string(job)+".g[0]"
		a.Job.TaskGroups[0].Tasks[0].Name = task
		placed = append(placed, a)
	}
	// A name that the protocol of plugins cannot carry fails.
	wrong := w.alloc("wrong\xff", `{}`)
	wrong.Job.TaskGroups[0].Tasks[0].Name = "\xff"
	statuses := func(expected cluster.ClientStatus) {
		for _, a := range placed {
			w.awaitStatus(a.ID, expected)
		}
	}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: append(slices.Clone(placed), wrong)}
	statuses(cluster.ClientRunning)
	w.awaitStatus(wrong.ID, cluster.ClientFailed)
	beside, err := os.ReadDir(filepath.Dir(w.config.DataDir))
	must.NoError(t, err)
	must.SliceLen(t, 1, beside, must.Sprint("all is in the data directory"))
	folders, err := os.ReadDir(filepath.Join(w.config.DataDir, allocsDir))
	must.NoError(t, err)
	folders = slices.DeleteFunc(folders, func(f os.DirEntry) bool { return f.Name() == ".trash" })
	must.SliceLen(t, len(placed)+1, folders, must.Sprint(folders))
	w.stop()

	w.servers.set(func() { clear(w.servers.reported) })
	w.begin()
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: copies(placed)}
	statuses(cluster.ClientRunning)
	for i, a := range placed {
		w.servers.set(func() { must.Eq(t, 0, w.servers.reported[a.ID].TaskStates.Tasks[0].Restarts, must.Sprint(a.ID)) })
		stopped := a.Copy()
		stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 3
		placed[i] = stopped
	}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: placed}
	statuses(cluster.ClientComplete)
	w.stop()
}

// copies returns copies of the allocations, because the client owns the answers of the servers.
func copies(allocs []*cluster.Allocation) (copied []*cluster.Allocation) {
	for _, a := range allocs {
		copied = append(copied, a.Copy())
	}
	return copied
}

// The record of a running task is damaged. The next client destroys the task, and starts it again
// because the servers still place it on the node. It removes the damaged record.
func TestNode_damagedRecord(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]cluster.AllocID{"short": "a1", "long": cluster.AllocID("a1" + strings.Repeat("/x", 200))} {
		t.Run(name, func(t *testing.T) { testDamagedRecord(t, id) })
	}
}

func testDamagedRecord(t *testing.T, id cluster.AllocID) {
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	placed := w.alloc(id, `{"stdout_string": "hello\n"}`)
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{placed}}
	w.awaitStatus(id, cluster.ClientRunning)
	w.stop()
	mocks := func() []string {
		files, err := filepath.Glob(filepath.Join(w.config.DataDir, allocsDir, "a1*", "t", ".mock-*.json"))
		must.NoError(t, err)
		return files
	}
	before := mocks()
	must.SliceLen(t, 1, before)
	records := filepath.Join(w.config.DataDir, recordsDir)
	count := 0
	must.NoError(t, filepath.WalkDir(records, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(e.Name(), "a1") {
			return err
		}
		count++
		return os.Truncate(path, 10)
	}))
	must.Eq(t, 1, count)

	w.servers.set(func() { clear(w.servers.reported) })
	w.begin()
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{placed}}
	w.awaitStatus(id, cluster.ClientRunning)
	after := mocks()
	must.SliceLen(t, 1, after)
	must.NotEq(t, before, after, must.Sprint("another start"))
	w.stop()
	store, err := record.OpenDisk(records)
	must.NoError(t, err)
	_, damaged, err := store.All()
	must.NoError(t, err)
	must.SliceEmpty(t, damaged)
}

// If an allocation has no record, the client finds its process by its folder and kills it, also in a control
// group of an older client, which has no owner. It does not touch such a group with another name.
func TestNode_processWithoutARecord(t *testing.T) {
	t.Parallel()
	ghost, long := "ghost-"+rand.Text(), strings.Repeat("/x", 200)
	for name, c := range map[string]struct{ alloc, task string }{
		"short": {ghost, "t"}, "long allocation": {ghost + long, "t"}, "long task": {ghost, long}, "long names": {ghost + long, long},
	} {
		t.Run(name, func(t *testing.T) { testProcessWithoutARecord(t, cluster.AllocID(c.alloc), c.task) })
	}
}

// sleeper starts a process in the control group of a task. Without control groups it skips the test.
func (w *world) sleeper(alloc cluster.AllocID, task string) (*cgroup.Group, *exec.Cmd) {
	w.Helper()
	path, err := w.node.shell.tasks.createGroup(alloc, task, driver.Resources{}, nil)
	if err != nil || path == "" {
		w.stop()
		w.Skip("!!! NOT RUN: it creates control groups, and this user can make none")
	}
	group, err := w.node.shell.tasks.group(alloc, task)
	must.NoError(w, err)
	process := exec.Command("sleep", "600")
	process.SysProcAttr = &syscall.SysProcAttr{}
	must.NoError(w, group.Start(process.SysProcAttr, process.Start))
	w.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		must.NoError(w, group.Remove(context.Background()))
	})
	return group, process
}

func testProcessWithoutARecord(t *testing.T, ghost cluster.AllocID, task string) {
	w := newWorld(t, nil)
	w.begin()
	group, process := w.sleeper(ghost, task)
	other, _ := w.sleeper(ghost+"-of-another-client", task)
	must.NoError(t, errors.Join(group.SetOwner(""), other.SetOwner("")))
	alloc := w.alloc(ghost, `{}`)
	alloc.Job.TaskGroups[0].Tasks[0].Name = task
	must.NoError(t, w.node.shell.tasks.build(alloc))
	w.stop()
	w.begin()
	brief, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	must.NoError(t, group.Wait(brief))
	must.ErrorContains(t, process.Wait(), "killed")
	populated, err := other.Populated()
	must.NoError(t, err)
	must.True(t, populated)
	w.stop()
}

// A client that is older than the records does not start. It changes nothing.
func TestOpen_newerRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin()
	w.stop()
	store, err := record.OpenDisk(filepath.Join(w.config.DataDir, recordsDir))
	must.NoError(t, err)
	must.NoError(t, store.Put("alloc/a1", []byte(`{"version": 999, "value": "of another form"}`)))
	_, err = Open(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}, Servers: w.servers})
	must.ErrorIs(t, err, record.ErrNewer)
	must.ErrorContains(t, err, "record alloc a1 has version 999")
	all, _, err := store.All()
	must.NoError(t, err)
	must.SliceLen(t, 1, all)
	must.NoError(t, store.Delete("alloc/a1"))
}

// An effect on a start that no longer exists succeeds: the core repeats effects after a crash.
func TestTasks_cleanTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.begin()
	ref := client.TaskRef{Alloc: "none", Task: "t", ID: "none/t/1"}
	for range 2 {
		left, err := w.node.shell.tasks.clean(t.Context(), nil, ref)
		must.NoError(t, err)
		must.SliceEmpty(t, left)
		left, err = w.node.shell.tasks.kill(t.Context(), nil, ref)
		must.NoError(t, err)
		must.SliceEmpty(t, left)
	}
	must.NoError(t, w.node.shell.tasks.awaitEmpty(t.Context(), ref))
	w.stop()
}

// Different tasks have different control groups. Ids that released plugins accept keep their
// form.
func TestGroupName(t *testing.T) {
	t.Parallel()
	must.Eq(t, "0f7e-11.web", groupName("0f7e-11", "web"))
	names := map[string]string{}
	for _, alloc := range []cluster.AllocID{"a", "a.b", "a/b", "", ".", "A", cluster.AllocID(strings.Repeat("x", 256)), cluster.AllocID(strings.Repeat("x", 255))} {
		for _, task := range []string{"b", "b.c", "c", "", ".", "b/c", strings.Repeat("y", 256)} {
			name := groupName(alloc, task)
			must.LessEq(t, 200, len(name))
			must.NotEq(t, ".", name[:1])
			must.StrNotContains(t, name, "/")
			this := string(alloc) + "\x00" + task
			must.Eq(t, "", names[name], must.Sprintf("%q", this))
			names[name] = this
		}
	}
}
