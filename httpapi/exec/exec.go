// Package exec carries the messages of a command in a task between the WebSocket of a caller and the client of
// the node. Begin with [Bridge].
package exec

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// MaxFrame bounds a message in either direction, in bytes.
	MaxFrame = 1 << 20
	// GreetingTime is for the first message, which has the token.
	GreetingTime = 10 * time.Second
	// writeTime is for the caller to read a message.
	writeTime = time.Minute
	// pingTime is the time between two signs of life to the caller. A caller that is silent for
	// silenceTime has left.
	pingTime    = 15 * time.Second
	silenceTime = time.Minute
	// farewellTime is for the caller to close the connection after the end of the command.
	farewellTime = 5 * time.Second
)

// Greeting reads the first message, and returns the token in it.
func Greeting(caller *websocket.Conn) (token string, err error) {
	if err := caller.SetReadDeadline(time.Now().Add(GreetingTime)); err != nil {
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

// Dismiss sends a close frame with a reason, and gives the caller a moment to close the connection: to
// close it at once could destroy what the caller has not read yet.
func Dismiss(caller *websocket.Conn, code int, why string) {
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

// Bridge carries messages between a caller and a command, until one of them ends or the context does.
// It closes the connection of the caller. It owns two goroutines until it returns.
func Bridge(ctx context.Context, caller *websocket.Conn, command io.ReadWriteCloser) {
	ctx, cancel := context.WithCancel(ctx)
	b := &bridge{caller: caller, command: command, over: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { _, _ = caller.Close(), command.Close() })()
	var running sync.WaitGroup
	running.Go(b.fromCommand)
	running.Go(b.ping)
	b.fromCaller()
	cancel()
	running.Wait()
	_, _ = caller.Close(), command.Close()
}

// bridge carries the messages of one command.
type bridge struct {
	caller  *websocket.Conn
	command io.ReadWriteCloser
	// over is closed when no more messages come from the command.
	over chan struct{}
}

// ended reports whether no more messages come from the command.
func (b *bridge) ended() bool {
	select {
	case <-b.over:
		return true
	default:
		return false
	}
}

// fromCaller hands the caller's messages to the command. It returns when the caller has left.
func (b *bridge) fromCaller() {
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
			Dismiss(b.caller, websocket.CloseInvalidFramePayloadData, "a message is not JSON")
			return
		}
		line.WriteByte('\n')
		if _, err := line.WriteTo(b.command); err != nil {
			_ = b.command.Close() // fromCommand ends the connection
		}
	}
}

// fromCommand hands the messages of the command to the caller, and sends a close frame after the last one.
func (b *bridge) fromCommand() {
	lines := bufio.NewScanner(b.command)
	lines.Buffer(nil, MaxFrame)
	for lines.Scan() {
		if err := b.caller.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
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
func (b *bridge) ping() {
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
