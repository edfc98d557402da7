package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// figureNode: the costs of a real client. The server runs in this process, with its log on disk; the
// client, its drivers and its tasks are processes of the program that operators run. All data is on tmpfs,
// where fsync is called and costs nothing.
func figureNode(b *testing.B) {
	b.Run("idle", figureNodeIdle)
	b.Run("stop", figureNodeStop)
	b.Run("drain", figureNodeDrain)
	b.Run("restart", figureNodeRestart)
	b.Run("reattach", figureNodeReattach)
	b.Run("exec", figureNodeExec)
	b.Run("logs", figureNodeLogs)
	b.Run("volume-stop", figureNodeVolumeStop)
	b.Run("volume-drain", figureNodeVolumeDrain)
}

// patience is the longest wait of a benchmark.
const patience = 15 * time.Minute

// testNode is a server and the client of one node. Both end with the benchmark.
type testNode struct {
	b      *testing.B
	dir    string
	server *agent.Agent
	writer httpapi.Writer
	secret string         // of the token that may write
	id     cluster.NodeID // empty before the node is registered
	client *exec.Cmd
	// load is that of the machine before the figure.
	load float64

	mu sync.Mutex
	// stopped and ended are the times at which the server applied the stops and the ends of allocations;
	// guarded by mu.
	stopped, ended map[cluster.AllocID]time.Time
}

// tmpfs returns a folder on tmpfs, which is removed at the end.
func tmpfs(b *testing.B) string {
	const memory = "/dev/shm"
	var fs unix.Statfs_t
	must.NoError(b, unix.Statfs(memory, &fs))
	must.EqOp(b, unix.TMPFS_MAGIC, fs.Type, must.Sprint(memory, " is no tmpfs"))
	dir, err := os.MkdirTemp(memory, "nd-bench-")
	must.NoError(b, err)
	b.Cleanup(func() { must.NoError(b, os.RemoveAll(dir)) })
	return dir
}

func newTestNode(b *testing.B) *testNode {
	n := &testNode{b: b, dir: tmpfs(b), load: loadOf(b), stopped: map[cluster.AllocID]time.Time{}, ended: map[cluster.AllocID]time.Time{}}
	b.Cleanup(n.clean)
	n.build("nodedrain", "cmd/nodedrain")
	n.build("task", "internal/bench/task")
	must.NoError(b, os.Mkdir(n.file("notes"), 0o700))
	n.startServer()
	config := fmt.Sprintf(`
name     = "n1"
data_dir = %q
run_dir  = %q
resources {
  cpu    = 1000000
  memory = 1000000
}
servers {
  addresses  = ["http://%s"]
  token_file = %q
}
log {
  level = "debug"
}
plugin "raw_exec" {}
plugin "mock" {}
`, n.file("client"), n.file("run"), n.server.HTTPAddr(), n.file("token"))
	must.NoError(b, os.WriteFile(n.file("client.hcl"), []byte(config), 0o600))
	n.begin()
	n.await("a node with healthy drivers", func(s *statestore.Snapshot) bool {
		for node := range s.Nodes() {
			n.id = node.ID
			return node.Drivers["mock"] != nil && node.Drivers["mock"].Healthy && node.Drivers["raw_exec"] != nil && node.Drivers["raw_exec"].Healthy
		}
		return false
	})
	return n
}

func (n *testNode) file(name string) string { return filepath.Join(n.dir, name) }

// build builds a program of the module.
func (n *testNode) build(name, path string) {
	programs.Build(n.b, "github.com/seed-f9cf0b39/nodedrain/"+path, n.file(name))
}

// startServer starts a server that demands tokens: otherwise a client that runs as root refuses raw_exec.
func (n *testNode) startServer() {
	secret, token, err := access.Generate("bench", access.Write)
	must.NoError(n.b, err)
	must.NoError(n.b, os.WriteFile(n.file("tokens"), []byte(token.Line()+"\n"), 0o600))
	must.NoError(n.b, os.WriteFile(n.file("token"), []byte(secret.Reveal()+"\n"), 0o600))
	n.secret = secret.Reveal()
	tokens, err := access.Open(n.file("tokens"), nil)
	must.NoError(n.b, err)
	n.server, err = agent.New(agent.Config{
		DataDir: n.file("server"), HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0", BootstrapExpect: 1, Access: tokens, OnApply: n.applied,
	})
	must.NoError(n.b, err)
	must.NoError(n.b, n.server.Ready(n.b.Context()))
	n.writer = n.server.Backend().Writer
}

