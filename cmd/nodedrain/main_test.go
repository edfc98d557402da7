package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/demo"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
)

// A wrong command line gives an error that names the mistake, and nothing starts.
func TestRun_mistakes(t *testing.T) {
	t.Parallel()
	clitest.Run(command).Refuses(t, [][2]string{
		{"demo -size 3", `flag provided but not defined: -size; "nodedrain demo -h" lists the options`},
		{"demo -nodes many", `invalid value "many" for flag -nodes`},
		{"demo -nodes 0", "-nodes is 0 and must be above 0"},
		{"demo --deadline 0s", "-deadline is 0s and must be above 0"},
		{"demo -deadline 10", `invalid value "10" for flag -deadline`},
		{"demo -time-scale 0", "-time-scale is 0 and must be above 0"},
		{"demo -time-scale NaN", "the time scale is NaN"},
		{"demo -nodes 10 -drains 6", "cannot drain 6 of 10 nodes"},
		{"demo --nodes=10 --cluster=x", "a loaded cluster has its own number of nodes"},
		{"demo -cluster testdata/none", "testdata/none/nodes.csv"},
		{"demo -cluster testdata/broken", "nodes.csv:3: memory_mib is \"much\""},
		{"demo -servers 2", "at least 3 are needed: one is killed"},
		{"demo -seed -1", `invalid value "-1" for flag -seed`},
		{"demo -log-level loud", `-log-level is "loud"`},
	})
}

// Help names the commands. An unknown command gets the help.
func TestRun_help(t *testing.T) {
	t.Parallel()
	code, out, _ := command(t.Context(), "-h")
	must.Zero(t, code)
	must.StrContains(t, out, "demo")
	code, _, errs := command(t.Context(), "explode")
	must.NotEq(t, 0, code)
	must.StrContains(t, errs, "demo")
}

func TestRun_version(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"version", "version x"} {
		code, out, _ := command(t.Context(), line)
		must.Zero(t, code)
		must.StrHasPrefix(t, "nodedrain ", out)
	}
}

// With -json only the summary is printed, and it agrees with the exit code.
//
//race:skip the same goroutines as TestRun of demo
func TestRun_json(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code, out, errs := command(t.Context(), "demo -nodes 12 -drains 3 --seed=2 --json")
		must.Zero(t, code, must.Sprint(errs))
		must.StrHasPrefix(t, "Still waiting for the summary (10s)\n", errs)
		var s demo.Summary
		decoder := json.NewDecoder(strings.NewReader(out))
		decoder.DisallowUnknownFields()
		must.NoError(t, decoder.Decode(&s))
		must.True(t, s.OK)
		must.Eq(t, demo.SummaryVersion, s.Version)
		must.Eq(t, 2, s.Seed)
		must.SliceLen(t, 3, s.Drains)
	})
}

// A failed run also prints its summary, and exits with 1.
//
//race:skip the same goroutines as TestRun of demo
func TestRun_fails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		code, out, errs := command(t.Context(), "demo -nodes 12 -drains 3 -timeout 8s -deadline 30m")
		must.One(t, code)
		must.StrContains(t, out, "FAILED after 8.0s:")
		must.StrContains(t, out, "did not end")
		must.StrContains(t, errs, "the summary gives the reasons")
	})
}

// An interrupt ends the run in order.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		code, out, errs := command(ctx, "demo -nodes 12")
		must.One(t, code)
		must.StrContains(t, out, "2 nodes drain at once")
		must.StrContains(t, errs, "interrupted before all drains had ended")
	})
}

// command runs a command line.
func command(ctx context.Context, line string) (code int, out, errs string) {
	return clitest.Program(commands())(ctx, line)
}

// runAt runs a command against a server.
func runAt(ctx context.Context, url string, in io.Reader, out io.Writer, args ...string) (code int, errs string) {
	var stderr bytes.Buffer
	code = run(ctx, args, cli.Stdio{In: in, Out: out, Errs: &stderr, Getenv: func(name string) string {
		return map[string]string{client.EnvAddress: url}[name]
	}})
	return code, stderr.String()
}

// commandAt runs a command line against a server.
func commandAt(ctx context.Context, url, input, line string) (code int, out, errs string) {
	var stdout bytes.Buffer
	code, errs = runAt(ctx, url, strings.NewReader(input), &stdout, strings.Fields(line)...)
	return code, stdout.String(), errs
}
