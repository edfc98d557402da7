// Package clitest holds what the tests of commands share.
package clitest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
)

func init() {
	flag.Bool("rewrite", false, "write the results of tests into testdata; read the diff before you commit it")
}

// Rewrite reports whether tests write their results into testdata.
func Rewrite() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// Golden compares text with a file in testdata, or writes the file.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if Rewrite() {
		must.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}

// Run runs a command line without input and environment.
type Run func(ctx context.Context, line string) (code int, out, errs string)

// Program returns a Run for commands.
func Program(commands cli.Program) Run {
	return func(ctx context.Context, line string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		std := cli.Stdio{In: strings.NewReader(""), Out: &stdout, Errs: &stderr, Getenv: func(string) string { return "" }}
		code = cli.Run(strings.Fields(line), commands, cli.Base{Ctx: ctx, Stdio: std})
		return code, stdout.String(), stderr.String()
	}
}

// Refuses checks that wrong command lines give one line of error, and no output. Each comes with a part
// of its error.
func (run Run) Refuses(t *testing.T, mistakes [][2]string) {
	t.Helper()
	for _, m := range mistakes {
		t.Run(m[0], func(t *testing.T) {
			t.Parallel()
			code, out, errs := run(t.Context(), m[0])
			must.One(t, code)
			must.Eq(t, "", out)
			must.StrContains(t, errs, m[1])
			must.Eq(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
		})
	}
}
