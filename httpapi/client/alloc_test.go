package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// Each call about an allocation sends its method, path and body.
func TestAlloc_calls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for want, call := range map[string]func(client.Alloc) error{
		"GET /v1/client/fs/ls/a%2Fb?path=%2F ":    func(a client.Alloc) error { _, err := a.Files(ctx, "/"); return err },
		"GET /v1/client/fs/stat/a%2Fb?path=x+y ":  func(a client.Alloc) error { _, err := a.Stat(ctx, "x y"); return err },
		"GET /v1/client/allocation/a%2Fb/stats? ": func(a client.Alloc) error { _, err := a.Stats(ctx); return err },
		"PUT /v1/allocation/a%2Fb/stop? {}":       func(a client.Alloc) error { _, err := a.Stop(ctx); return err },
		"GET /v1/client/fs/cat/a%2Fb?path=alloc%2F ": func(a client.Alloc) error {
			file, err := a.Open(ctx, "alloc/")
			if err != nil {
				return err
			}
			return file.Close()
		},
		`PUT /v1/client/allocation/a%2Fb/signal? {"Task":"web","Signal":"SIGHUP"}`: func(a client.Alloc) error {
			return a.Signal(ctx, wire.SignalRequest{Task: "web", Signal: "SIGHUP"})
		},
		`PUT /v1/client/allocation/a%2Fb/restart? {"TaskName":"","AllTasks":true}`: func(a client.Alloc) error {
			return a.Restart(ctx, wire.RestartRequest{AllTasks: true})
		},
		"GET /v1/client/fs/logs/a%2Fb?follow=true&offset=5&origin=end&task=web&type=stderr ": func(a client.Alloc) error {
			return drained(a.Logs(ctx, client.LogsQuery{Task: "web", Stderr: true, Follow: true, Offset: 5, FromEnd: true}))
		},
		"GET /v1/client/fs/logs/a%2Fb?file=web.stdout.3&follow=false&offset=7&origin=start&task=web&type=stdout ": func(a client.Alloc) error {
			return drained(a.Logs(ctx, client.LogsQuery{Task: "web", Offset: 7, File: "web.stdout.3"}))
		},
	} {
		c, last := answering(t, client.Config{}, http.StatusOK, nil, "null")
		must.NoError(t, call(c.Alloc("a/b")))
		must.Eq(t, want, fmt.Sprintf("%s %s?%s %s", last.method, last.path, last.query, last.body))

		c, _ = answering(t, client.Config{}, http.StatusNotFound, nil, "no such allocation")
		must.True(t, client.NotFound(call(c.Alloc("a/b"))), must.Sprint(want))
	}
	c, last := answering(t, client.Config{}, http.StatusOK, nil, "null")
	result.Of(c.NodeStats(ctx, "n")).OK(t)
	must.Eq(t, "/v1/client/stats", last.path)
	must.Eq(t, "node_id=n", last.query)
}

func drained(frames func(func(wire.StreamFrame, error) bool)) error {
	for _, err := range frames {
		if err != nil {
			return err
		}
	}
	return nil
}

// A stream yields its frames, and not the empty ones, until it ends, breaks or is left.
func TestAlloc_Logs(t *testing.T) {
	t.Parallel()
	const two = `{}{"Data":"YQ==","File":"f","Offset":1} {} {"File":"f","FileEvent":"file truncated"}` + "\n{}"
	for name, c := range map[string]struct {
		body  string
		want  []string
		fails string
	}{
		"nothing":   {"", nil, ""},
		"frames":    {two, []string{"f 1 a ", "f 0  file truncated"}, ""},
		"cut off":   {two + `{"Data":"YQ`, []string{"f 1 a ", "f 0  file truncated"}, "reading the stream: unexpected EOF"},
		"no JSON":   {two + "the node is gone", []string{"f 1 a ", "f 0  file truncated"}, "reading the stream: invalid character 'h'"},
		"too large": {`{"Data":"` + strings.Repeat("A", 2<<20) + `"}`, nil, "a frame is larger than 1 MiB"},
		"large":     {`{"Offset":3,"Data":"` + strings.Repeat("A", 1<<19) + `"}`, []string{fmt.Sprintf(" 3 %s ", strings.Repeat("\x00", 3<<17))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, _ := answering(t, client.Config{}, http.StatusOK, nil, c.body)
			var got []string
			failed := ""
			for frame, err := range server.Alloc("a").Logs(t.Context(), client.LogsQuery{Task: "web"}) {
				must.Eq(t, "", failed)
				if err != nil {
					failed = err.Error()
					continue
				}
				got = append(got, fmt.Sprintf("%s %d %s %s", frame.File, frame.Offset, frame.Data, frame.FileEvent))
			}
			must.Eq(t, c.want, got)
			must.StrContains(t, failed, c.fails)
			must.Eq(t, c.fails == "", failed == "")
		})
	}
	c, _ := answering(t, client.Config{}, http.StatusOK, nil, two)
	for range c.Alloc("a").Logs(t.Context(), client.LogsQuery{}) {
		break
	}
}

