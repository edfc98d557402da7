package nodeapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/hoststats"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog"
)

// node is a node with the allocation "a" of the tasks "web" and "db", and its API.
type node struct {
	testing.TB
	dirs  *allocdir.Folders
	tasks *roster
	// devices are measured when a request contains them.
	devices []device.GroupStats
	server  *httptest.Server
}

// roster has tasks whose states a test sets.
type roster struct {
	mu      sync.Mutex
	changed chan struct{}                  // guarded by mu
	all     map[string][]nodeapi.TaskState // guarded by mu
	usages  map[string]driver.Usage        // read only
}

var _ nodeapi.Roster = (*roster)(nil)

func (n *roster) Tasks(alloc string) ([]nodeapi.TaskState, <-chan struct{}, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all, known := n.all[alloc]
	return all, n.changed, known
}

func (n *roster) Usage(_ context.Context, _, task string) (driver.Usage, error) {
	usage, known := n.usages[task]
	if !known {
		return usage, errors.New("the driver does not measure")
	}
	return usage, nil
}

// set sets the tasks of an allocation. None: the node does not have it.
func (n *roster) set(alloc string, all ...nodeapi.TaskState) {
	n.mu.Lock()
	if len(all) == 0 {
		delete(n.all, alloc)
	} else {
		n.all[alloc] = all
	}
	changed := n.changed
	n.changed = make(chan struct{})
	n.mu.Unlock()
	close(changed)
}

func newNode(t testing.TB) *node {
	t.Helper()
	dirs, err := allocdir.Open(filepath.Join(t.TempDir(), "alloc"))
	must.NoError(t, err)
	n := &node{TB: t, dirs: dirs, tasks: &roster{
		changed: make(chan struct{}), all: make(map[string][]nodeapi.TaskState),
		usages: map[string]driver.Usage{"web": {Time: time.Unix(5, 0), CPUPercent: 150, RSS: 1 << 20}, "db": {Time: time.Unix(6, 0), CPUPercent: 50, RSS: 2 << 20}},
	}}
	must.NoError(t, dirs.Build("a", []allocdir.Task{{Name: "web"}, {Name: "db"}}))
	n.tasks.set("a", nodeapi.TaskState{Name: "web", Running: true}, nodeapi.TaskState{Name: "db", Running: true}, nodeapi.TaskState{Name: "old", Dead: true})
	handler := nodeapi.New(nodeapi.Options{Dirs: dirs, Roster: n.tasks, Devices: func(context.Context) []device.GroupStats { return n.devices }, Host: func(ctx context.Context) (*hoststats.Sample, error) {
		return hoststats.Take(ctx, hoststats.Options{DataDir: t.TempDir()})
	}})
	mux := http.NewServeMux()
	mux.Handle("/v1/client/", handler)
	// The Go client requests the node's own address first. It has none.
	mux.HandleFunc("/v1/node/{id}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"ID":"n","Status":"ready"}`)
	})
	n.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		n.server.CloseClientConnections()
		n.server.Close()
		must.NoError(t, dirs.Close())
	})
	return n
}

// client is the compatible API's Go client.
func (n *node) client() *api.Client {
	n.Helper()
	c, err := api.NewClient(&api.Config{Address: n.server.URL})
	must.NoError(n, err)
	n.Cleanup(c.Close)
	return c
}

func alloc(id string) *api.Allocation { return &api.Allocation{ID: id, NodeID: "n"} }

// put writes a file of the allocation "a".
func (n *node) put(path, content string) {
	n.Helper()
	must.NoError(n, os.WriteFile(filepath.Join(n.dirs.Alloc("a"), path), []byte(content), 0o600))
}

// get answers a request with its status and body.
func (n *node) get(path string) (int, string) {
	n.Helper()
	answer, err := n.server.Client().Get(n.server.URL + path)
	must.NoError(n, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must.NoError(n, err)
	return answer.StatusCode, string(body)
}

// log writes the log of a task of "a".
func (n *node) log(task string, limits tasklog.Limits) *tasklog.Writer {
	n.Helper()
	dir, err := os.OpenRoot(n.dirs.Logs("a"))
	must.NoError(n, err)
	w, err := tasklog.Open(dir, task+".stdout", limits)
	must.NoError(n, err)
	n.Cleanup(func() { must.NoError(n, errors.Join(w.Close(), dir.Close())) })
	return w
}

func (n *node) print(w *tasklog.Writer, format string, args ...any) {
	n.Helper()
	_, err := w.Append(fmt.Appendf(nil, format, args...))
	must.NoError(n, err)
}

// stream is an answer in frames.
type stream struct {
	testing.TB
	end     context.CancelFunc
	decoder *json.Decoder
}

func (n *node) follow(path string) *stream {
	n.Helper()
	ctx, end := context.WithCancel(n.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.server.URL+path, nil)
	must.NoError(n, err)
	answer, err := n.server.Client().Do(request)
	must.NoError(n, err)
	n.Cleanup(func() { end(); _ = answer.Body.Close() })
	must.Eq(n, http.StatusOK, answer.StatusCode)
	return &stream{TB: n.TB, end: end, decoder: json.NewDecoder(answer.Body)}
}

// next returns the next frame that is not empty.
func (s *stream) next() api.StreamFrame {
	s.Helper()
	for {
		var f api.StreamFrame
		must.NoError(s, s.decoder.Decode(&f))
		if !f.IsHeartbeat() {
			return f
		}
	}
}

// text reads a number of bytes, and returns the last frame of them too.
func (s *stream) text(length int) (string, api.StreamFrame) {
	s.Helper()
	text, last := "", api.StreamFrame{}
	for len(text) < length {
		last = s.next()
		must.Eq(s, "", last.FileEvent)
		text += string(last.Data)
	}
	return text, last
}

// ends is true if nothing but empty frames follows.
func (s *stream) ends() {
	s.Helper()
	for {
		var f api.StreamFrame
		err := s.decoder.Decode(&f)
		if errors.Is(err, io.EOF) {
			return
		}
		must.NoError(s, err)
		must.True(s, f.IsHeartbeat(), must.Sprintf("%+v", f))
	}
}

// serve answers a request without a connection. The query may have any bytes.
func (n *node) serve(ctx context.Context, path, query string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	request.URL.RawQuery = query
	answer := httptest.NewRecorder()
	n.server.Config.Handler.ServeHTTP(answer, request)
	return answer
}
