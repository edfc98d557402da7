package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

type heldSessions struct {
	mu   sync.Mutex
	held map[cluster.NodeID]*session.ServerEnd
	// opened receives a value after each new session.
	opened chan struct{}
}

// Admit refuses no process.
func (h *heldSessions) Admit(context.Context, cluster.NodeID, string, bool) error { return nil }

// CheckClient refuses no process.
func (h *heldSessions) CheckClient(cluster.NodeID, string) error { return nil }

func (h *heldSessions) Hold(w http.ResponseWriter, r *http.Request, id cluster.NodeID) error {
	end, err := session.Accept(w, r, nil)
	if err != nil {
		return nil // it has been answered
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[id] = end
	h.opened <- struct{}{}
	return nil
}

func (h *heldSessions) Send(r *http.Request, id cluster.NodeID) (*http.Response, error) {
	h.mu.Lock()
	end := h.held[id]
	h.mu.Unlock()
	if end == nil {
		return nil, httpapi.ErrNoSession
	}
	response, err := end.RoundTrip(r)
	if errors.Is(err, session.ErrBusy) {
		err = fmt.Errorf("%w: %w", httpapi.ErrTooManyStreams, err)
	}
	return response, err
}

// reachable is a server with a node that has one running allocation and a session.
type reachable struct {
	*fixture
	url      string
	sessions *heldSessions
	// received are the requests that the node got, with their bodies; guarded by receiving.
	receiving sync.Mutex
	received  []received
}

type received struct {
	method, path string
	query        map[string][]string
	header       http.Header
	body         string
}

// newReachable returns a server whose node answers as the handler does. The tokens read, write and none
// have these rights.
func newReachable(t *testing.T, handler http.HandlerFunc) *reachable {
	t.Helper()
	w := newFixture(t)
	for i, status := range []cluster.NodeStatus{cluster.NodeReady, cluster.NodeReady, cluster.NodeDown} {
		id := nodeID(i + 1)
		w.must(&shims.NodeRegister{At: w.Now(), Node: &cluster.Node{
			ID: id, SecretID: secretOf(id), Name: fmt.Sprintf("n%d", i+1), Datacenter: "dc1", Status: cluster.NodeReady,
			Resources: cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000},
		}})
		w.place(i+1, w.job(fmt.Sprintf("web%d", i+1), cluster.JobService, 1), id)
		if status == cluster.NodeDown {
			w.must(&shims.NodeUpdateStatus{At: w.Now(), Node: id, Status: status})
		}
	}
	r := &reachable{fixture: w, sessions: &heldSessions{held: make(map[cluster.NodeID]*session.ServerEnd), opened: make(chan struct{}, 8)}}
	b := w.backend()
	b.Nodes = r.sessions
	b.Access = tokens{"reader": {Name: "r", Read: true}, "writer": {Name: "w", Read: true, Write: true}, "none": {Name: "n"}}
	r.url = w.serveAs(b, httpapi.Options{}).URL
	c := result.Of(client.New(client.Config{Address: r.url, Token: secretOf(nodeID(1))})).OK(t)
	end := result.Of(c.NodeSide(nodeID(1)).OpenSession(t.Context())).OK(t)
	<-r.sessions.opened
	served := make(chan struct{})
	go func() {
		defer close(served)
		end.Serve(t.Context(), http.HandlerFunc(func(w http.ResponseWriter, hr *http.Request) {
			body, _ := io.ReadAll(hr.Body)
			r.receiving.Lock()
			r.received = append(r.received, received{hr.Method, hr.URL.Path, hr.URL.Query(), hr.Header, string(body)})
			r.receiving.Unlock()
			handler(w, hr)
		}))
	}()
	t.Cleanup(func() {
		_ = end.Close()
		<-served
	})
	return r
}

func (r *reachable) last() received {
	r.receiving.Lock()
	defer r.receiving.Unlock()
	return r.received[len(r.received)-1]
}

