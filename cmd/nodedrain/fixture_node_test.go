package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// The allocation of the fixture, and another one with two tasks.
const (
	fixtureAlloc = "a1110000-0000-4000-8000-00000000000a"
	twoTasks     = "a2220000-0000-4000-8000-00000000000b"
	fixtureEval  = "e1110000-0000-4000-8000-00000000000e"
)

// fixtureNode is a server with one node, as the compatible API has them: it answers requests about
// allocations, and serves their files and logs like a client. It is safe for concurrent use.
type fixtureNode struct {
	*httptest.Server
	dirs *allocdir.Folders
	// exec runs the command of an exec, or refuses with an error.
	exec func(url.Values, *websocket.Conn)
	// older: the server does not read the parameter file of logs.
	older bool

	mu       sync.Mutex
	changed  chan struct{} // closed at each change; guarded by mu
	index    uint64        // guarded by mu
	allocs   map[string]*wire.Allocation
	requests []string // the writes, with their bodies; guarded by mu
	streams  int      // followed logs that were begun; guarded by mu
	down     bool     // the node has no connection to the servers; guarded by mu
	// refused is the answer to writes about tasks, or empty; guarded by mu.
	refused string
	// refusals counts what was refused because the node is down; guarded by mu.
	refusals int
}

// newFixtureNode returns a node with the folders of its allocations in a new folder.
func newFixtureNode(dir string) (*fixtureNode, error) {
	dirs, err := allocdir.Open(dir)
	if err != nil {
		return nil, err
	}
	f := &fixtureNode{
		dirs: dirs, changed: make(chan struct{}), index: 10,
		allocs: map[string]*wire.Allocation{fixtureAlloc: fixture(fixtureAlloc, "web"), twoTasks: fixture(twoTasks, "proxy", "web")},
	}
	err = dirs.Build(fixtureAlloc, []allocdir.Task{{Name: "web"}})
	for name, text := range map[string]string{
		"alloc/logs/web.stdout.0": "one\ntwo\n", "alloc/logs/web.stdout.1": "three\n", "alloc/logs/web.stderr.0": "oh\n", "web/local/config": "key = value\n",
	} {
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		err = errors.Join(err, os.WriteFile(f.path(name), []byte(text), 0o644), os.Chtimes(f.path(name), at, at))
	}
	node := nodeapi.New(nodeapi.Options{Dirs: dirs, Roster: f, Host: func(context.Context) (*hoststats.Sample, error) { return nil, errors.ErrUnsupported }})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocations", f.list)
	mux.HandleFunc("GET /v1/allocation/{id}", f.read)
	mux.HandleFunc("PUT /v1/allocation/{id}/stop", f.stop)
	mux.HandleFunc("GET /v1/evaluation/{id}", f.readEval)
	mux.HandleFunc("GET /v1/client/fs/", func(w http.ResponseWriter, r *http.Request) { f.readFiles(w, r, node) })
	mux.Handle("GET /v1/client/allocation/{id}/stats", node)
	mux.HandleFunc("GET /v1/client/allocation/{id}/exec", f.upgrade)
	mux.HandleFunc("PUT /v1/client/allocation/{id}/{action}", f.act)
	f.Server = httptest.NewServer(mux)
	return f, err
}

// Close ends the server.
func (f *fixtureNode) Close() {
	f.CloseClientConnections()
	f.Server.Close()
	_ = f.dirs.Close()
}

// path returns the path of a file of the allocation.
func (f *fixtureNode) path(name string) string {
	return filepath.Join(f.dirs.Alloc(fixtureAlloc), name)
}

// Tasks implements [nodeapi.Roster].
func (f *fixtureNode) Tasks(id string) (tasks []nodeapi.TaskState, changed <-chan struct{}, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.allocs[id]
	if a == nil {
		return nil, f.changed, false
	}
	for name := range a.TaskStates {
		over := alloc.Over(a, name)
		tasks = append(tasks, nodeapi.TaskState{Name: name, Running: !over, Dead: over})
	}
	return tasks, f.changed, true
}

// Usage implements [nodeapi.Roster].
func (f *fixtureNode) Usage(_ context.Context, id, _ string) (driver.Usage, error) {
	if id != fixtureAlloc {
		return driver.Usage{}, errors.ErrUnsupported
	}
	return driver.Usage{Time: time.Unix(5, 0), CPUPercent: 50, RSS: 3 << 20}, nil
}

// fixture is a running allocation with tasks of raw_exec.
func fixture(id string, tasks ...string) *wire.Allocation {
	group, version := "main", uint64(0)
	g := &wire.TaskGroup{Name: &group}
	a := &wire.Allocation{
		ID: id, Namespace: "default", Name: "example.main[0]", NodeID: "n1", NodeName: "node-1", JobID: "example", TaskGroup: group,
		Job:           &wire.Job{TaskGroups: []*wire.TaskGroup{g}, Version: &version},
		DesiredStatus: "run", ClientStatus: "running", TaskStates: map[string]*wire.TaskState{},
		AllocatedResources: &wire.AllocatedResources{Tasks: map[string]*wire.AllocatedTask{}},
	}
	for _, name := range tasks {
		g.Tasks = append(g.Tasks, &wire.Task{Name: name, Driver: "raw_exec"})
		a.TaskStates[name] = &wire.TaskState{State: "running", Events: []*wire.TaskEvent{{Type: "Started"}}}
		a.AllocatedResources.Tasks[name] = &wire.AllocatedTask{Cpu: wire.AllocatedCPU{CpuShares: 500}, Memory: wire.AllocatedMemory{MemoryMB: 256}}
	}
	return a
}

