package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/gorilla/websocket"
	"github.com/shoenig/test/must"
	"golang.org/x/sys/unix"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// send sends a message of a command.
func send(conn *websocket.Conn, m wire.ExecOutput) { _ = conn.WriteJSON(m) }

// exits ends a command.
func exits(conn *websocket.Conn, code int) {
	send(conn, wire.ExecOutput{Exited: true, Result: &wire.ExecResult{ExitCode: code}})
}

// receive returns the next message with content.
func receive(conn *websocket.Conn) (m wire.ExecInput, err error) {
	for err == nil && m.Stdin == nil && m.TTYSize == nil {
		err = conn.ReadJSON(&m)
	}
	return m, err
}

// echo is a command that writes its request to its error output and its input to its output, and exits
// with 7.
func echo(q url.Values, conn *websocket.Conn) {
	send(conn, wire.ExecOutput{})
	send(conn, wire.ExecOutput{Stderr: &wire.ExecData{Data: []byte(q.Get("task") + " " + q.Get("command") + " " + q.Get("tty"))}})
	for {
		m, err := receive(conn)
		switch {
		case err != nil:
			return
		case m.Stdin != nil && m.Stdin.Close:
			exits(conn, 7)
			return
		case m.Stdin != nil:
			send(conn, wire.ExecOutput{Stdout: m.Stdin})
		}
	}
}

// The exit code of the command is the exit code. Input and both outputs are those of the command, and the
// command's own options stay with it.
func TestAllocExec(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	f.exec = echo
	input := strings.Repeat("0123456789abcdef", 10_000)
	for _, c := range []struct {
		args, in, out, errs string
	}{
		{"a1 ls -h -l", "some input", "some input", `web ["ls","-h","-l"] false`},
		{"-task proxy a2 ls", "", "", `proxy ["ls"] false`},
		{"-t a1 -- ls", "x", "x", `web ["ls"] true`},
		{"-i=false a1 ls", "unread", "", `web ["ls"] false`},
		{"-t=false a1 ls", input, input, `web ["ls"] false`},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			code, out, errs := commandAt(t.Context(), f.URL, c.in, "alloc exec "+c.args)
			must.Eq(t, 7, code)
			must.Eq(t, c.out, out)
			must.Eq(t, c.errs, errs)
		})
	}
}

func TestAllocExec_mistakes(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	for args, want := range map[string]string{
		"a1":                 "This command takes two or more arguments: <alloc> <command> [<argument>...]",
		"-t -i=false a1 ls":  "-t needs -i",
		"-e ab a1 ls":        `-e must be one character or "none"`,
		"a2 ls":              "Please specify the task.",
		"-task other a1 ls":  `has no task "other"`,
		"a1 ls":              "failed to exec into task: Unexpected response code: 400 (the driver cannot run commands in tasks)",
		"-unknown a1 ls":     "flag provided but not defined: -unknown",
		"a1 -- ":             "This command takes two or more arguments",
		"-address x:1 a1 ls": "Error querying allocation:",
	} {
		code, out, errs := commandAt(t.Context(), f.URL, "", "alloc exec "+args)
		must.One(t, code, must.Sprint(args))
		must.StrContains(t, errs, want)
		must.Eq(t, "", out)
	}
	code, out, _ := command(t.Context(), "alloc exec -h")
	must.Zero(t, code)
	must.StrContains(t, out, "Usage: nodedrain alloc exec")
}

