package httpapi_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// dialExec opens a WebSocket for a command in a task of the first allocation.
func (r *reachable) dialExec(task, parameters string, header http.Header) (*websocket.Conn, error) {
	conn, response, err := websocket.DefaultDialer.DialContext(r.Context(), "ws"+strings.TrimPrefix(r.url, "http")+
		"/v1/client/allocation/"+string(allocID(1))+"/exec?command=[%22cat%22]&task="+task+parameters, header)
	if err != nil {
		return nil, err
	}
	_ = response.Body.Close()
	r.Cleanup(func() { _ = conn.Close() })
	return conn, nil
}

// With ws_handshake=true the first message has the token. A refusal is a close frame with the text.
func TestExec_handshake(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	for _, c := range []struct {
		name, first, task string
		code              int
		text              string
	}{
		{"token", `{"version":1,"auth_token":"writer"}`, "main", 0, ""},
		{"right to read", `{"version":1,"auth_token":"reader"}`, "main", websocket.ClosePolicyViolation, "Permission denied"},
		{"unknown token", `{"version":1,"auth_token":"x"}`, "main", websocket.ClosePolicyViolation, "ACL token not found"},
		{"no token", `{"version":1}`, "main", websocket.ClosePolicyViolation, "Permission denied"},
		{"version", `{"version":2,"auth_token":"writer"}`, "main", websocket.ClosePolicyViolation, "the first message has version 2, and must have 1"},
		{"no JSON", `writer`, "main", websocket.ClosePolicyViolation, "the first message is not a JSON object"},
		{"the node refuses", `{"version":1,"auth_token":"writer"}`, "other", websocket.ClosePolicyViolation, "unknown task"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			conn := result.Of(r.dialExec(c.task, "&ws_handshake=true", nil)).OK(t)
			must.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(c.first)))
			must.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte("{\"stdin\":\n{\"data\":\"aGk=\"}}")))
			_, message, err := conn.ReadMessage()
			if c.code != 0 {
				must.True(t, websocket.IsCloseError(err, c.code), must.Sprint(err))
				must.ErrorContains(t, err, c.text)
				return
			}
			must.NoError(t, err)
			must.Eq(t, `{"stdout":{"data":"aGk="}}`, string(message))
			must.NoError(t, conn.WriteMessage(websocket.TextMessage, []byte(`{"stdin":{"close":true}}`)))
			_, message, err = conn.ReadMessage()
			must.NoError(t, err)
			must.Eq(t, `{"exited":true,"result":{"exit_code":7}}`, string(message))
			_, _, err = conn.ReadMessage()
			must.True(t, websocket.IsCloseError(err, websocket.CloseNormalClosure), must.Sprint(err))
		})
	}
}

// A caller that leaves, sends no JSON or too much ends the command.
func TestExec_ends(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*websocket.Conn) error{
		"leaves":  func(c *websocket.Conn) error { return c.NetConn().Close() },
		"closes":  func(c *websocket.Conn) error { return c.WriteMessage(websocket.CloseMessage, nil) },
		"no JSON": func(c *websocket.Conn) error { return c.WriteMessage(websocket.TextMessage, []byte("{")) },
		"long":    func(c *websocket.Conn) error { return c.WriteMessage(websocket.TextMessage, make([]byte, 2<<20)) },
		"only header": func(c *websocket.Conn) error {
			_, err := c.NetConn().Write([]byte{0x81})
			_ = c.NetConn().Close()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := make(chan struct{})
			r := newReachable(t, func(w http.ResponseWriter, hr *http.Request) {
				defer close(ended)
				echoNode(w, hr)
			})
			conn := result.Of(r.dialExec("main", "", http.Header{"X-Nomad-Token": {"writer"}})).OK(t)
			_ = end(conn) // the server may close the connection during the write
			<-ended
		})
	}
}

// A command and a stream end when their token is taken away.
func TestReach_revoked(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}, 2)
	r := newReachable(t, func(w http.ResponseWriter, hr *http.Request) {
		defer func() { ended <- struct{}{} }()
		if strings.HasSuffix(hr.URL.Path, "/exec") {
			echoExec(w, hr)
			return
		}
		_ = http.NewResponseController(w).Flush()
		<-hr.Context().Done()
	})
	b := r.backend()
	access := &revocable{tokens: tokens{"writer": {Name: "w", Write: true}}}
	b.Nodes, b.Access = r.sessions, access
	r.url = r.serveAs(b, httpapi.Options{}).URL
	conn := result.Of(r.dialExec("main", "", http.Header{"X-Nomad-Token": {"writer"}})).OK(t)
	q := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/v1/client/fs/logs/"+string(allocID(1))+"?follow=true", nil)).OK(t)
	q.Header.Set("X-Nomad-Token", "writer")
	response := result.Of(http.DefaultClient.Do(q)).OK(t)
	access.gone.Store(true)
	<-ended
	<-ended
	_, _, err := conn.ReadMessage()
	must.Error(t, err)
	_, err = io.ReadAll(response.Body)
	must.Error(t, err)
	must.NoError(t, response.Body.Close())
}

// revocable are tokens that can be taken away.
type revocable struct {
	tokens tokens
	gone   atomic.Bool
}

func (r *revocable) Identify(token string) (httpapi.Identity, bool) {
	if r.gone.Load() {
		return httpapi.Identity{}, false
	}
	return r.tokens.Identify(token)
}

// When the session of the node ends, the connection of the caller ends.
func TestExec_sessionLost(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	conn := result.Of(r.dialExec("main", "", http.Header{"X-Nomad-Token": {"writer"}})).OK(t)
	r.sessions.mu.Lock()
	end := r.sessions.held[nodeID(1)]
	r.sessions.mu.Unlock()
	must.NoError(t, end.Close())
	_, _, err := conn.ReadMessage()
	must.Error(t, err)
}
