package lint_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// startsProcesses are packages that start processes. A test that imports one may leave something
// behind when it is killed.
func startsProcesses() []string {
	return []string{
		"os/exec", module + "/client/node", module + "/plugin/machine/tasklog/keeper", module + "/client/watchdog", module + "/cmd/nodedrain/dev", module + "/plugin/host",
		module + "/internal/programs", module + "/plugin/rawexec/shim",
	}
}

// onTheCallersMachine are folders whose tests start only commands that end by themselves.
func onTheCallersMachine() map[string]string {
	return map[string]string{
		"internal/modules": "go commands",
		"plugin/proto":     "the generators of code",
		"sim/planted":      "go commands",
	}
}

// The tests of a package that starts processes run in a fresh machine: a killed run leaves nothing
// behind, and no test needs a machine that has run for long.
func TestProject_testsThatStartProcesses(t *testing.T) {
	t.Parallel()
	starts, enters := map[string]string{}, map[string]bool{}
	imported := regexp.MustCompile(`(?m)^(?:import)?\s+"([^"\n]+)"$`)
	must.NoError(t, fs.WalkDir(os.DirFS(root()), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == "testdata" {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root(), path))
		dir := filepath.Dir(path)
		for _, found := range imported.FindAllSubmatch(text, -1) {
			if name := string(found[1]); slices.Contains(startsProcesses(), name) {
				starts[dir] = name
			}
		}
		if strings.Contains(string(text), "\tfreshmachine.Enter()\n") {
			enters[dir] = true
		}
		return err
	}))
	exceptions := onTheCallersMachine()
	for _, dir := range slices.Sorted(maps.Keys(starts)) {
		if _, excepted := exceptions[dir]; !excepted && !enters[dir] {
			t.Errorf("the tests of %s use %s: their TestMain calls freshmachine.Enter", dir, starts[dir])
		}
		if exceptions[dir] != "" && enters[dir] {
			t.Errorf("the exception for %s has no effect", dir)
		}
		delete(exceptions, dir)
	}
	must.MapEmpty(t, exceptions, must.Sprint("exceptions for tests that start no process"))
	must.Greater(t, 20, len(starts))
}
