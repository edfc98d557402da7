package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// A followed log goes on after lost connections and over a rotation, prints nothing twice and leaves
// nothing out, and ends when the task has ended.
func TestAllocLogs_followsThroughLostConnections(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-f"}, {"-f", "-n", "20"}, {"-f", "-c", "1000"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			f := startFixtureNode(t)
			want := "one\ntwo\nthree\n"
			out := &watching{words: want, do: func() {
				go func() {
					for i := range 5 {
						f.follows(t, i+1)
						text := fmt.Sprintf("line %d\n", i)
						want += text
						f.CloseClientConnections()
						f.write(1+i/2, text) // file 2 is new
					}
					f.follows(t, 6)
					want += "the end\n"
					f.write(3, "the end\n")
					f.end(0)
				}()
			}}
			code, errs := runAt(t.Context(), f.URL, nil, out, append([]string{"alloc", "logs"}, append(args, "a1")...)...)
			must.Zero(t, code, must.Sprint(errs))
			must.Eq(t, want, out.String())
		})
	}
}

// A node that goes away and comes back does not end a followed log. An event of its files is shown.
func TestAllocLogs_followsARestartedNode(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	out := &watching{words: "three\n", do: func() {
		f.change(func() { f.down = true })
		go func() {
			f.CloseClientConnections()
			f.waitFor(t, func() bool { return f.refusals > 1 })
			must.NoError(t, errors.Join(os.Remove(f.path("alloc/logs/web.stdout.0")), os.Remove(f.path("alloc/logs/web.stdout.1"))))
			f.write(3, "four\n")
			f.change(func() { f.down = false })
			f.end(0)
		}()
	}}
	code, errs := runAt(t.Context(), f.URL, nil, out, "alloc", "logs", "-f", "a1")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, "one\ntwo\nthree\nfour\n", out.String())
	lines := strings.Split(errs, "\n")
	must.SliceLen(t, 4, lines)
	must.StrHasPrefix(t, "the log cannot be read, retrying: ", lines[0])
	must.Eq(t, "the log continues", lines[1])
	must.Eq(t, "web.stdout.3: files of this log were removed before they were read", lines[2])
}

// A server that cannot go on in a file of the log does not make the command print lines twice.
func TestAllocLogs_olderServer(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	f.older = true
	out := &watching{words: "three\n", do: func() { go f.CloseClientConnections() }}
	code, errs := runAt(t.Context(), f.URL, nil, out, "alloc", "logs", "-f", "a1")
	must.One(t, code)
	must.Eq(t, "one\ntwo\nthree\n", out.String())
	must.StrContains(t, errs, "Error reading the log: the server cannot continue the log at the same line")
}

// An interrupt ends a followed log with 130; a closed output ends it with 1.
func TestAllocLogs_ends(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &watching{words: "three\n", do: cancel}
	code, errs := runAt(ctx, f.URL, nil, out, "alloc", "logs", "-f", "a1")
	must.Eq(t, 130, code)
	must.Eq(t, "", errs)

	code, errs = runAt(t.Context(), f.URL, nil, closedOutput{}, "alloc", "logs", "-f", "a1")
	must.One(t, code)
	must.StrContains(t, errs, "Error reading the log: the output is closed")
}

// closedOutput is the output of a command whose reader has gone.
type closedOutput struct{}

func (closedOutput) Write([]byte) (int, error) { return 0, errors.New("the output is closed") }

// A log without lines is followed from its start.
func TestAllocLogs_emptyLog(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	must.NoError(t, errors.Join(os.Truncate(f.path("alloc/logs/web.stdout.0"), 0), os.Remove(f.path("alloc/logs/web.stdout.1"))))
	go func() {
		f.follows(t, 1)
		f.write(3, "new\n")
		f.end(0)
	}()
	code, out, errs := commandAt(t.Context(), f.URL, "", "alloc logs -f -n 3 a1")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, "new\n", out)
}

// Long lines make the search for the last ones go further back.
func TestAllocLogs_longLines(t *testing.T) {
	t.Parallel()
	f := startFixtureNode(t)
	long := strings.Repeat("x", 1000) + "\n"
	f.write(2, "first\n"+long+long+long)
	code, out, errs := commandAt(t.Context(), f.URL, "", "alloc logs -n 2 a1")
	must.Zero(t, code, must.Sprint(errs))
	must.Eq(t, long+long, out)
}