// An end without an exit code is an error with the reason of the server.
func TestAllocExec_broken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		exec func(url.Values, *websocket.Conn)
		want string
	}{
		"closed": {func(_ url.Values, conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""))
		}, "failed to exec into task: the connection ended before the command\n"},
		"odd": {func(_ url.Values, conn *websocket.Conn) { exits(conn, 256) }, "the command ended with exit code 256\n"},
		"why": {func(_ url.Values, conn *websocket.Conn) {
			_ = conn.WriteMessage(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseInternalServerErr, "the task has ended"))
		}, "failed to exec into task: the task has ended\n"},
		"cut":     {func(_ url.Values, conn *websocket.Conn) { _ = conn.NetConn().Close() }, "the connection ended before the command: "},
		"no JSON": {func(_ url.Values, conn *websocket.Conn) { _ = conn.WriteMessage(websocket.TextMessage, []byte("{")) }, "the connection ended before the command: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFixtureNode(t)
			f.exec = c.exec
			code, _, errs := commandAt(t.Context(), f.URL, "", "alloc exec a1 ls")
			must.One(t, code)
			must.StrContains(t, errs, c.want)
		})
	}
}

// An interrupt ends the connection.
func TestAllocExec_interrupted(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	gone := make(chan struct{})
	f.exec = func(_ url.Values, conn *websocket.Conn) {
		defer close(gone)
		send(conn, wire.ExecOutput{Stdout: &wire.ExecData{Data: []byte("ready")}})
		for {
			if _, err := receive(conn); err != nil {
				return
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in, _ := io.Pipe() // it never has input
	code, errs := runAt(ctx, f.URL, in, &watching{words: "ready", do: cancel}, "alloc", "exec", "a1", "ls")
	must.Eq(t, 130, code)
	must.Eq(t, "", errs)
	<-gone
}

// openTerminal returns both ends of a new terminal: the user's and the program's.
func openTerminal(t *testing.T) (user, program *os.File) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("this machine has no terminals: %v", err)
	}
	t.Cleanup(func() { _ = user.Close() })
	must.NoError(t, unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetUint32(int(user.Fd()), unix.TIOCGPTN)
	must.NoError(t, err)
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must.NoError(t, err)
	t.Cleanup(func() { _ = program.Close() })
	return user, program
}

func setSize(t *testing.T, terminal *os.File, height, width uint16) {
	t.Helper()
	must.NoError(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width}))
}

// With a terminal the command gets one of the same size, and each key at once, Ctrl-C too. The size
// follows that of the user's terminal, which is as before when the command has ended.
func TestAllocExec_terminal(t *testing.T) {
	t.Parallel()
	user, program := openTerminal(t)
	setSize(t, user, 24, 80)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	must.NoError(t, err)
	f := startFixtureNode(t)
	var received []string
	f.exec = func(q url.Values, conn *websocket.Conn) {
		received = append(received, "tty "+q.Get("tty"))
		for len(received) < 4 {
			m, err := receive(conn)
			if err != nil {
				return
			}
			text, _ := json.Marshal(m)
			received = append(received, string(text))
			switch len(received) {
			case 2:
				_, _ = user.WriteString("\x03")
			case 3:
				setSize(t, user, 50, 132)
				_ = syscall.Kill(os.Getpid(), syscall.SIGWINCH)
			}
		}
		exits(conn, 0)
	}
	code, errs := runAt(t.Context(), f.URL, program, program, "alloc", "exec", "a1", "sh")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, []string{
		"tty true", `{"tty_size":{"height":24,"width":80}}`, `{"stdin":{"data":"Aw=="}}`, `{"tty_size":{"height":50,"width":132}}`,
	}, received)
	after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	must.NoError(t, err)
	must.Eq(t, before, after)
}

// The escape character and a dot at the start of a line leave the command.
func TestAllocExec_escape(t *testing.T) {
	t.Parallel()
	user, program := openTerminal(t)
	f := startFixtureNode(t)
	f.exec = func(_ url.Values, conn *websocket.Conn) {
		_, _ = user.WriteString("~.")
		for {
			if _, err := receive(conn); err != nil {
				return
			}
		}
	}
	code, errs := runAt(t.Context(), f.URL, program, program, "alloc", "exec", "a1", "sh")
	must.Eq(t, 130, code)
	must.Eq(t, "", errs)
}
