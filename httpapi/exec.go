package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Bounds of a command in a task.
const (
	// maxFrame bounds a message in either direction, in bytes.
	maxFrame = 1 << 20
	// greetingTime is for the first message, which has the token. maxGreeting bounds it, in bytes.
	greetingTime = 10 * time.Second
	maxGreeting  = 4096
	// maxGreetings bounds the callers of a server that have not shown their right yet,
	// maxGreetingsPerClient those of one address. They use no slot of callers with a right.
	maxGreetings          = 256
	maxGreetingsPerClient = 64
	// pingTime is the time between two signs of life to the caller. A caller that is silent for
	// silenceTime has left.
	pingTime    = 15 * time.Second
	silenceTime = time.Minute
	// farewellTime is for the caller to close the connection after the end of the command.
	farewellTime = 5 * time.Second
)

// execProtocol is the protocol to the client of the node: the messages of the WebSocket, one on a line.
const execProtocol = "nodedrain-exec"

// execAlloc answers GET /v1/client/allocation/{id}/exec: it runs a command in a task. The caller speaks
// WebSocket. With ws_handshake=true the token is in the first message, because a browser can send no
// header.
func execAlloc(q *request) error {
	if !websocket.IsWebSocketUpgrade(q.Request) || q.Method != http.MethodGet {
		return fail(http.StatusBadRequest, "a command in a task needs a WebSocket")
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

// greetThenExec reads the token from the first message. It says in a close frame why it runs no command.
func (p passage) greetThenExec() error {
	if p.backend.Nodes == nil {
		return errNoNodes()
	}
	stranger := p.client()
	if !p.greetings.begin(stranger) {
		return fail(http.StatusTooManyRequests, "too many callers have not sent their first message yet; retry later")
	}
	known := sync.OnceFunc(func() { p.greetings.end(stranger) })
	defer known()
	caller, err := p.upgrade()
	if err != nil {
		return nil // it has been answered
	}
	defer context.AfterFunc(p.Context(), func() { _ = caller.Close() })()
	caller.SetReadLimit(maxGreeting)
	token, err := greeting(caller)
	if err != nil {
		dismiss(caller, websocket.ClosePolicyViolation, err.Error())
		return nil
	}
	if token != "" {
		p.Header.Set("X-Nomad-Token", token)
	}
	end, err := p.beginCommand()
	if err != nil {
		p.refuse(caller, err)
		return nil
	}
	defer end()
	known()
	caller.SetReadLimit(maxFrame)
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
	p.route.needs = needsWrite
	if err := p.identify(); err != nil {
		return nil, err
	}
	return p.begin()
}

// refuse says in a close frame why no command runs.
func (p passage) refuse(caller *websocket.Conn, err error) {
	p.options.Logger.Debug("a command was refused", "error", err)
	why := asFailure(err)
	code := websocket.CloseInternalServerErr
	if why.code < http.StatusInternalServerError {
		code = websocket.ClosePolicyViolation
	}
	dismiss(caller, code, why.text)
}

// carry carries messages between a caller and a command, as long as the caller has the right.
func (p passage) carry(caller *websocket.Conn, command io.ReadWriteCloser) {
	ctx, end := p.whileAllowed()
	defer end()
	bridge(ctx, caller, command)
}

// startCommand checks the caller's right, and lets the client of the node start the command. The result
// carries the messages.
func (p passage) startCommand() (io.ReadWriteCloser, error) {
	p.route.needs = needsWrite
	if err := p.identify(); err != nil {
		return nil, err
	}
	node, err := p.nodeOfAlloc()
	if err != nil {
		return nil, err
	}
	r := p.forNode(http.MethodPost, nil)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", execProtocol)
	response, err := p.ask(node, r)
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
	return nil, fail(code, strings.TrimSpace(string(text)))
}

// upgrade makes the connection a WebSocket. After an error the request has been answered.
func (p passage) upgrade() (*websocket.Conn, error) {
	upgrader := websocket.Upgrader{
		HandshakeTimeout: greetingTime, ReadBufferSize: 4096, WriteBufferSize: 4096,
		CheckOrigin: sameOrigin,
		Error:       func(w http.ResponseWriter, _ *http.Request, code int, why error) { WriteError(w, code, why.Error()) },
	}
	caller, err := upgrader.Upgrade(hijacked{p.w}, p.Request, nil)
	if err != nil {
		return nil, err
	}
	caller.SetReadLimit(maxFrame)
	return caller, nil
}

// hijacked lets the WebSocket take a connection from behind wrapped writers.
type hijacked struct{ http.ResponseWriter }

// Hijack takes the connection.
func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}

// greeting reads the first message, and returns the token in it.
func greeting(caller *websocket.Conn) (token string, err error) {
	if err := caller.SetReadDeadline(time.Now().Add(greetingTime)); err != nil {
		return "", err
	}
	_, text, err := caller.ReadMessage()
	if err != nil {
		return "", errors.New("the first message did not arrive")
	}
	return parseGreeting(text)
}

// parseGreeting returns the token in a first message.
func parseGreeting(text []byte) (token string, err error) {
	var first struct {
		Version   int    `json:"version"`
		AuthToken string `json:"auth_token"`
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return "", errors.New("the first message is not a JSON object")
	}
	if first.Version != 1 {
		return "", fmt.Errorf("the first message has version %d, and must have 1", first.Version)
	}
	return first.AuthToken, nil
}

// maxReason is the longest text of a close frame, in bytes.
const maxReason = 123

// dismiss sends a close frame with a reason, and gives the caller a moment to close the connection: to
// close it at once could destroy what the caller has not read yet.
func dismiss(caller *websocket.Conn, code int, why string) {
	farewell(caller, code, why)
	drain(caller)
	_ = caller.Close()
}

// farewell sends a close frame. The caller of this server may have left.
func farewell(caller *websocket.Conn, code int, why string) {
	if len(why) > maxReason {
		why = strings.ToValidUTF8(why[:maxReason], "")
	}
	_ = caller.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, why), time.Now().Add(farewellTime))
	_ = caller.SetReadDeadline(time.Now().Add(farewellTime))
}

