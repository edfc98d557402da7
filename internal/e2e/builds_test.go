package e2e

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// oldCommit is the newest commit whose servers have no cluster versions.
const oldCommit = "3dc2024764876285d99f29eb26c80fb5c6c609f1"

// buildOld builds the servers of oldCommit, from the history of this checkout. Its test program gets
// the files of certificates, which oldCommit supports and its tests do not use.
func buildOld(t *testing.T) (binary string) {
	t.Helper()
	if out, err := exec.Command("git", "cat-file", "-e", oldCommit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("THE ROLLING UPGRADE IS NOT TESTED: this checkout has no commit %s (%v: %s). Fetch the whole history: git fetch --unshallow",
			oldCommit, err, out)
	}
	dir := t.TempDir()
	archive, source := filepath.Join(dir, "old.zip"), filepath.Join(dir, "source")
	command(t, "../..", "git", "archive", "--format=zip", "--output="+archive, oldCommit)
	files, err := zip.OpenReader(archive)
	must.NoError(t, err)
	defer func() { _ = files.Close() }()
	must.NoError(t, os.CopyFS(source, files))
	path := filepath.Join(source, "e2e", "child_test.go")
	child, err := os.ReadFile(path)
	must.NoError(t, err)
	for _, change := range [][2]string{
		{"\tTTL time.Duration\n", "\tTTL time.Duration\n\tCA, Cert, Key string\n"},
		{"\tsettings.Drainer.OnStep = counted.Stepped\n", `	settings.Drainer.OnStep = counted.Stepped
	if c.CA != "" {
		certs, err := agent.OpenCerts(agent.CertConfig{CA: c.CA, Certificate: c.Cert, Key: c.Key})
		if err != nil {
			return err
		}
		settings.ServerTLS = certs.Peers()
	}
`},
	} {
		must.EqOp(t, 1, strings.Count(string(child), change[0]))
		child = []byte(strings.Replace(string(child), change[0], change[1], 1))
	}
	must.NoError(t, os.WriteFile(path, child, 0o600))
	binary = filepath.Join(dir, "old.test")
	command(t, source, "go", "test", "-c", "-vet=off", "-buildvcs=false", "-o", binary, "./e2e")
	return binary
}

// nextVersion is a cluster version that this build does not understand.
const nextVersion = cluster.MaxVersion + 1

// buildNext builds servers that differ from those of this build in one thing: they
// understand one cluster version more.
func buildNext(t *testing.T) (binary string) {
	t.Helper()
	line, next := fmt.Sprintf("MaxVersion Version = %d\n", cluster.MaxVersion), fmt.Sprintf("MaxVersion Version = %d\n", nextVersion)
	dir := t.TempDir()
	path, err := filepath.Abs(filepath.Join("..", "..", "cluster", "version.go"))
	must.NoError(t, err)
	source, err := os.ReadFile(path)
	must.NoError(t, err)
	must.StrContains(t, string(source), line)
	changed := filepath.Join(dir, "version.go")
	must.NoError(t, os.WriteFile(changed, []byte(strings.Replace(string(source), line, next, 1)), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	must.NoError(t, err)
	file := filepath.Join(dir, "overlay.json")
	must.NoError(t, os.WriteFile(file, overlay, 0o600))
	binary = filepath.Join(dir, "next.test")
	command(t, "../..", "go", "test", "-c", "-vet=off", "-overlay", file, "-o", binary, "./internal/e2e")
	return binary
}

// command runs a command in a directory.
func command(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	must.NoError(t, err, must.Sprintf("%s %s\n%s", name, strings.Join(args, " "), out))
}
