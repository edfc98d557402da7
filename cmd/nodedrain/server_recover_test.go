package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/server/agent"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/server"
)

// A server without its log exits with its own code and the remedy, in one line. The remedy makes the
// directory that of a new server, which must have another name.
func TestServerRecover(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	a, err := agent.New(agent.Config{Name: "s1", DataDir: dir, BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	defer cancel()
	must.NoError(t, a.Ready(ctx))
	code, _, errs := command(ctx, "server recover -discard -yes -data-dir "+dir)
	must.One(t, code)
	must.StrContains(t, errs, "in use by another process")
	must.NoError(t, a.Stop())
	code, _, errs = command(ctx, "server recover -alone -yes -data-dir "+dir)
	must.One(t, code)
	must.StrContains(t, errs, "already the only one of its cluster")
	must.NoError(t, os.Remove(filepath.Join(dir, "raft", "log.db")))

	start := func(line string) (int, string) {
		var errs strings.Builder
		code := run(ctx, strings.Fields("server -http 127.0.0.1:0 -bind 127.0.0.1:0 -log-level off -data-dir "+dir+line), cli.Stdio{
			In: strings.NewReader(""), Out: io.Discard, Errs: &errs, Getenv: func(string) string { return "" },
		})
		must.NoError(t, ctx.Err(), must.Sprint("the server ended by itself"))
		return code, errs.String()
	}
	code, errs = start(" -bootstrap-expect 1")
	must.Eq(t, int(server.ExitRefused), code)
	must.StrContains(t, errs, "log.db is missing or empty")
	must.StrContains(t, errs, `"nodedrain server recover -discard"`)
	must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))

	code, out, errs := command(ctx, "server recover -discard -data-dir "+dir) // the input is empty
	must.One(t, code, must.Sprint(out))
	must.StrContains(t, errs, "nothing was changed")
	code, out, errs = command(ctx, "server recover -discard -yes -data-dir "+dir)
	must.Zero(t, code, must.Sprint(errs))
	must.StrContains(t, out, "nodedrain server remove s1")
	code, errs = start(" -name s1 -bootstrap-expect 1")
	must.One(t, code)
	must.StrContains(t, errs, "choose another name")

	for line, want := range map[string]string{
		"":                               "-data-dir is required",
		"-data-dir x":                    "Exactly one of -discard and -alone is required",
		"-data-dir x -alone -discard":    "Exactly one of -discard and -alone is required",
		"-data-dir x -alone now":         "This command takes no arguments",
		"-data-dir /nowhere -alone -yes": "data directory /nowhere",
	} {
		code, _, errs := command(ctx, "server recover "+line)
		must.One(t, code)
		must.StrContains(t, errs, want)
	}
}