// change changes the fixture, and wakes all who wait for it.
func (f *fixtureNode) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
	f.index++
	close(f.changed)
	f.changed = make(chan struct{})
}

// write appends to a file of the log of the task "web".
func (f *fixtureNode) write(n int, text string) {
	log, err := os.OpenFile(f.path(fmt.Sprintf("alloc/logs/web.stdout.%d", n)), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = log.WriteString(text)
	}
	if err := errors.Join(err, log.Close()); err != nil {
		panic(err)
	}
}

// end ends the task "web" with an exit code.
func (f *fixtureNode) end(code int) {
	f.change(func() {
		after := fixture(fixtureAlloc, "web")
		after.ClientStatus = "complete"
		after.TaskStates["web"] = &wire.TaskState{State: "dead", Events: []*wire.TaskEvent{{Type: "Terminated", Message: fmt.Sprintf("Exit Code: %d", code)}}}
		f.allocs[fixtureAlloc] = after
	})
}

// writes returns the writes so far.
func (f *fixtureNode) writes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

func (f *fixtureNode) answer(w http.ResponseWriter, index uint64, body any) {
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(index, 10))
	w.Header().Set("X-Nomad-KnownLeader", "true")
	_ = json.NewEncoder(w).Encode(body)
}

func (f *fixtureNode) list(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stubs := []*wire.AllocationListStub{}
	for _, id := range slices.Sorted(maps.Keys(f.allocs)) {
		if strings.HasPrefix(id, r.URL.Query().Get("prefix")) {
			a := f.allocs[id]
			stubs = append(stubs, &wire.AllocationListStub{ID: id, JobID: a.JobID, TaskGroup: a.TaskGroup, ClientStatus: a.ClientStatus, NodeName: a.NodeName})
		}
	}
	f.answer(w, f.index, stubs)
}

// read answers a blocking query too.
func (f *fixtureNode) read(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	changed, index := f.changed, f.index
	f.mu.Unlock()
	after, _ := strconv.ParseUint(r.URL.Query().Get("index"), 10, 64)
	wait, _ := time.ParseDuration(r.URL.Query().Get("wait"))
	if after >= index {
		select {
		case <-changed:
		case <-time.After(wait):
		case <-r.Context().Done():
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.allocs[r.PathValue("id")]; a != nil {
		f.answer(w, f.index, a)
		return
	}
	http.Error(w, "alloc not found", http.StatusNotFound)
}

func (f *fixtureNode) stop(w http.ResponseWriter, r *http.Request) {
	f.record(r)
	f.answer(w, 11, wire.AllocStopResponse{EvalID: fixtureEval, Index: 11})
}

// readEval answers with an ended evaluation. That of the allocation with two tasks placed nothing.
func (f *fixtureNode) readEval(w http.ResponseWriter, r *http.Request) {
	e := &wire.Evaluation{ID: r.PathValue("id"), Status: "complete"}
	if slices.ContainsFunc(f.writes(), func(request string) bool { return strings.HasPrefix(request, "PUT /v1/allocation/"+twoTasks) }) {
		e.BlockedEval = "b1110000-0000-4000-8000-00000000000b"
	}
	f.answer(w, 12, e)
}

func (f *fixtureNode) record(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
}

func (f *fixtureNode) act(w http.ResponseWriter, r *http.Request) {
	f.record(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused != "" {
		http.Error(w, f.refused, http.StatusInternalServerError)
		return
	}
	f.answer(w, f.index, struct{}{})
}

// readFiles lets the node answer a request about files, unless it is down.
func (f *fixtureNode) readFiles(w http.ResponseWriter, r *http.Request, node http.Handler) {
	q := r.URL.Query()
	f.mu.Lock()
	down := f.down
	if down {
		f.refusals++
	} else if q.Get("follow") == "true" {
		f.streams++
	}
	f.mu.Unlock()
	if down {
		http.Error(w, "no path to the node", http.StatusNotFound)
		return
	}
	if f.older {
		q.Del("file")
		r.URL.RawQuery = q.Encode()
	}
	node.ServeHTTP(w, r)
}

func (f *fixtureNode) upgrade(w http.ResponseWriter, r *http.Request) {
	if f.exec == nil {
		http.Error(w, "the driver cannot run commands in tasks", http.StatusBadRequest)
		return
	}
	upgrader := websocket.Upgrader{}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	f.exec(r.URL.Query(), conn)
}

// startFixtureNode starts a fixture for a test.
func startFixtureNode(t *testing.T) *fixtureNode {
	t.Helper()
	f, err := newFixtureNode(filepath.Join(t.TempDir(), "allocs"))
	must.NoError(t, err)
	t.Cleanup(f.Close)
	return f
}

// follows waits until n followed logs were begun.
func (f *fixtureNode) follows(t *testing.T, n int) {
	f.waitFor(t, func() bool { return f.streams >= n })
}

// waitFor waits until a condition holds, which is called with mu.
func (f *fixtureNode) waitFor(t *testing.T, holds func() bool) {
	for t.Context().Err() == nil {
		f.mu.Lock()
		done := holds()
		f.mu.Unlock()
		if done || !cli.Pause(t.Context(), time.Millisecond) {
			return
		}
	}
}
