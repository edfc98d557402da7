package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/exec"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
)

// Bounds of a command in a task.
const (
	// maxGreeting bounds the first message, in bytes.
	maxGreeting = 4096
	// maxGreetings bounds the callers of a server that have not shown their right yet,
	// maxGreetingsPerClient those of one address. They use no slot of callers with a right.
	maxGreetings          = 256
	maxGreetingsPerClient = 64
)

// execProtocol is the protocol to the client of the node: the messages of the WebSocket, one on a line.
const execProtocol = "nodedrain-exec"

// execAlloc answers GET /v1/client/allocation/{id}/exec: it runs a command in a task. The caller speaks
// WebSocket. With ws_handshake=true the token is in the first message, because a browser can send no
// header.
func execAlloc(q *request) error {
	if !websocket.IsWebSocketUpgrade(q.Request) || q.Method != http.MethodGet {
		return failure.Bad("a command in a task needs a WebSocket")
	}
	p := passage{q}
	if greets(q.Request) {
		return p.greetThenExec()
	}
	end, err := p.begin()
	if err != nil {
		return err
	}
	defer end()
	command, err := p.startCommand()
	if err != nil {
		return err
	}
	defer command.Close()
	caller, err := p.upgrade()
	if err != nil {
		return nil // it has been answered
	}
	p.carry(caller, command)
	return nil
}

// greets reports whether the caller sends its token in the first message.
func greets(r *http.Request) bool { return r.URL.Query().Get("ws_handshake") == "true" }

// greetThenExec reads the token from the first message. A close frame has the reason why no command runs.
func (p passage) greetThenExec() error {
	if p.q.backend.Nodes == nil {
		return errNoNodes()
	}
	stranger := p.q.client()
	if !p.q.handler.greetings.Take(stranger) {
		return failure.New(http.StatusTooManyRequests, "too many callers have not sent their first message yet; retry later")
	}
	known := sync.OnceFunc(func() { p.q.handler.greetings.Free(stranger) })
	defer known()
	caller, err := p.upgrade()
	if err != nil {
		return nil // it has been answered
	}
	defer context.AfterFunc(p.q.Context(), func() { _ = caller.Close() })()
	caller.SetReadLimit(maxGreeting)
	token, err := exec.Greeting(caller)
	if err != nil {
		exec.Dismiss(caller, websocket.ClosePolicyViolation, err.Error())
		return nil
	}
	if token != "" {
		p.q.Header.Set("X-Nomad-Token", token)
	}
	end, err := p.beginCommand()
	if err != nil {
		p.refuse(caller, err)
		return nil
	}
	defer end()
	known()
	caller.SetReadLimit(exec.MaxFrame)
	command, err := p.startCommand()
	if err != nil {
		p.refuse(caller, err)
		return nil
	}
	defer command.Close()
	p.carry(caller, command)
	return nil
}

// beginCommand checks the caller's right, and counts the request until the caller calls end.
func (p passage) beginCommand() (end func(), err error) {
	p.q.route.needs = needsWrite
	if err := p.q.identify(); err != nil {
		return nil, err
	}
	return p.begin()
}

// refuse sends a close frame with the reason why no command runs.
func (p passage) refuse(caller *websocket.Conn, err error) {
	p.q.options.Logger.Debug("a command was refused", "error", err)
	why := asFailure(err)
	code := websocket.CloseInternalServerErr
	if why.Code < http.StatusInternalServerError {
		code = websocket.ClosePolicyViolation
	}
	exec.Dismiss(caller, code, why.Text)
}

// carry carries messages between a caller and a command, as long as the caller has the right.
func (p passage) carry(caller *websocket.Conn, command io.ReadWriteCloser) {
	ctx, end := p.whileAllowed()
	defer end()
	exec.Bridge(ctx, caller, command)
}

// startCommand checks the caller's right, and lets the client of the node start the command. The result
// carries the messages.
func (p passage) startCommand() (io.ReadWriteCloser, error) {
	p.q.route.needs = needsWrite
	if err := p.q.identify(); err != nil {
		return nil, err
	}
	node, err := p.nodeOfAlloc()
	if err != nil {
		return nil, err
	}
	r := p.forNode(http.MethodPost, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", execProtocol)
	response, err := p.send(node, r)
	if err != nil {
		return nil, err
	}
	if command, is := response.Body.(io.ReadWriteCloser); is && response.StatusCode == http.StatusSwitchingProtocols {
		return command, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxErrorText)) // a text that ends early is good enough
	code := response.StatusCode
	if code < http.StatusBadRequest {
		code, text = http.StatusInternalServerError, fmt.Appendf(nil, "the client of node %s runs no commands", node.Name)
	}
	return nil, failure.New(code, strings.TrimSpace(string(text)))
}

// upgrade makes the connection a WebSocket. After an error the request has been answered.
func (p passage) upgrade() (*websocket.Conn, error) {
	upgrader := websocket.Upgrader{
		HandshakeTimeout: exec.GreetingTime, ReadBufferSize: 4096, WriteBufferSize: 4096,
		CheckOrigin: sameOrigin,
		Error:       func(w http.ResponseWriter, _ *http.Request, code int, why error) { WriteError(w, code, why.Error()) },
	}
	caller, err := upgrader.Upgrade(hijacked{p.q.w}, p.q.Request, nil)
	if err != nil {
		return nil, err
	}
	caller.SetReadLimit(exec.MaxFrame)
	return caller, nil
}

// hijacked lets the WebSocket take a connection from behind wrapped writers.
type hijacked struct{ http.ResponseWriter }

// Hijack takes the connection.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}
