package httpapi_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// Only the right to write reaches tasks. A refused request does not reach the node.
func TestSecurity_CommandsNeedWrite(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	id := string(allocID(1))
	for _, token := range []string{"", "unknown", "none", "reader", secretOf(nodeID(1))} {
		for _, path := range []string{"ls", "stat", "cat", "readat", "stream", "logs"} {
			response, _ := r.get(http.MethodGet, "/v1/client/fs/"+path+"/"+id, token)
			must.Eq(t, http.StatusForbidden, response.StatusCode, must.Sprint(path, token))
		}
		for _, path := range []string{"signal", "restart"} {
			response, _ := r.get(http.MethodPut, "/v1/client/allocation/"+id+"/"+path, token)
			must.Eq(t, http.StatusForbidden, response.StatusCode, must.Sprint(path, token))
		}
		_, err := r.dialExec("main", "", http.Header{"X-Nomad-Token": {token}})
		must.ErrorIs(t, err, websocket.ErrBadHandshake)
	}
	r.receiving.Lock()
	defer r.receiving.Unlock()
	must.SliceEmpty(t, r.received)
}

// No token opens a session, and no secret of another node.
func TestSecurity_SessionNeedsTheNodesSecret(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	for _, token := range []string{"", "unknown", "none", "reader", "writer", secretOf(nodeID(2))} {
		response, _ := r.get(http.MethodGet, "/v1/client/"+string(nodeID(1))+"/session", token)
		must.Eq(t, http.StatusForbidden, response.StatusCode, must.Sprint(token))
	}
}

// A request about the allocation of another node does not reach the node that has a session.
func TestSecurity_SessionServesItsNodeAlone(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	response, text := r.get(http.MethodGet, "/v1/client/fs/ls/"+string(allocID(2)), "writer")
	must.Eq(t, http.StatusInternalServerError, response.StatusCode)
	must.StrContains(t, text, "has no session")
	r.receiving.Lock()
	defer r.receiving.Unlock()
	must.SliceEmpty(t, r.received)
}

// A stranger cannot make the server keep a long first message.
func TestExec_longGreeting(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	conn := result.Of(r.dialExec("main", "&ws_handshake=true", nil)).OK(t)
	first := `{"version":1,"auth_token":"writer","more":"` + strings.Repeat("x", 8<<10) + `"}`
	err := conn.WriteMessage(websocket.TextMessage, []byte(first))
	if err == nil {
		_, _, err = conn.ReadMessage()
	}
	// The server closes the connection as soon as it has read the length of the message. If the rest
	// arrives later, the kernel resets the connection, and the reason is lost.
	reset := errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	must.True(t, reset || websocket.IsCloseError(err, websocket.CloseMessageTooBig), must.Sprint(err))
	r.receiving.Lock()
	defer r.receiving.Unlock()
	must.SliceEmpty(t, r.received)
}

// Strangers who send no first message use no slot of a caller with a right.
func TestExec_silentStrangers(t *testing.T) {
	t.Parallel()
	r := newReachable(t, echoNode)
	for range 64 {
		result.Of(r.dialExec("main", "&ws_handshake=true", nil)).OK(t)
	}
	response, _ := r.get(http.MethodGet, "/v1/client/allocation/"+string(allocID(1))+"/exec?ws_handshake=true", "",
		"Connection", "Upgrade", "Upgrade", "websocket")
	must.Eq(t, http.StatusTooManyRequests, response.StatusCode)
	result.Of(r.dialExec("main", "", http.Header{"X-Nomad-Token": {"writer"}})).OK(t)
}
