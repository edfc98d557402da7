package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// createToken runs the command with that line.
func createToken(line string) (code int, out, errs string) {
	return clitest.Program(cli.Program{"create": TokenCreate})(context.Background(), "create "+line)
}

// The server accepts the printed secret if its tokens file holds the printed line.
func TestTokenCreate(t *testing.T) {
	t.Parallel()
	code, out, errs := createToken("-name ops@example.org -right write")
	must.Zero(t, code, must.Sprint(errs))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	must.SliceLen(t, 2, lines)
	_, secret, _ := strings.Cut(lines[0], ":")
	_, line, _ := strings.Cut(lines[1], ":")
	secret = strings.TrimSpace(secret)
	must.StrNotContains(t, line, secret)

	path := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(path, []byte(line+"\n"), 0o600))
	tokens, err := access.Open(path, nil)
	must.NoError(t, err)
	who, ok := tokens.Identify(secret)
	must.True(t, ok)
	must.Eq(t, "ops@example.org", who.Name)
	must.True(t, who.Write)
}

func TestTokenCreate_mistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"", "-name and -right are required"},
		{"-name ops", "-name and -right are required"},
		{"-name ops -right admin", `-right is "admin": the right must be read, write or node`},
		{"-name o/ps -right read", `-name is "o/ps": a token's name must be of letters`},
		{"-name ops -right read now", "This command takes no arguments"},
		{"-nome ops", "flag provided but not defined: -nome"},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			code, out, errs := createToken(c.line)
			must.Eq(t, 1, code)
			must.Eq(t, "", out)
			must.StrContains(t, errs, c.want)
		})
	}
}
