//race:skip it runs go commands
package modules_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

const project = "github.com/seed-f9cf0b39/nodedrain"

// maxModules is the largest number of modules of an embedder that uses only the drainer, its own
// included.
const maxModules = 15

// An embedder of the drainer and of package drainertest has only these modules.
func TestEmbedder_HasFewModules(t *testing.T) {
	t.Parallel()
	e := newEmbedder(t)
	e.embedDrainer(t)
	paths := slices.Sorted(maps.Keys(e.modules(t)))
	must.LessEq(t, maxModules, len(paths))
	must.Eq(t, []string{
		"embedder.example",
		"github.com/google/go-cmp",
		"github.com/google/uuid",
		project + "/cluster",
		project + "/drainer",
		"github.com/shoenig/test",
		"golang.org/x/time",
		"pgregory.net/rapid",
	}, paths)
}

// A module that embeds all packages builds with the store and the raft writes.
func TestEmbedder_OfAll(t *testing.T) {
	t.Parallel()
	e := newEmbedder(t)
	e.imports(t, "shims.go", project+"/shims")
	e.follow(t, "<!-- embed drainer -->", "<!-- embed rest -->")
	e.mustRun(t, "build", "./...")
}

// An embedder may use an old version of raft. The test needs a network, or a module cache with the
// modules of that version.
func TestEmbedder_KeepsItsRaft(t *testing.T) {
	t.Parallel()
	const raft, version = "github.com/hashicorp/raft", "v1.7.1"
	e := newEmbedder(t)
	e.imports(t, "log.go", raft)
	e.mustRun(t, "mod", "edit", "-require="+raft+"@"+version)
	if output, err := e.run("build", "./..."); err != nil {
		t.Skipf("!!! NOT RUN: %s %s cannot be had here: %v\n%s", raft, version, err, output)
	}
	alone := e.modules(t)
	e.embedDrainer(t)
	with := e.modules(t)
	must.Eq(t, version, with[raft])
	must.LessEq(t, maxModules, len(with)-len(alone))
	t.Logf("%d modules with raft alone, %d with the drainer", len(alone), len(with))
}

// embedder is a module outside of this repository, in a folder of its own.
type embedder struct{ dir string }

// newEmbedder creates a module without requirements.
func newEmbedder(t *testing.T) embedder {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("!!! NOT RUN: there is no go command")
	}
	e := embedder{t.TempDir()}
	e.write(t, "go.mod", "module embedder.example\n\ngo 1.26.0\n")
	// Known sums need no network.
	sums, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	must.NoError(t, err)
	e.write(t, "go.sum", string(sums))
	return e
}

func (e embedder) write(t *testing.T, name, text string) {
	t.Helper()
	must.NoError(t, os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600))
}

// imports writes a file that imports the packages.
func (e embedder) imports(t *testing.T, file string, paths ...string) {
	t.Helper()
	source := "package embedder\n\nimport (\n"
	for _, path := range paths {
		source += fmt.Sprintf("\t_ %q\n", path)
	}
	e.write(t, file, source+")\n")
}

// embedDrainer requires, imports and builds the drainer as README.md describes it.
func (e embedder) embedDrainer(t *testing.T) {
	t.Helper()
	e.imports(t, "drainer.go", project+"/drainer", project+"/drainer/drainertest")
	e.follow(t, "<!-- embed drainer -->")
	e.mustRun(t, "build", "./...")
}

// follow runs the go commands below the marks in README.md.
func (e embedder) follow(t *testing.T, marks ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	must.NoError(t, err)
	for _, mark := range marks {
		_, below, found := strings.Cut(string(page), mark+"\n```sh\n")
		must.True(t, found, must.Sprint(mark))
		commands, _, _ := strings.Cut(below, "```")
		for command := range strings.Lines(commands) {
			args := strings.Fields(command)
			must.Eq(t, "go", args[0])
			for i, arg := range args {
				args[i] = strings.ReplaceAll(arg, "=../nodedrain", "="+root(t))
			}
			e.mustRun(t, args[1:]...)
		}
	}
}

// modules returns the version of each module in the embedder's list, its own included.
func (e embedder) modules(t *testing.T) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for line := range strings.Lines(e.mustRun(t, "list", "-m", "-f", "{{.Path}} {{.Version}}", "all")) {
		path, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		versions[path] = version
	}
	return versions
}

func (e embedder) mustRun(t *testing.T, args ...string) string {
	t.Helper()
	output, err := e.run(args...)
	must.NoError(t, err, must.Sprint(output))
	return output
}

// run runs the go command in the embedder's module. It returns the output, or the error output if
// the command fails.
func (e embedder) run(args ...string) (string, error) {
	var complaints strings.Builder
	command := exec.Command("go", args...)
	command.Dir = e.dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "PWD="+e.dir)
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return complaints.String(), fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return string(output), nil
}

// root is the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	must.NoError(t, err)
	return dir
}
