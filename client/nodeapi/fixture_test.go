package nodeapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// scripted plays the tasks of a node.
type scripted struct {
	tasks map[string][]nodeapi.Task
	// exec is what a command does.
	exec func(context.Context, driver.ExecStreams) (driver.ExitResult, error)
	// refuses is the answer to signals and restarts of tasks with this name.
	refuses map[string]error
	// calls gets a line for each act.
	calls chan string
}

func (s *scripted) List(_ context.Context, alloc string) ([]nodeapi.Task, error) {
	if s.tasks[alloc] == nil {
		return nil, fmt.Errorf("%w: allocation %s", nodeapi.ErrUnknown, alloc)
	}
	return s.tasks[alloc], nil
}

func (s *scripted) Exec(ctx context.Context, t nodeapi.Task, command []string, streams driver.ExecStreams) (driver.ExitResult, error) {
	s.calls <- fmt.Sprintf("exec %s %q tty=%t", t.ID, command, streams.TTY)
	return s.exec(ctx, streams)
}

func (s *scripted) Signal(_ context.Context, t nodeapi.Task, signal string) error {
	s.calls <- fmt.Sprintf("signal %s %s", t.ID, signal)
	return s.refuses[t.Name]
}

func (s *scripted) Restart(_ context.Context, alloc, task string, all bool) error {
	s.calls <- fmt.Sprintf("restart %s/%s all=%t", alloc, task, all)
	return s.refuses[task]
}

// world is a node with a handler behind a server.
type world struct {
	*testing.T
	tasks  *scripted
	server *httptest.Server
}

func newWorld(t *testing.T) *world {
	able := driver.Capabilities{Exec: true, SendSignals: true}
	task := func(name string) nodeapi.Task {
		return nodeapi.Task{Alloc: "two", Name: name, ID: driver.TaskID("two/" + name), State: "running", Running: true, Driver: "mock", Generation: 1, Capabilities: able}
	}
	one, web, dead, weak, away := task("web"), task("web"), task("init"), task("weak"), task("away")
	one.Alloc, one.ID = "one", "one/web"
	dead.Running, dead.State = false, "dead"
	weak.Capabilities = driver.Capabilities{}
	away.Generation = 0
	w := &world{T: t, tasks: &scripted{
		tasks: map[string][]nodeapi.Task{
			"one": {one}, "two": {web, dead}, "odd": {web, weak}, "away": {away}, "dead": {dead}, "weak": {weak},
		},
		calls: make(chan string, 1000),
	}}
	w.server = httptest.NewServer(nodeapi.New(nodeapi.Options{Tasks: w.tasks}))
	t.Cleanup(w.server.Close)
	return w
}

// put sends a body and returns the status and the text of the answer.
func (w *world) put(path, body string) (int, string) {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), http.MethodPut, w.server.URL+path, strings.NewReader(body))
	must.NoError(w, err)
	return w.do(q)
}

func (w *world) do(q *http.Request) (int, string) {
	w.Helper()
	answer, err := w.server.Client().Do(q)
	must.NoError(w, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must.NoError(w, err)
	return answer.StatusCode, string(text)
}

// refusedExec requests a command and returns why it is refused.
func (w *world) refusedExec(alloc string, query url.Values) (int, string) {
	w.Helper()
	q, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.server.URL+"/v1/client/allocation/"+alloc+"/exec?"+query.Encode(), nil)
	must.NoError(w, err)
	q.Header.Set("Connection", "Upgrade")
	q.Header.Set("Upgrade", nodeapi.ExecProtocol)
	return w.do(q)
}

// session is a command that runs, as the servers see it.
type session struct {
	w     *world
	conn  net.Conn
	lines *bufio.Reader
}

// exec runs a command in the task of an allocation with one task.
func (w *world) exec(query url.Values) *session {
	w.Helper()
	s, status := w.tryExec(query)
	must.EqOp(w, http.StatusSwitchingProtocols, status)
	return s
}

// tryExec requests a command, and returns the status of the answer.
func (w *world) tryExec(query url.Values) (*session, int) {
	w.Helper()
	if query.Get("command") == "" {
		query.Set("command", `["sh","-c","x"]`)
	}
	conn, err := net.Dial("tcp", w.server.Listener.Addr().String())
	must.NoError(w, err)
	w.Cleanup(func() { _ = conn.Close() })
	must.NoError(w, conn.SetDeadline(time.Now().Add(time.Minute)))
	_, err = fmt.Fprintf(conn, "POST /v1/client/allocation/one/exec?%s HTTP/1.1\r\nHost: n\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", query.Encode(), nodeapi.ExecProtocol)
	must.NoError(w, err)
	s := &session{w: w, conn: conn, lines: bufio.NewReader(conn)}
	answer, err := http.ReadResponse(s.lines, nil)
	must.NoError(w, err)
	_ = answer.Body.Close()
	if answer.StatusCode == http.StatusSwitchingProtocols {
		must.EqOp(w, nodeapi.ExecProtocol, answer.Header.Get("Upgrade"))
	}
	return s, answer.StatusCode
}

func (s *session) send(f wire.ExecInput) {
	s.w.Helper()
	line, err := json.Marshal(f)
	must.NoError(s.w, err)
	_, err = s.conn.Write(append(line, '\n'))
	must.NoError(s.w, err)
}

// next returns the next frame, or false at the end.
func (s *session) next() (wire.ExecOutput, bool) {
	s.w.Helper()
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return wire.ExecOutput{}, false
	}
	must.LessEq(s.w, nodeapi.MaxFrame+1, len(line))
	var f wire.ExecOutput
	must.NoError(s.w, json.Unmarshal(line, &f))
	return f, true
}

// end reads to the end of the command.
func (s *session) end() (stdout, stderr string, code int) {
	s.w.Helper()
	for {
		f, more := s.next()
		must.True(s.w, more, must.Sprint("the stream ends without an exit code: ", stdout, stderr))
		switch {
		case f.Stdout != nil:
			stdout += string(f.Stdout.Data)
		case f.Stderr != nil:
			stderr += string(f.Stderr.Data)
		case f.Exited:
			_, more := s.next()
			must.False(s.w, more)
			return stdout, stderr, f.Result.ExitCode
		}
	}
}
