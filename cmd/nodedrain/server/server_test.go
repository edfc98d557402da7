package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/server/access"
)

// The server reads its tokens again on SIGHUP. If the file cannot be read, the old tokens stay in
// force.
func TestServing_reload(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokens")
	secret, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	_, before, err := access.Generate("before", access.Read)
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(path, []byte(before.Line()+"\n"), 0o600))
	tokens, err := access.Open(path, hclog.NewNullLogger())
	must.NoError(t, err)
	s := &serving{tokens: tokens, logger: hclog.NewNullLogger()}

	_, known := tokens.Identify(secret.Reveal())
	must.False(t, known)
	must.NoError(t, os.WriteFile(path, []byte(token.Line()+"\n"), 0o600))
	must.NoError(t, s.reload())
	who, known := tokens.Identify(secret.Reveal())
	must.True(t, known)
	must.Eq(t, "ops", who.Name)

	must.NoError(t, os.Remove(path))
	must.Error(t, s.reload())
	_, known = tokens.Identify(secret.Reveal())
	must.True(t, known)
	must.NoError(t, new(serving).reload())
}
