package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
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
	code, out, errs := command(ctx, "server recover -alone -yes -data-dir "+dir)
	must.One(t, code)
	must.StrContains(t, out, "A client that runs tasks of the old cluster keeps them and\nignores the new one", must.Sprint("bug: before it acts it printed nothing of clients"))
	must.StrContains(t, errs, "already the only one of its cluster")
	must.NoError(t, os.Remove(filepath.Join(dir, "raft", "log.db")))

	code, errs = refusedServer(ctx, t, dir+" -bootstrap-expect 1")
	must.Eq(t, int(server.ExitRefused), code)
	must.StrContains(t, errs, "log.db is missing or empty")
	must.StrContains(t, errs, `"nodedrain server recover -discard"`)
	must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))

	code, out, errs = command(ctx, "server recover -discard -data-dir "+dir) // the input is empty
	must.One(t, code, must.Sprint(out))
	must.StrContains(t, errs, "nothing was changed")
	code, out, errs = command(ctx, "server recover -discard -yes -data-dir "+dir)
	must.Zero(t, code, must.Sprint(errs))
	must.StrContains(t, out, "nodedrain server remove s1")
	code, errs = refusedServer(ctx, t, dir+" -name s1 -bootstrap-expect 1")
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

// refusedServer runs a server that ends by itself. The line begins with its directory.
func refusedServer(ctx context.Context, t *testing.T, line string) (code int, errs string) {
	t.Helper()
	code, _, errs = command(ctx, "server -http 127.0.0.1:0 -bind 127.0.0.1:0 -log-level off -data-dir "+line)
	must.NoError(t, ctx.Err(), must.Sprint("the server ended by itself"))
	return code, errs
}

// A server whose log a newer build wrote exits with the reason and its own exit code. Every
// restart does the same, and the log stays.
func TestServer_endsAtAnEntryOfANewerBuild(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	a, err := agent.New(agent.Config{DataDir: dir, BootstrapExpect: 1, HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})
	must.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), scriptPatience)
	defer cancel()
	must.NoError(t, a.Ready(ctx))
	entry, err := shims.Encode(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	must.NoError(t, err)
	entry[len(entry)-1]++ // msgpack writes a small number as one byte
	must.NoError(t, a.Server().Raft().Apply(entry, time.Minute).Error())
	<-a.Failed()
	must.ErrorIs(t, a.Err(), cluster.ErrVersion)
	must.NoError(t, a.Stop())

	for range 2 {
		code, errs := refusedServer(ctx, t, dir)
		must.Eq(t, int(server.ExitRefused), code)
		must.StrContains(t, errs, fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))
		must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
	}
}
