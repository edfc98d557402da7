package nodeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// ExecProtocol is the name of the protocol that a request to run a command upgrades to.
const ExecProtocol = "nodedrain-exec"

const (
	// MaxExecs is how many commands run on a node at a time on behalf of operators. Each holds a few
	// frames of at most [MaxFrame] at a time.
	MaxExecs = 256
	// maxCommand bounds a command, in bytes of JSON.
	maxCommand = 64 << 10
	// aliveInterval is the time between two signs of life. A caller that is gone is noticed by them if
	// the command does not read its input, so that the node does not see the end of it.
	aliveInterval = 10 * time.Second
)

// errorTime bounds the writing of why a command is ended because of a frame.
const errorTime = 5 * time.Second

// execRequest is a command to run.
type execRequest struct {
	task    Task
	tty     bool
	command []string
}

// exec answers POST /v1/client/allocation/{id}/exec. After the answer 101 the connection carries frames of
// JSON, one in a line. The end of the caller's frames ends the command.
func (h *Handler) exec(w http.ResponseWriter, r *http.Request) error {
	if !strings.EqualFold(r.Header.Get("Upgrade"), ExecProtocol) {
		return refuse(http.StatusUpgradeRequired, "this request upgrades the connection to "+ExecProtocol)
	}
	q, err := h.execRequest(r)
	if err != nil {
		return err
	}
	select {
	case h.execs <- struct{}{}:
		defer func() { <-h.execs }()
	default:
		return refuse(http.StatusTooManyRequests, fmt.Sprintf("%d commands of operators run on this node: retry later", MaxExecs))
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fmt.Errorf("taking over the connection: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Time{}) // the server's limits are for short requests
	const answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + ExecProtocol + "\r\n\r\n"
	if _, err := io.WriteString(conn, answer); err != nil {
		return nil // the caller has disconnected
	}
	h.options.Logger.Info("an operator runs a command in a task", "alloc", q.task.Alloc, "task", q.task.Name, "command", q.command[0], "tty", q.tty)
	// To read the end of the connection ends the context of the request, without the reason.
	h.runExec(context.WithoutCancel(r.Context()), conn, buffered.Reader, q)
	return nil
}

func (h *Handler) execRequest(r *http.Request) (q execRequest, err error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, refuse(http.StatusBadRequest, "the query is not valid: "+err.Error())
	}
	if q.command, err = parseCommand(query.Get("command")); err != nil {
		return q, err
	}
	if text := query.Get("tty"); text != "" {
		if q.tty, err = strconv.ParseBool(text); err != nil {
			return q, refuse(http.StatusBadRequest, fmt.Sprintf("tty is %q, and must be true or false", text))
		}
	}
	tasks, err := h.list(r)
	if err != nil {
		return q, err
	}
	switch name := query.Get("task"); {
	case name != "":
		if q.task, err = find(tasks, name); err != nil {
			return q, err
		}
	case len(tasks) == 1:
		q.task = tasks[0]
	default:
		return q, refuse(http.StatusBadRequest, "task is missing: the allocation has the tasks "+names(tasks))
	}
	if err := checkRunning(q.task); err != nil {
		return q, err
	}
	if !q.task.Capabilities.Exec {
		return q, refuse(http.StatusBadRequest, fmt.Sprintf("the driver %s of task %q cannot run commands", q.task.Driver, q.task.Name))
	}
	return q, nil
}

// parseCommand reads a command: a JSON array of texts.
func parseCommand(text string) (command []string, err error) {
	switch {
	case len(text) > maxCommand:
		return nil, refuse(http.StatusBadRequest, fmt.Sprintf("command has more than %d bytes", maxCommand))
	case json.Unmarshal([]byte(text), &command) != nil:
		return nil, refuse(http.StatusBadRequest, `command must be a JSON array of texts, such as ["ls","-l"]`)
	case len(command) == 0 || command[0] == "":
		return nil, refuse(http.StatusBadRequest, "command is empty")
	case slices.ContainsFunc(command, func(part string) bool { return strings.ContainsRune(part, 0) }):
		return nil, refuse(http.StatusBadRequest, "command contains a zero byte")
	}
	return command, nil
}

// errCallerGone ends a command whose caller has closed the connection.
var errCallerGone = errors.New("the caller has disconnected")

// runExec runs a command over a connection, and returns when nothing of it is left.
func (h *Handler) runExec(ctx context.Context, conn net.Conn, from *bufio.Reader, q execRequest) {
	ctx, end := context.WithCancelCause(ctx)
	// The end of the context ends a read and a write in progress.
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	frames := newFrameWriter(conn)
	stdin, typed := io.Pipe()
	resize := make(chan driver.TerminalSize, 1)
	var running sync.WaitGroup
	running.Go(func() {
		err := receive(newFrameReader(from), typed, resize)
		if !errors.Is(err, errCallerGone) {
			_ = conn.SetWriteDeadline(time.Now().Add(errorTime))
			finish(frames, driver.ExitResult{}, err)
		}
		end(err)
		_ = typed.CloseWithError(err)
	})
	running.Go(func() {
		if err := keepAlive(ctx, frames); err != nil {
			end(errCallerGone)
		}
	})
	exit, err := h.options.Tasks.Exec(ctx, q.task, q.command, driver.ExecStreams{
		Stdin: stdin, Stdout: outputStream{frames, stdoutFrame}, Stderr: outputStream{frames, stderrFrame}, TTY: q.tty, Resize: resize,
	})
	_ = stdin.Close() // ends a write to it
	finish(frames, exit, err)
	why := context.Cause(ctx)
	unhook()
	end(nil)
	_ = conn.Close()
	running.Wait()
	switch {
	case why != nil:
		h.options.Logger.Info("a command of an operator was ended", "alloc", q.task.Alloc, "task", q.task.Name, "why", why)
	case err != nil:
		h.options.Logger.Info("a command of an operator has failed", "alloc", q.task.Alloc, "task", q.task.Name, "error", err)
	}
}

// receive takes in frames until the caller ends them, and returns why they end.
func receive(frames *frameReader, typed *io.PipeWriter, resize chan driver.TerminalSize) error {
	for {
		f, err := frames.next()
		if _, bad := errors.AsType[*badFrame](err); bad {
			return err
		}
		if err != nil {
			return errCallerGone
		}
		if f.TTYSize != nil {
			if size, valid := terminalSize(f.TTYSize); valid {
				newest(resize, size)
			}
		}
		if in := f.Stdin; in != nil {
			// An error means that the command does not read its input any more.
			if len(in.Data) > 0 { // a pipe waits for the reader of nothing, too
				_, _ = typed.Write(in.Data)
			}
			if in.Close {
				_ = typed.Close()
			}
		}
	}
}

// newest replaces the size that waits in the channel. It has one sender.
func newest(resize chan driver.TerminalSize, size driver.TerminalSize) {
	select {
	case <-resize:
	default:
	}
	resize <- size
}

// keepAlive writes signs of life until the context ends, and returns the error of a write.
func keepAlive(ctx context.Context, frames *frameWriter) error {
	ticker := time.NewTicker(aliveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := frames.alive(); err != nil {
				return err
			}
		}
	}
}

// Exit codes of commands that have none of their own.
const (
	codeKilled  = 137 // by SIGKILL, as in shells
	codeUnknown = 255
)

// finish reports to the caller how the command ended.
func finish(frames *frameWriter, exit driver.ExitResult, err error) {
	code, text := exit.Code, ""
	switch {
	case errors.Is(err, ErrTaskEnded):
		code, text = codeKilled, ErrTaskEnded.Error()
	case err != nil:
		code, text = codeUnknown, "the command failed: "+err.Error()
	case exit.Unknown:
		code, text = codeUnknown, "the driver does not report how the command ended"
	case exit.Signal != 0 && code == 0:
		code = 128 + exit.Signal
	}
	if text != "" {
		_, _ = outputStream{frames, stderrFrame}.Write([]byte("nodedrain: " + text + "\r\n"))
	}
	// After an error of a write the caller has disconnected.
	for _, f := range []wire.ExecOutput{
		{Stdout: &wire.ExecData{Close: true}}, {Stderr: &wire.ExecData{Close: true}}, {Exited: true, Result: &wire.ExecResult{ExitCode: code}},
	} {
		if frames.write(f) != nil {
			return
		}
	}
}