// get sends a request with a token, and headers after it.
func (r *reachable) get(method, path, token string, headers ...string) (*http.Response, string) {
	r.Helper()
	q := result.Of(http.NewRequestWithContext(r.Context(), method, r.url+path, nil)).OK(r)
	if token != "" {
		q.Header.Set("X-Nomad-Token", token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	response := result.Of(http.DefaultClient.Do(q)).OK(r)
	defer response.Body.Close()
	text := result.Of(io.ReadAll(response.Body)).OK(r)
	return response, string(text)
}

func (r *reachable) reference(token string) *api.Client {
	r.Helper()
	return result.Of(api.NewClient(&api.Config{Address: r.url, SecretID: token})).OK(r)
}

// echoNode is the client of a node as far as the tests need it.
func echoNode(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, "/exec"):
		echoExec(w, r)
	case strings.HasSuffix(r.URL.Path, "/restart"), strings.HasSuffix(r.URL.Path, "/signal"):
		_, _ = io.WriteString(w, "{}")
	case strings.HasSuffix(r.URL.Path, "/checks"):
		_, _ = io.WriteString(w, `{"c1": {"ID": "c1", "Check": "alive", "Status": "failure", "StatusCode": 503, "Timestamp": 7}}`)
	case strings.HasSuffix(r.URL.Path, "/stats"):
		_, _ = io.WriteString(w, `{"Timestamp": 7, "Memory": {}}`)
	case strings.Contains(r.URL.Path, "/fs/ls/"):
		_, _ = io.WriteString(w, `[{"Name": "alloc", "IsDir": true}]`)
	case strings.Contains(r.URL.Path, "/fs/logs/"):
		_, _ = io.WriteString(w, `{"Offset":6,"File":"t.stdout.0","Data":"aGVsbG8K"}`)
	default:
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "what is "+r.URL.Path)
	}
}

// echoExec runs no command: it repeats the input as output until the input is closed, and exits with 7.
func echoExec(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("task") != "main" {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "unknown task")
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: nodedrain-exec\r\n\r\n")
	lines := bufio.NewScanner(buffered)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var in api.ExecStreamingInput
		if json.Unmarshal(lines.Bytes(), &in) != nil {
			return
		}
		switch {
		case in.Stdin != nil && in.Stdin.Close:
			_, _ = io.WriteString(conn, `{"exited":true,"result":{"exit_code":7}}`+"\n")
			return
		case in.Stdin != nil:
			out, _ := json.Marshal(api.ExecStreamingOutput{Stdout: &api.ExecStreamingIOOperation{Data: in.Stdin.Data}})
			_, _ = conn.Write(append(out, '\n'))
		}
	}
}

// The client of the node answers which states the checks of an allocation have. An allocation without checks, and one that
// has ended, needs no client.
func TestReach_checks(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	c := r.reference("reader").Allocations()
	must.MapEmpty(t, result.Of(c.Checks(string(allocID(1)), nil)).OK(t))
	must.SliceEmpty(t, r.received)

	job := r.job("checked", cluster.JobService, 1)
	job = job.Copy()
	job.TaskGroups[0].Services = []cluster.Service{{Name: "web", PortLabel: "80", Checks: []cluster.ServiceCheck{
		{Name: "alive", Type: cluster.CheckTCP, Interval: time.Second, Timeout: time.Second},
	}}}
	r.must(&shims.JobRegister{Job: job})
	r.place(7, job, nodeID(1))
	all := result.Of(c.Checks(string(allocID(7)), nil)).OK(t)
	must.Eq(t, api.AllocCheckStatuses{"c1": {ID: "c1", Check: "alive", Status: "failure", StatusCode: 503, Timestamp: 7}}, all)
	must.EqOp(t, "/v1/client/allocation/"+string(allocID(7))+"/checks", r.last().path)
	r.report(7, cluster.ClientComplete)
	must.MapEmpty(t, result.Of(c.Checks(string(allocID(7)), nil)).OK(t))
	must.SliceLen(t, 1, r.received)
	response, body := r.get(http.MethodGet, "/v1/client/allocation/"+string(allocID(9))+"/checks", "reader")
	must.EqOp(t, http.StatusNotFound, response.StatusCode, must.Sprint(body))
	response, _ = r.get(http.MethodGet, "/v1/client/allocation/"+string(allocID(7))+"/checks", "none")
	must.EqOp(t, http.StatusForbidden, response.StatusCode)
}