// drain reads until the caller closes the connection, or its time is over.
func drain(caller *websocket.Conn) {
	for {
		if _, _, err := caller.NextReader(); err != nil {
			return
		}
	}
}

// bridge carries messages between a caller and a command, until one of them ends or the context does.
// It closes the connection of the caller. It owns two goroutines until it returns.
func bridge(ctx context.Context, caller *websocket.Conn, command io.ReadWriteCloser) {
	ctx, cancel := context.WithCancel(ctx)
	b := &execBridge{caller: caller, command: command, over: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { _, _ = caller.Close(), command.Close() })()
	var running sync.WaitGroup
	running.Go(b.fromCommand)
	running.Go(b.ping)
	b.fromCaller()
	cancel()
	running.Wait()
	_, _ = caller.Close(), command.Close()
}

// execBridge carries the messages of one command.
type execBridge struct {
	caller  *websocket.Conn
	command io.ReadWriteCloser
	// over is closed when no more messages come from the command.
	over chan struct{}
}

// ended reports whether no more messages come from the command.
func (b *execBridge) ended() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// fromCaller hands the caller's messages to the command. It returns when the caller has left.
func (b *execBridge) fromCaller() {
	alive := func() {
		if !b.ended() { // else farewell has set the time
			_ = b.caller.SetReadDeadline(time.Now().Add(silenceTime))
		}
	}
	b.caller.SetPongHandler(func(string) error {
		alive()
		return nil
	})
	for {
		alive()
		_, message, err := b.caller.ReadMessage()
		if err != nil {
			return
		}
		if b.ended() {
			continue
		}
		var line bytes.Buffer
		if err := json.Compact(&line, message); err != nil {
			_ = b.command.Close()
			dismiss(b.caller, websocket.CloseInvalidFramePayloadData, "a message is not JSON")
			return
		}
		line.WriteByte('\n')
		if _, err := line.WriteTo(b.command); err != nil {
			_ = b.command.Close() // fromCommand ends the connection
		}
	}
}

// fromCommand hands the messages of the command to the caller, and says farewell after the last one.
func (b *execBridge) fromCommand() {
	lines := bufio.NewScanner(b.command)
	lines.Buffer(nil, maxFrame)
	for lines.Scan() {
		if err := b.caller.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
			break
		}
		if err := b.caller.WriteMessage(websocket.TextMessage, lines.Bytes()); err != nil {
			_ = b.caller.Close()
			break
		}
	}
	close(b.over)
	if lines.Err() != nil {
		farewell(b.caller, websocket.CloseInternalServerErr, "the connection to the node was lost")
		return
	}
	farewell(b.caller, websocket.CloseNormalClosure, "")
}

// ping sends signs of life to the caller until the command ends.
func (b *execBridge) ping() {
	every := time.NewTicker(pingTime)
	defer every.Stop()
	for {
		select {
		case <-b.over:
			return
		case <-every.C:
			if err := b.caller.WriteControl(websocket.PingMessage, nil, time.Now().Add(pingTime)); err != nil {
				return
			}
		}
	}
}