// applied notes the stops and the ends of allocations.
func (n *testNode) applied(a shims.Applied) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	switch m := a.Message.(type) {
	case *shims.ApplyPlan:
		for _, s := range a.Response.(shims.PlanApplied).Accepted.Stops {
			n.stopped[s.Alloc] = now
		}
	case *shims.AllocClientUpdate:
		for _, r := range m.Reports {
			if (r.ClientStatus == cluster.ClientComplete || r.ClientStatus == cluster.ClientFailed) && n.ended[r.Alloc].IsZero() {
				n.ended[r.Alloc] = now
			}
		}
	}
}

// timesOf returns when the server applied the stop and the end of an allocation, or zero times.
func (n *testNode) timesOf(id cluster.AllocID) (stopped, ended time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopped[id], n.ended[id]
}

// begin starts the client.
func (n *testNode) begin() {
	log, err := os.OpenFile(n.file("client.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must.NoError(n.b, err)
	defer log.Close()
	n.client = exec.Command(n.file("nodedrain"), "client", "-config", n.file("client.hcl"))
	n.client.Stdout, n.client.Stderr = log, log
	// The collector of the client has its defaults, as on the nodes of operators.
	n.client.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GOGC=") || strings.HasPrefix(variable, "GOMEMLIMIT=")
	})
	must.NoError(n.b, n.client.Start())
}

// crash kills the client.
func (n *testNode) crash() {
	must.NoError(n.b, n.client.Process.Kill())
	_ = n.client.Wait() // the error is only that it was killed
}

// logged counts the lines of the client's log with a text.
func (n *testNode) logged(text string) int {
	log, err := os.ReadFile(n.file("client.log"))
	must.NoError(n.b, err)
	return bytes.Count(log, []byte(text))
}

// Texts in the client's log.
const (
	stepLine     = `msg="the core has made a step"`
	takeOverLine = `msg="a driver has taken over a task"`
)

// await waits until the state of the server is as wanted.
func (n *testNode) await(what string, is func(*statestore.Snapshot) bool) {
	n.b.Helper()
	for end := time.Now().Add(patience); !is(n.server.Server().Store().Snapshot()); <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			n.b.Fatalf("no %s within %s", what, patience)
		}
	}
}

// job returns a service job of one task for each allocation.
func (n *testNode) job(id cluster.JobID, count int, driver string, config map[string]any) *cluster.Job {
	encoded, err := json.Marshal(config)
	must.NoError(n.b, err)
	j := &cluster.Job{ID: id, Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
		Name: "g", Count: count, Migrate: cluster.DefaultMigrateStrategy(),
		Tasks: []*cluster.Task{{Name: "task", Driver: driver, Config: encoded, KillTimeout: 10 * time.Second, Resources: cluster.Resources{CPU: 10, MemoryMB: 10}}},
	}}}
	j.Canonicalize()
	return j
}

// mocks returns a job of tasks of the driver mock, which end at once when they are stopped.
func (n *testNode) mocks(count int) *cluster.Job {
	return n.job("mocks", count, "mock", map[string]any{})
}

// processes returns a job of tasks of raw_exec, which take some time to end.
func (n *testNode) processes(id cluster.JobID, count int, own time.Duration) *cluster.Job {
	return n.job(id, count, "raw_exec", map[string]any{"command": n.file("task"), "args": []string{n.file("notes"), own.String()}})
}

func (n *testNode) register(j *cluster.Job) {
	_, err := n.writer.RegisterJob(context.Background(), j, cluster.JobRegistration{})
	must.NoError(n.b, err)
}

// running waits until so many allocations run, with tasks that are ready for their signal.
func (n *testNode) running(count int) (all []*cluster.Allocation) {
	n.b.Helper()
	n.await(strconv.Itoa(count)+" running allocations", func(s *statestore.Snapshot) bool {
		all = slices.DeleteFunc(slices.Collect(s.WorkView().LiveAllocsByNode(n.id)), func(a *cluster.Allocation) bool { return a.Job.StoragePlugin() })
		return len(all) == count && !slices.ContainsFunc(all, func(a *cluster.Allocation) bool {
			if a.ClientStatus != cluster.ClientRunning {
				return true
			}
			if a.Job.TaskGroups[0].Tasks[0].Driver == "mock" {
				return false
			}
			_, err := os.Stat(n.noteOf(a.ID) + ".ready")
			return err != nil
		})
	})
	return all
}

func (n *testNode) noteOf(id cluster.AllocID) string {
	return filepath.Join(n.file("notes"), string(id))
}

// noted returns when a task got its signal and when it ended.
func (n *testNode) noted(id cluster.AllocID) (signaled, ended time.Time) {
	text, err := os.ReadFile(n.noteOf(id) + ".end")
	must.NoError(n.b, err)
	var times [2]int64
	_, err = fmt.Sscan(string(text), &times[0], &times[1])
	must.NoError(n.b, err)
	return time.Unix(0, times[0]), time.Unix(0, times[1])
}