// The reference's client works against a node with a session.
func TestReach_referenceClient(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	c := r.reference("writer")
	alloc := &api.Allocation{ID: string(allocID(1)), NodeID: string(nodeID(1))}

	must.NoError(t, c.Allocations().Signal(alloc, nil, "main", "SIGHUP"))
	must.Eq(t, "PUT /v1/client/allocation/"+alloc.ID+"/signal", r.last().method+" "+r.last().path)
	must.StrContains(t, r.last().body, `"SIGHUP"`)
	must.NoError(t, c.Allocations().Restart(alloc, "main", nil))
	must.StrContains(t, r.last().body, `"TaskName":"main"`)
	stats := result.Of(r.reference("reader").Allocations().Stats(alloc, nil)).OK(t)
	must.Eq(t, 7, stats.Timestamp)
	host := result.Of(r.reference("reader").Nodes().Stats(string(nodeID(1)), nil)).OK(t)
	must.NotNil(t, host.Memory)
	must.MapEmpty(t, r.last().query, must.Sprint("the client gets no id of a node"))
	files := result.Read(c.AllocFS().List(alloc, "/", nil)).OK(t)
	must.Eq(t, "alloc", files[0].Name)
	must.Eq(t, map[string][]string{"path": {"/"}}, r.last().query)
	frames, failed := c.AllocFS().Logs(alloc, true, "main", "stdout", "start", 0, nil, nil)
	select {
	case frame := <-frames:
		must.Eq(t, "hello\n", string(frame.Data))
	case err := <-failed:
		t.Fatal(err)
	}
	for frame := range frames {
		t.Fatal("a frame after the end", frame)
	}

	var out strings.Builder
	code := result.Of(c.Allocations().Exec(t.Context(), alloc, "main", false, []string{"cat"}, strings.NewReader("hello, task"), &out, io.Discard, nil, nil)).OK(t)
	must.Eq(t, 7, code)
	must.Eq(t, "hello, task", out.String())
	must.Eq(t, map[string][]string{"task": {"main"}, "tty": {"false"}, "command": {`["cat"]`}}, r.last().query)
	_, err := c.Allocations().Exec(t.Context(), alloc, "other", false, []string{"cat"}, strings.NewReader(""), &out, io.Discard, nil, nil)
	must.ErrorContains(t, err, "404")
	must.ErrorContains(t, err, "unknown task")
}

// No token and no header of the caller reaches a node.
func TestSecurity_NoTokenLeavesTheServers(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	path := "/v1/client/fs/cat/" + string(allocID(1)) + "?path=x&token=writer&secret=s&region=global&namespace=default&index=7&X-Nomad-Token=writer"
	response, text := r.get(http.MethodGet, path, "", "Authorization", "Bearer writer", "Cookie", "c=d", "X-Nomad-Token", "writer",
		"X-Nodedrain-Forwarded", "x", "X-Forwarded-For", "10.0.0.9", "X-Nomad-Anything", "y")
	must.Eq(t, http.StatusTeapot, response.StatusCode)
	must.StrContains(t, text, "what is /v1/client/fs/cat/")
	must.Eq(t, "", response.Header.Get("Set-Cookie"))
	must.Eq(t, "nosniff", response.Header.Get("X-Content-Type-Options"))
	must.StrContains(t, response.Header.Get("Content-Security-Policy"), "sandbox")
	must.Eq(t, map[string][]string{"path": {"x"}}, r.last().query)
	names := slices.Sorted(maps.Keys(r.last().header))
	must.Eq(t, []string{"Connection", "User-Agent"}, names)

	_, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(r.url, "http")+
		"/v1/client/allocation/"+string(allocID(1))+"/exec?task=main&command=[]&auth_token=writer", http.Header{"X-Nomad-Token": {"writer"}})
	must.NoError(t, err)
	names = slices.Sorted(maps.Keys(r.last().header))
	must.Eq(t, []string{"Connection", "Content-Length", "Upgrade", "User-Agent"}, names)
}

// A refusal names the reason and the remedy.
func TestReach_refuses(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	alloc := func(n int) string { return string(allocID(n)) }
	for _, c := range []struct {
		name, method, path, token string
		code                      int
		text                      string
	}{
		{"another token", "GET", "/v1/client/stats?node_id=" + string(nodeID(1)), "wrong", 403, "ACL token not found"},
		{"unknown allocation", "GET", "/v1/client/fs/ls/nothing", "writer", 404, "alloc not found"},
		{"prefix of an allocation", "GET", "/v1/client/fs/ls/" + alloc(1)[:8], "writer", 404, "alloc not found"},
		{"unknown node", "GET", "/v1/client/stats?node_id=n9", "reader", 404, "node not found"},
		{"no node", "GET", "/v1/client/stats", "reader", 400, "missing node_id"},
		{"no session", "GET", "/v1/client/fs/ls/" + alloc(2), "writer", 500, "No path to node n2 (" + string(nodeID(2)) + "): its client has no session with a server; check that nodedrain client runs there"},
		{"down", "GET", "/v1/client/fs/ls/" + alloc(3), "writer", 500, "No path to node n3 (" + string(nodeID(3)) + "): it is down"},
		{"no WebSocket", "GET", "/v1/client/allocation/" + alloc(1) + "/exec?task=main", "writer", 400, "needs a WebSocket"},
		{"session of another", "GET", "/v1/client/" + string(nodeID(1)) + "/session", secretOf(nodeID(2)), 403, "ACL token not found"},
		{"session with a token", "GET", "/v1/client/" + string(nodeID(1)) + "/session", "writer", 403, "Permission denied"},
		{"session of an unknown node", "GET", "/v1/client/n9/session", "writer", 404, "node not found"},
		{"no upgrade", "GET", "/v1/client/" + string(nodeID(1)) + "/session", secretOf(nodeID(1)), 426, "a session needs the headers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			response, text := r.get(c.method, c.path, c.token)
			must.Eq(t, c.code, response.StatusCode)
			must.StrContains(t, text, c.text)
		})
	}
}

