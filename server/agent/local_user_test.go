package agent_test

import (
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/access"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// Another user of a server's machine reads and writes nothing in the data directory, which has the
// secrets of nodes, also if the directory existed with mode 0755. Without a token he learns who leads, and
// no more.
func TestSecurity_LocalUserOfAServer(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root may start a process of another user")
	}
	_, token, err := access.Generate("ops", access.Write)
	must.NoError(t, err)
	tokens := filepath.Join(t.TempDir(), "tokens")
	must.NoError(t, os.WriteFile(tokens, []byte(token.Line()+"\n"), 0o600))
	known := result.Of(access.Open(tokens, nil)).OK(t)
	base := t.TempDir()
	existing := filepath.Join(base, "existing")
	must.NoError(t, os.Mkdir(existing, 0o755))
	for _, open := range []string{filepath.Dir(base), base} {
		must.NoError(t, os.Chmod(open, 0o755)) // the folder of the test must not be what keeps others out
	}
	for _, dir := range []string{filepath.Join(base, "data"), existing} {
		a := start(t, agent.Config{DataDir: dir, BootstrapExpect: 1, Access: known})
		ready(t, a)
		result.Of(a.Backend().Writer.RegisterNode(t.Context(), &cluster.Node{ID: "n1", SecretID: "hunter2", Status: cluster.NodeReady})).OK(t)
		answer := result.Of(http.Get("http://" + a.HTTPAddr() + "/v1/nodes")).OK(t)
		must.NoError(t, answer.Body.Close())
		must.Eq(t, 403, answer.StatusCode)
		must.NoError(t, stop(a)) // it writes a snapshot

		var paths []string
		must.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			paths = append(paths, path)
			return err
		}))
		must.Greater(t, 3, len(paths))
		sh := exec.Command("/bin/sh", "-c", `while read -r p; do if [ -r "$p" ] || [ -w "$p" ]; then echo "$p"; fi; done`)
		sh.Dir, sh.Stdin = "/", strings.NewReader(strings.Join(paths, "\n")+"\n")
		sh.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out := result.Of(sh.CombinedOutput()).OK(t)
		must.Eq(t, "", string(out))
	}
}