// awaitEnds waits until the server has the ends of allocations.
func (n *testNode) awaitEnds(all []*cluster.Allocation) {
	n.await("ends of all allocations", func(*statestore.Snapshot) bool {
		return !slices.ContainsFunc(all, func(a *cluster.Allocation) bool {
			_, ended := n.timesOf(a.ID)
			return ended.IsZero()
		})
	})
}

// processesOf returns the processes of a program of the node with these arguments: the times of their
// starts by pid.
func (n *testNode) processesOf(program string, args ...string) map[int]string {
	entries, err := os.ReadDir("/proc")
	must.NoError(n.b, err)
	found := map[int]string{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, _ := os.Readlink(filepath.Join("/proc", e.Name(), "exe")) // the process may have ended
		line, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if exe != n.file(program) || !bytes.Contains(line, []byte("\x00"+strings.Join(args, "\x00"))) {
			continue
		}
		if stat := statOf(pid); len(stat) > 19 {
			found[pid] = stat[19]
		}
	}
	return found
}

// statOf returns the fields of /proc/PID/stat after the command, or nil.
func statOf(pid int) []string {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if i := bytes.LastIndexByte(text, ')'); i >= 0 {
		return strings.Fields(string(text[i+1:]))
	}
	return nil
}

// cpuOf returns the processor time of a process. The kernel counts it in hundredths of a second.
func cpuOf(b *testing.B, pid int) time.Duration {
	stat := statOf(pid)
	must.Greater(b, 12, len(stat), must.Sprintf("process %d is gone", pid))
	user, err := strconv.Atoi(stat[11])
	must.NoError(b, err)
	system, err := strconv.Atoi(stat[12])
	must.NoError(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

// memoryOf returns the resident memory of a process in bytes.
func memoryOf(b *testing.B, pid int) float64 {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	must.NoError(b, err)
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	var kib float64
	_, err = fmt.Sscan(rest, &kib)
	must.NoError(b, err)
	return kib * 1024
}

// reportTimes reports times as ratios to a bound, and the fastest and the median one in milliseconds.
func reportTimes(b *testing.B, name string, times []time.Duration, bound time.Duration) {
	var ratios []float64
	for _, t := range times {
		ratios = append(ratios, float64(t)/float64(bound))
	}
	measure.RatioOf(ratios).ReportAs(b, name+"-"+measure.UnitRatio)
	measure.Count(b, slices.Min(times).Seconds()*1000, name+"-best-ms")
	measure.Count(b, percentile(times, 50).Seconds()*1000, name+"-median-ms")
}

// percentile returns the smallest time that p percent of the times do not exceed.
func percentile(times []time.Duration, p float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[int(math.Ceil(float64(len(sorted))*p/100))-1]
}

// loadOf returns the load of the machine in the last minute.
func loadOf(b *testing.B) (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	must.NoError(b, err)
	_, err = fmt.Sscan(string(text), &load)
	must.NoError(b, err)
	return load
}

// reportLoad reports how busy the machine was before the figure, and is after it.
func (n *testNode) reportLoad() {
	measure.Count(n.b, n.load, "load-before")
	measure.Count(n.b, loadOf(n.b), "load-after")
}

// clean ends the client, its drivers, its tasks and the server. The shims of tasks end with them, and the
// program's processes are killed last.
func (n *testNode) clean() {
	if n.b.Failed() {
		log, _ := os.ReadFile(n.file("client.log"))
		n.b.Logf("the end of the client's log:\n%s", log[max(0, len(log)-5000):])
	}
	if n.client != nil {
		n.stopAll()
		_ = n.client.Process.Kill()
		_ = n.client.Wait()
	}
	for _, program := range []string{"task", "csi", "nodedrain"} {
		for pid := range n.processesOf(program) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if n.server != nil {
		must.NoError(n.b, n.server.Stop())
	}
}

// stopAll stops all jobs, and waits until no task is left: the client then removes their control groups.
func (n *testNode) stopAll() {
	if n.id == "" || n.client.ProcessState != nil {
		return
	}
	for j := range n.server.Server().Store().Snapshot().Jobs() {
		_, err := n.writer.StopJob(context.Background(), j.Key(), cluster.JobStop{})
		must.NoError(n.b, err)
	}
	n.await("end of all allocations", func(s *statestore.Snapshot) bool {
		for range s.WorkView().LiveAllocsByNode(n.id) {
			return false
		}
		return true
	})
}