// A page of another server gets no stream.
func TestSecurity_StreamsCheckOrigin(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	paths := []string{"/v1/client/fs/logs/" + string(allocID(1)) + "?follow=true", "/v1/client/fs/stream/" + string(allocID(1)), "/v1/event/stream",
		"/v1/client/allocation/" + string(allocID(1)) + "/exec?ws_handshake=true"}
	for _, path := range paths {
		for _, origin := range []string{"http://evil.example", "null", r.url + "0", "evil.example"} {
			response, text := r.get(http.MethodGet, path, "writer", "Origin", origin)
			must.Eq(t, http.StatusForbidden, response.StatusCode, must.Sprint(path, origin))
			must.StrContains(t, text, "cross-origin")
		}
	}
	response, _ := r.get(http.MethodGet, paths[0], "writer", "Origin", strings.ToUpper(r.url))
	must.Eq(t, http.StatusOK, response.StatusCode)
}

// Parts of an answer arrive as the node sends them. The caller can see that a cut answer is not complete.
func TestReach_streams(t *testing.T) {
	t.Parallel()
	next := make(chan string)
	ended := make(chan struct{}, 8)
	r := newReachable(t, func(w http.ResponseWriter, hr *http.Request) {
		defer func() { ended <- struct{}{} }()
		for {
			select {
			case text := <-next:
				if text == "cut" {
					_ = http.NewResponseController(w).SetWriteDeadline(time.Unix(1, 0))
					return
				}
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-hr.Context().Done():
				return
			}
		}
	})
	follow := func(ctx context.Context) *http.Response {
		q := result.Of(http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/v1/client/fs/logs/"+string(allocID(1))+"?follow=true", nil)).OK(t)
		q.Header.Set("X-Nomad-Token", "writer")
		go func() { next <- "one" }()
		response := result.Of(http.DefaultClient.Do(q)).OK(t)
		got := make([]byte, 3)
		result.Of(io.ReadFull(response.Body, got)).OK(t)
		must.Eq(t, "one", string(got))
		return response
	}
	ctx, leave := context.WithCancel(t.Context())
	response := follow(ctx)
	leave()
	<-ended
	must.NoError(t, response.Body.Close())

	response = follow(t.Context())
	next <- "cut"
	_, err := io.ReadAll(response.Body)
	must.Error(t, err)
	must.NoError(t, response.Body.Close())
}

// A caller has a bounded number of open requests, and others have room beside it.
func TestReach_manyStreams(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	r := newReachable(t, func(w http.ResponseWriter, hr *http.Request) {
		select {
		case <-release:
		case <-hr.Context().Done():
		}
		_, _ = io.WriteString(w, "{}")
	})
	b := r.backend()
	b.Nodes, b.Access = r.sessions, tokens{"a": {Write: true, Read: true}, "b": {Write: true, Read: true}, "c": {Write: true, Read: true}}
	h := r.handler(b, httpapi.Options{})
	const all, most, mostOfOne = 4096, 2048, 1024
	codes := make(chan *httptest.ResponseRecorder, all)
	send := func(token string, n int) {
		for range n {
			go func() {
				q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/client/fs/ls/"+string(allocID(1)), nil)
				q.Header.Set("X-Nomad-Token", token)
				answer := httptest.NewRecorder()
				h.ServeHTTP(answer, q)
				codes <- answer
			}()
		}
	}
	refused := func(n int) {
		for range n {
			answer := <-codes
			must.Eq(t, http.StatusTooManyRequests, answer.Code)
			must.StrContains(t, answer.Body.String(), "too many requests to nodes are open: a server has at most 2048, and 1024 of one caller")
		}
	}
	send("a", all/2)
	refused(all/2 - mostOfOne)
	send("b", all/2)
	refused(all/2 - mostOfOne)
	send("c", 1)
	refused(1)
	close(release)
	for range most {
		must.Eq(t, http.StatusOK, (<-codes).Code)
	}
}

// A server that does not lead waits for an allocation that it does not have yet.
func TestReach_follower(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	r.mu.Lock()
	r.follows = true
	r.mu.Unlock()
	late := r.job("late", cluster.JobService, 1)
	codes := make(chan int, 1)
	go func() {
		response, _ := r.get(http.MethodGet, "/v1/client/allocation/"+string(allocID(9))+"/stats", "reader")
		codes <- response.StatusCode
	}()
	r.place(9, late, nodeID(1))
	must.Eq(t, http.StatusOK, <-codes)
}