// execServer is a server that answers an exec with a function.
func execServer(t *testing.T, answer func(*http.Request, *websocket.Conn)) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		answer(r, conn)
	}))
	t.Cleanup(server.Close)
	return server
}

func execOver(t *testing.T, config client.Config, in io.Reader) (code int, out string, err error) {
	t.Helper()
	c := result.Of(client.New(config)).OK(t)
	t.Cleanup(c.Close)
	var written bytes.Buffer
	code, err = c.Alloc("a/b").Exec(t.Context(), client.ExecRequest{Task: "web", Command: []string{"ls", "-l"}}, client.ExecStreams{
		Stdin: in, Stdout: &written, Stderr: &written,
	})
	return code, written.String(), err
}

// A command is requested with the token and the namespace, and sends its input until its end.
func TestAlloc_Exec(t *testing.T) {
	t.Parallel()
	server := execServer(t, func(r *http.Request, conn *websocket.Conn) {
		text := r.URL.EscapedPath() + "?" + r.URL.RawQuery + " " + r.Header.Get("X-Nomad-Token")
		for {
			var m wire.ExecInput
			if conn.ReadJSON(&m) != nil {
				return
			}
			line, _ := json.Marshal(m)
			text += "\n" + string(line)
			if m.Stdin != nil && m.Stdin.Close {
				break
			}
		}
		_ = conn.WriteJSON(wire.ExecOutput{Stdout: &wire.ExecData{Data: []byte(text)}})
		_ = conn.WriteJSON(wire.ExecOutput{Exited: true, Result: &wire.ExecResult{ExitCode: 3}})
	})
	code, out, err := execOver(t, client.Config{Address: server.URL, Token: "secret", Namespace: "ops"}, strings.NewReader("in"))
	must.NoError(t, err)
	must.Eq(t, 3, code)
	must.Eq(t, `/v1/client/allocation/a%2Fb/exec?command=%5B%22ls%22%2C%22-l%22%5D&namespace=ops&task=web&tty=false secret`+
		"\n"+`{"stdin":{"data":"aW4="}}`+"\n"+`{"stdin":{"close":true}}`, out)
	_, out, err = execOver(t, client.Config{Address: server.URL}, nil)
	must.NoError(t, err)
	must.StrHasSuffix(t, "\n"+`{"stdin":{"close":true}}`, out)
}

// A command is requested at the next address only if it cannot have started: no server was reached, or
// the server has refused and another one may not. It starts once.
func TestAlloc_Exec_nextAddress(t *testing.T) {
	t.Parallel()
	good := execServer(t, func(_ *http.Request, conn *websocket.Conn) {
		_ = conn.WriteJSON(wire.ExecOutput{Exited: true, Result: &wire.ExecResult{}})
	})
	closed := httptest.NewServer(nil)
	closed.Close()
	refusing := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "why", status) }))
		t.Cleanup(server.Close)
		return server.URL
	}
	hangsUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}))
	t.Cleanup(hangsUp.Close)
	for name, c := range map[string]struct{ first, want string }{
		"does not run": {closed.URL, ""},
		"stops":        {refusing(http.StatusServiceUnavailable), ""},
		"refuses":      {refusing(http.StatusConflict), "Unexpected response code: 409 (why)"},
		"has no route": {refusing(http.StatusNotImplemented), "Unexpected response code: 501 (why)"},
		"hangs up":     {hangsUp.URL, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := execOver(t, client.Config{Address: c.first + "," + good.URL}, nil)
			if c.want == "" {
				must.NoError(t, err)
				return
			}
			must.ErrorContains(t, err, c.want)
			_, refused := err.(*client.Error)
			must.Eq(t, strings.HasPrefix(c.want, "Unexpected"), refused)
		})
	}
	_, _, err := execOver(t, client.Config{Address: closed.URL + "," + refusing(http.StatusServiceUnavailable)}, nil)
	must.ErrorContains(t, err, "503 (why)")
}

// WebSockets use the TLS settings of the client, with HTTP/1.1.
func TestAlloc_Exec_tls(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		_ = conn.WriteJSON(wire.ExecOutput{Exited: true, Result: &wire.ExecResult{ExitCode: 5}})
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	code := result.Read(execOver(t, client.Config{Address: server.URL, TLS: client.TLS{SkipVerify: true}}, nil)).OK(t)
	must.Eq(t, 5, code)
	_, _, err := execOver(t, client.Config{Address: server.URL}, nil)
	must.ErrorContains(t, err, "certificate")
}

// The end of the context ends a command.
func TestAlloc_Exec_ends(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	server := execServer(t, func(_ *http.Request, conn *websocket.Conn) {
		defer close(gone)
		cancel()
		_, _, _ = conn.ReadMessage()
	})
	c := result.Of(client.New(client.Config{Address: server.URL})).OK(t)
	in, _ := io.Pipe()
	_, err := c.Alloc("a").Exec(ctx, client.ExecRequest{Command: []string{"sleep"}}, client.ExecStreams{Stdin: in, Stdout: io.Discard, Stderr: io.Discard})
	must.ErrorIs(t, err, context.Canceled)
	<-gone
}
