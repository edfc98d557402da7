package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/server"
)

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
		var errs strings.Builder
		code := run(ctx, strings.Fields("server -http 127.0.0.1:0 -bind 127.0.0.1:0 -log-level off -data-dir "+dir), cli.Stdio{
			In: strings.NewReader(""), Out: io.Discard, Errs: &errs, Getenv: func(string) string { return "" },
		})
		must.NoError(t, ctx.Err(), must.Sprint("the server ended by itself"))
		must.Eq(t, int(server.ExitRefused), code)
		must.StrContains(t, errs.String(), fmt.Sprintf("upgrade this server to a build that understands cluster version %d or later", cluster.MaxVersion+1))
		must.Eq(t, 1, strings.Count(errs.String(), "\n"), must.Sprint(errs.String()))
	}
}
