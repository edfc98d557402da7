package nodeapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

func TestExec_refused(t *testing.T) {
	t.Parallel()
	const ls = `["ls"]`
	w := newWorld(t)
	for name, tt := range map[string]struct {
		alloc, task, tty, command string
		status                    int
		text                      string
	}{
		"unknown allocation": {"none", "", "", ls, 404, "unknown on this node: allocation none"},
		"unknown task":       {"two", "db", "", ls, 404, `the allocation has no task "db": it has web, init`},
		"which task":         {"two", "", "", ls, 400, "task is missing: the allocation has the tasks web, init"},
		"dead task":          {"two", "init", "", ls, 409, `task "init" is dead, and must be running`},
		"driver away":        {"away", "", "", ls, 409, `task "away" runs, but its driver mock does not: retry later`},
		"driver without it":  {"weak", "", "", ls, 400, `the driver mock of task "weak" cannot run commands`},
		"no command":         {"one", "", "", "", 400, `command must be a JSON array of texts, such as ["ls","-l"]`},
		"empty command":      {"one", "", "", "[]", 400, "command is empty"},
		"empty program":      {"one", "", "", `["","x"]`, 400, "command is empty"},
		"zero byte":          {"one", "", "", `["a\u0000"]`, 400, "command contains a zero byte"},
		"long command":       {"one", "", "", `["` + strings.Repeat("x", 64<<10) + `"]`, 400, "command has more than 65536 bytes"},
		"odd tty":            {"one", "", "maybe", ls, 400, `tty is "maybe", and must be true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			status, text := w.refusedExec(tt.alloc, url.Values{"task": {tt.task}, "tty": {tt.tty}, "command": {tt.command}})
			must.EqOp(t, tt.text, text)
			must.EqOp(t, tt.status, status)
		})
	}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.server.URL+"/v1/client/allocation/one/exec", nil)
	must.NoError(t, err)
	status, text := w.do(q)
	must.EqOp(t, http.StatusUpgradeRequired, status)
	must.EqOp(t, "this request upgrades the connection to nodedrain-exec", text)
	must.EqOp(t, 0, len(w.tasks.calls))
}

// A command reads its input to the end, gets the last size of the terminal, and reports its exit code.
func TestExec_streams(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tasks.exec = func(_ context.Context, s driver.ExecStreams) (driver.ExitResult, error) {
		in, err := io.ReadAll(s.Stdin)
		must.NoError(t, err)
		for size := range s.Resize {
			_, err = fmt.Fprintf(s.Stdout, "%s in %dx%d", in, size.Width, size.Height)
			must.NoError(t, err)
			if size.Width == 1000 {
				break
			}
		}
		_, err = io.WriteString(s.Stderr, "warning")
		must.NoError(t, err)
		return driver.ExitResult{Code: 3}, nil
	}
	s := w.exec(url.Values{"tty": {"true"}, "command": {`["cat","-"]`}})
	must.EqOp(t, `exec one/web ["cat" "-"] tty=true`, <-w.tasks.calls)
	s.send(wire.ExecInput{})
	for width := range 1001 { // the first has no width
		s.send(wire.ExecInput{TTYSize: &wire.TerminalSize{Height: 24, Width: width}})
	}
	s.send(wire.ExecInput{TTYSize: &wire.TerminalSize{Height: -1, Width: 1 << 20}})
	s.send(wire.ExecInput{Stdin: &wire.ExecData{}})
	s.send(wire.ExecInput{Stdin: &wire.ExecData{Data: []byte("a\x00\xff")}})
	s.send(wire.ExecInput{Stdin: &wire.ExecData{Data: []byte("b"), Close: true}})
	s.send(wire.ExecInput{Stdin: &wire.ExecData{Data: []byte("too late")}})
	stdout, stderr, code := s.end()
	must.StrHasSuffix(t, "a\x00\xffb in 1000x24", stdout)
	must.EqOp(t, "warning", stderr)
	must.EqOp(t, 3, code)
}

func TestExec_ends(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		exit   driver.ExitResult
		err    error
		code   int
		stderr string
	}{
		"success":          {driver.ExitResult{}, nil, 0, ""},
		"failure":          {driver.ExitResult{Code: 255}, nil, 255, ""},
		"signal":           {driver.ExitResult{Code: 143, Signal: 15}, nil, 143, ""},
		"signal alone":     {driver.ExitResult{Signal: 9}, nil, 137, ""},
		"unknown":          {driver.ExitResult{Unknown: true}, nil, 255, "nodedrain: the driver does not report how the command ended\r\n"},
		"no such program":  {driver.ExitResult{}, errors.New("no such file"), 255, "nodedrain: the command failed: no such file\r\n"},
		"the task's end":   {driver.ExitResult{Code: 0}, nodeapi.ErrTaskEnded, 137, "nodedrain: the task has ended, and the command with it\r\n"},
		"the driver's end": {driver.ExitResult{}, &driver.Error{Class: driver.Gone, Call: "ExecTaskStreaming", Err: errors.New("the plugin is gone")}, 255, "nodedrain: the command failed: ExecTaskStreaming: the plugin is gone\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tasks.exec = func(context.Context, driver.ExecStreams) (driver.ExitResult, error) { return tt.exit, tt.err }
			stdout, stderr, code := w.exec(url.Values{}).end()
			must.EqOp(t, "", stdout)
			must.EqOp(t, tt.stderr, stderr)
			must.EqOp(t, tt.code, code)
		})
	}
}

// A caller that vanishes ends its command, also while the command reads nothing and prints much.
func TestExec_callerVanishes(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(context.Context, driver.ExecStreams){
		"silent": func(ctx context.Context, _ driver.ExecStreams) { <-ctx.Done() },
		"reads":  func(_ context.Context, s driver.ExecStreams) { _, _ = io.Copy(io.Discard, s.Stdin) },
		"prints": func(ctx context.Context, s driver.ExecStreams) {
			for ctx.Err() == nil {
				if _, err := s.Stdout.Write(make([]byte, 1<<20)); err != nil {
					<-ctx.Done()
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			ended := make(chan error, 1)
			w.tasks.exec = func(ctx context.Context, s driver.ExecStreams) (driver.ExitResult, error) {
				act(ctx, s)
				<-ctx.Done()
				ended <- context.Cause(ctx)
				return driver.ExitResult{}, ctx.Err()
			}
			s := w.exec(url.Values{})
			<-w.tasks.calls
			must.NoError(t, s.conn.Close())
			must.ErrorContains(t, <-ended, "the caller has disconnected")
		})
	}
}

// A frame that is none ends the command, and the caller receives the reason.
func TestExec_badFrames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ line, expected string }{
		"no JSON":  {"hello\n", "nodedrain: the command failed: a frame is malformed: invalid character 'h' looking for beginning of value\r\n"},
		"no frame": {"[1]\n", "nodedrain: the command failed: a frame is malformed: json: cannot unmarshal array into Go value of type wire.ExecInput\r\n"},
		"no bytes": {`{"stdin":{"data":"!"}}` + "\n", "nodedrain: the command failed: a frame is malformed: illegal base64 data at input byte 0\r\n"},
		"too long": {strings.Repeat(" ", nodeapi.MaxFrame+(8<<10)), "nodedrain: the command failed: a frame has more than 1048576 bytes\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.tasks.exec = func(ctx context.Context, _ driver.ExecStreams) (driver.ExitResult, error) {
				<-ctx.Done()
				return driver.ExitResult{}, ctx.Err()
			}
			s := w.exec(url.Values{})
			_, err := io.WriteString(s.conn, tt.line)
			must.NoError(t, err)
			_, stderr, code := s.end()
			must.EqOp(t, tt.expected, stderr)
			must.EqOp(t, 255, code)
		})
	}
}

// A reader that does not read stops the command's output, and the node keeps little of it.
//
//race:skip it measures
func TestExec_slowReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const total = 32 << 20
	written := make(chan int, total>>20+1)
	w.tasks.exec = func(_ context.Context, s driver.ExecStreams) (driver.ExitResult, error) {
		block := make([]byte, 1<<20)
		for n := 0; n < total; n += len(block) {
			if _, err := s.Stdout.Write(block); err != nil {
				return driver.ExitResult{}, err
			}
			written <- n
		}
		return driver.ExitResult{}, nil
	}
	s := w.exec(url.Values{})
	read := 0
	for read < total {
		f, more := s.next()
		must.True(t, more)
		if f.Stdout != nil {
			read += len(f.Stdout.Data)
		}
		for len(written) > 0 {
			// Sockets hold some MiB of base64.
			must.Less(t, 16<<20, <-written-read, must.Sprint("the command is ahead of its reader"))
		}
	}
	_, _, code := s.end()
	must.EqOp(t, 0, code)
}

// A node runs a bounded number of commands. The end of one makes room.
func TestExec_bound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tasks.exec = func(ctx context.Context, s driver.ExecStreams) (driver.ExitResult, error) {
		_, _ = io.Copy(io.Discard, s.Stdin)
		return driver.ExitResult{}, ctx.Err()
	}
	var sessions []*session
	for range nodeapi.MaxExecs {
		sessions = append(sessions, w.exec(url.Values{}))
	}
	status, text := w.refusedExec("one", url.Values{"command": {`["ls"]`}})
	must.EqOp(t, http.StatusTooManyRequests, status)
	must.EqOp(t, "256 commands of operators run on this node: retry later", text)
	sessions[0].send(wire.ExecInput{Stdin: &wire.ExecData{Close: true}})
	sessions[0].end()
	for status = http.StatusTooManyRequests; status == http.StatusTooManyRequests; { // the handler ends after the stream
		_, status = w.tryExec(url.Values{})
	}
	must.EqOp(t, http.StatusSwitchingProtocols, status)
}
