package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// ExecRequest is a command to run in a task.
type ExecRequest struct {
	Task    string
	Command []string
	// TTY gives the command a terminal. Its output is then one stream, Stdout.
	TTY bool
}

// ExecStreams are the streams of a command.
type ExecStreams struct {
	// Stdin is read until it ends, or until the command has ended. Nil is empty.
	Stdin io.Reader
	// Stdout and Stderr get the output. A failed write ends the command's connection.
	Stdout, Stderr io.Writer
	// Sizes are sizes of the terminal, the first one included; nil sends none.
	Sizes <-chan wire.TerminalSize
}

const (
	// execHeartbeat is the interval of messages without content.
	execHeartbeat = 10 * time.Second
	// maxExecMessage bounds a message of the server. Servers send at most 1 MiB.
	maxExecMessage = 2 << 20
	// execRead is the size of a read of Stdin.
	execRead = 16 << 10
)

// errNoExitCode is the end of a connection before that of its command.
var errNoExitCode = errors.New("the connection ended before the command")

// Exec runs a command in a running task, and returns its exit code. The context ends the connection, and
// the node then ends the command. An error means that the exit code is not known. It is an [*Error] if
// the command did not start. Exec may return while a read of Stdin is under way, and what that reads is
// lost.
func (a Alloc) Exec(ctx context.Context, r ExecRequest, s ExecStreams) (exitCode int, err error) {
	command, err := json.Marshal(r.Command)
	if err != nil {
		return 0, fmt.Errorf("encoding the command: %w", err)
	}
	values := url.Values{"task": {r.Task}, "tty": {strconv.FormatBool(r.TTY)}, "command": {string(command)}}
	conn, err := a.client.connection.dialWebSocket(ctx, a.node("exec"), values)
	if err != nil {
		return 0, err
	}
	conn.SetReadLimit(maxExecMessage)
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	var sending sync.WaitGroup
	defer func() {
		cancel()
		_ = conn.Close()
		sending.Wait()
	}()
	sending.Go(func() { sendExec(ctx, conn, s) })
	exitCode, err = receiveExec(conn, s)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return exitCode, err
}

// sendExec sends input, sizes of the terminal and heartbeats until the context ends or a write fails. The
// receiver gets the reason.
func sendExec(ctx context.Context, conn *websocket.Conn, s ExecStreams) {
	inputs := make(chan *wire.ExecData)
	go readExec(ctx, s.Stdin, inputs)
	beat := time.NewTicker(execHeartbeat)
	defer beat.Stop()
	sizes := s.Sizes
	for {
		var m wire.ExecInput
		select {
		case <-ctx.Done():
			return
		case m.Stdin = <-inputs:
		case size, more := <-sizes:
			if !more {
				sizes = nil
				continue
			}
			m.TTYSize = &size
		case <-beat.C:
		}
		if err := conn.WriteJSON(m); err != nil {
			return
		}
	}
}

// readExec reads the input until its end. A read that fails is its end.
func readExec(ctx context.Context, in io.Reader, to chan<- *wire.ExecData) {
	buffer := make([]byte, execRead)
	for ended := in == nil; ; {
		data := &wire.ExecData{Close: ended}
		if !ended {
			n, err := in.Read(buffer)
			ended = err != nil
			if n == 0 {
				continue
			}
			data.Data = append([]byte(nil), buffer[:n]...)
		}
		select {
		case to <- data:
		case <-ctx.Done():
			return
		}
		if data.Close {
			return
		}
	}
}

// receiveExec writes the output until the command ends.
func receiveExec(conn *websocket.Conn, s ExecStreams) (exitCode int, err error) {
	write := func(to io.Writer, what string, d *wire.ExecData) error {
		if d == nil || len(d.Data) == 0 {
			return nil
		}
		if _, err := to.Write(d.Data); err != nil {
			return fmt.Errorf("writing the %s: %w", what, err)
		}
		return nil
	}
	for {
		var m wire.ExecOutput
		if err := conn.ReadJSON(&m); err != nil {
			why, closed := errors.AsType[*websocket.CloseError](err)
			switch {
			case closed && why.Code == websocket.CloseNormalClosure && why.Text == "":
				return 0, errNoExitCode
			case closed && why.Code != websocket.CloseAbnormalClosure && why.Text != "":
				return 0, errors.New(why.Text)
			}
			return 0, fmt.Errorf("%w: %w", errNoExitCode, err)
		}
		if err := write(s.Stdout, "output", m.Stdout); err != nil {
			return 0, err
		}
		if err := write(s.Stderr, "error output", m.Stderr); err != nil {
			return 0, err
		}
		if m.Exited && m.Result != nil {
			return m.Result.ExitCode, nil
		}
	}
}

// dialWebSocket opens a WebSocket. It tries each address once, but uses no other one after a server that
// may have begun to act.
func (c *connection) dialWebSocket(ctx context.Context, path string, values url.Values) (*websocket.Conn, error) {
	for left := len(c.bases) - 1; ; left-- {
		at := c.begin()
		var reached atomic.Bool
		conn, response, err := c.webSocketAt(ctx, at, path, values, &reached)
		if err == nil {
			return conn, nil
		}
		again := left > 0 && ctx.Err() == nil
		if response == nil {
			if ctx.Err() == nil {
				c.lost(at, err)
			}
			if again && !reached.Load() {
				continue
			}
			return nil, err
		}
		if again && elsewhere(response, true) {
			c.leave(at)
			continue
		}
		return nil, readError(response)
	}
}

// webSocketAt opens a WebSocket at one address. An answer has a body in memory.
func (c *connection) webSocketAt(ctx context.Context, at *address, path string, values url.Values, reached *atomic.Bool) (*websocket.Conn, *http.Response, error) {
	r := request{connection: c, at: at, method: http.MethodGet, path: path, values: values}
	upgrade, err := r.build(ctx)
	if err != nil {
		return nil, nil, err
	}
	target := *upgrade.URL
	target.Scheme = map[string]string{"http": "ws", "https": "wss"}[target.Scheme]
	dialer := websocket.Dialer{
		HandshakeTimeout: lastLimit, Proxy: c.proxy, TLSClientConfig: c.tls,
		NetDialContext: func(ctx context.Context, network, to string) (net.Conn, error) {
			conn, err := c.dial(ctx, network, to)
			reached.Store(err == nil)
			return conn, err
		},
	}
	return dialer.DialContext(ctx, target.String(), upgrade.Header)
}
