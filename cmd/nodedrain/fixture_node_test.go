package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

// The allocation of the fixture, and another one with two tasks.
const (
	fixtureAlloc = "a1110000-0000-4000-8000-00000000000a"
	twoTasks     = "a2220000-0000-4000-8000-00000000000b"
	fixtureEval  = "e1110000-0000-4000-8000-00000000000e"
)

// fixtureNode is a server with one node, as the compatible API has them: it answers requests about
// allocations, their files, logs and commands. It is safe for concurrent use.
type fixtureNode struct {
	*httptest.Server
	// exec runs the command of an exec, or refuses with an error.
	exec func(url.Values, *websocket.Conn)
	// older: the server does not know the parameter file of logs.
	older bool

	mu      sync.Mutex
	changed chan struct{} // closed at each change; guarded by mu
	index   uint64        // guarded by mu
	allocs  map[string]*wire.Allocation
	files   map[string]string // by path; guarded by mu
	asked   []string          // the writes, with their bodies; guarded by mu
	streams int               // followed logs that were begun; guarded by mu
	down    bool              // the node has no connection to the servers; guarded by mu
	// refused is the answer to writes about tasks, or empty; guarded by mu.
	refused string
	// refusals counts what was refused because the node is down; guarded by mu.
	refusals int
	// event is news of the first file of a log, which comes once with the next frames; guarded by mu.
	event string
}

func newFixtureNode() *fixtureNode {
	f := &fixtureNode{
		changed: make(chan struct{}), index: 10,
		allocs: map[string]*wire.Allocation{fixtureAlloc: fixture(fixtureAlloc, "web"), twoTasks: fixture(twoTasks, "proxy", "web")},
		files: map[string]string{
			"alloc/logs/web.stdout.0": "one\ntwo\n", "alloc/logs/web.stdout.1": "three\n", "alloc/logs/web.stderr.0": "oh\n", "web/local/config": "key = value\n",
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/allocations", f.list)
	mux.HandleFunc("GET /v1/allocation/{id}", f.read)
	mux.HandleFunc("PUT /v1/allocation/{id}/stop", f.stop)
	mux.HandleFunc("GET /v1/evaluation/{id}", f.readEval)
	mux.HandleFunc("GET /v1/client/fs/{what}/{id}", f.readFS)
	mux.HandleFunc("GET /v1/client/allocation/{id}/stats", f.stats)
	mux.HandleFunc("GET /v1/client/allocation/{id}/exec", f.upgrade)
	mux.HandleFunc("PUT /v1/client/allocation/{id}/{what}", f.act)
	f.Server = httptest.NewServer(mux)
	return f
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
	f.change(func() { f.files[fmt.Sprintf("alloc/logs/web.stdout.%d", n)] += text })
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

// requests are the writes so far.
func (f *fixtureNode) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
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
	f.note(r)
	f.answer(w, 11, wire.AllocStopResponse{EvalID: fixtureEval, Index: 11})
}

// readEval answers with an ended evaluation. That of the allocation with two tasks placed nothing.
func (f *fixtureNode) readEval(w http.ResponseWriter, r *http.Request) {
	e := &wire.Evaluation{ID: r.PathValue("id"), Status: "complete"}
	if slices.ContainsFunc(f.requests(), func(asked string) bool { return strings.HasPrefix(asked, "PUT /v1/allocation/"+twoTasks) }) {
		e.BlockedEval = "b1110000-0000-4000-8000-00000000000b"
	}
	f.answer(w, 12, e)
}

func (f *fixtureNode) note(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
}

func (f *fixtureNode) act(w http.ResponseWriter, r *http.Request) {
	f.note(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refused != "" {
		http.Error(w, f.refused, http.StatusInternalServerError)
		return
	}
	f.answer(w, f.index, struct{}{})
}

func (f *fixtureNode) stats(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != fixtureAlloc {
		http.Error(w, "no path to the node", http.StatusNotFound)
		return
	}
	use := &wire.ResourceUsage{CpuStats: &wire.CPUStats{TotalTicks: 12.4}, MemoryStats: &wire.MemoryStats{RSS: 3 << 20}}
	f.answer(w, 0, wire.AllocStats{ResourceUsage: use, Tasks: map[string]*wire.TaskStats{"web": {ResourceUsage: use}}})
}

func (f *fixtureNode) readFS(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	down := f.down
	if down {
		f.refusals++
	}
	f.mu.Unlock()
	if down {
		http.Error(w, "no path to the node", http.StatusNotFound)
		return
	}
	if r.PathValue("what") == "logs" {
		f.logs(w, r)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at := strings.Trim(r.URL.Query().Get("path"), "/")
	content, isFile := f.files[at]
	inside := map[string]*wire.FileInfo{}
	for name, text := range f.files {
		rest, is := strings.CutPrefix("/"+name, path.Join("/", at)+"/")
		if at == "" {
			rest, is = name, true
		}
		if !is {
			continue
		}
		first, _, folder := strings.Cut(rest, "/")
		inside[first] = fileInfo(first, int64(len(text)), folder)
	}
	switch what := r.PathValue("what"); {
	case !isFile && len(inside) == 0:
		http.Error(w, "no such file", http.StatusNotFound)
	case what == "cat":
		_, _ = io.WriteString(w, content)
	case what == "ls":
		list := []*wire.FileInfo{}
		for _, name := range slices.Sorted(maps.Keys(inside)) {
			list = append(list, inside[name])
		}
		f.answer(w, 0, list)
	case what == "stat":
		f.answer(w, 0, fileInfo(path.Base(at), int64(len(content)), !isFile))
	}
}

func fileInfo(name string, size int64, isDir bool) *wire.FileInfo {
	info := &wire.FileInfo{Name: name, Size: size, FileMode: "-rw-r--r--", ModTime: wire.NewTime(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), ContentType: "text/plain"}
	if isDir {
		info.IsDir, info.FileMode, info.Size, info.ContentType = true, "drwxr-xr-x", 4096, ""
	}
	return info
}

// logs streams a log in small frames. A followed log ends with its task.
func (f *fixtureNode) logs(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	log := q.Get("task") + "." + q.Get("type") + "."
	skip, _ := strconv.Atoi(q.Get("offset"))
	follow := q.Get("follow") == "true"
	file := 0
	f.mu.Lock()
	if follow {
		f.streams++
	}
	if q.Get("origin") == "end" {
		skip = max(0, f.sizeOf(log)-skip)
	}
	f.mu.Unlock()
	if name := q.Get("file"); name != "" && !f.older {
		file, _ = strconv.Atoi(strings.TrimPrefix(name, log))
	}
	encoder := json.NewEncoder(w)
	for {
		f.mu.Lock()
		changed, ended := f.changed, alloc.Over(f.allocs[fixtureAlloc], q.Get("task"))
		var frames []wire.StreamFrame
		if f.event != "" {
			frames, f.event = append(frames, wire.StreamFrame{File: "alloc/logs/" + log + "0", FileEvent: f.event}), ""
		}
		parts, last, size := f.frames(log, file, skip)
		frames, file, skip = append(frames, parts...), last, size
		f.mu.Unlock()
		for _, frame := range append(frames, wire.StreamFrame{}) {
			if encoder.Encode(frame) != nil {
				return
			}
		}
		_ = http.NewResponseController(w).Flush()
		if !follow || ended {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (f *fixtureNode) sizeOf(log string) (n int) {
	for name, text := range f.files {
		if strings.HasPrefix(path.Base(name), log) {
			n += len(text)
		}
	}
	return n
}

// frames returns what a log has after the first bytes from a file on, and where it ends. Called with mu.
func (f *fixtureNode) frames(log string, file, skip int) (frames []wire.StreamFrame, last, size int) {
	for ; ; file, skip = file+1, max(0, skip-size) {
		name := fmt.Sprintf("alloc/logs/%s%d", log, file)
		text := f.files[name]
		for at := skip; at < len(text); at += 3 {
			end := min(at+3, len(text))
			frames = append(frames, wire.StreamFrame{File: name, Offset: int64(end), Data: []byte(text[at:end])})
		}
		size = len(text)
		if _, more := f.files[fmt.Sprintf("alloc/logs/%s%d", log, file+1)]; !more {
			return frames, file, size
		}
	}
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
	f := newFixtureNode()
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
