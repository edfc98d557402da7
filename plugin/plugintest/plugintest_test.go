package plugintest_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/drivertest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/plugintest"
)

// command builds the nodedrain command, which contains the drivers.
func command(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nodedrain")
	programs.Build(t, "../../cmd/nodedrain", path)
	return path
}

// The drivers of the nodedrain command pass the suite, as separate processes.
func TestHarness_ourDrivers(t *testing.T) {
	t.Parallel()
	path := command(t)
	for _, name := range []string{"mock", "raw_exec"} {
		t.Run(name, func(t *testing.T) {
			o, err := plugintest.Read(path, filepath.Join("testdata", name+".json"))
			must.NoError(t, err)
			h := plugintest.Harness(o)
			h.Strict = true
			h.Slack = 5 * time.Second // on a busy machine
			drivertest.Run(t, h)
		})
	}
}

// Valid and invalid files of tasks.
func TestRead(t *testing.T) {
	t.Parallel()
	for text, expected := range map[string]string{
		`{"tasks": {"run": {}}}`: `the suite has no tasks of kind "run"`,
		`{"task": {}}`:           `unknown field "task"`,
		`{"skips": {"D3": ""}}`:  `the skip of "D3" has no reason`,
		`{"env": {"A B": "c"}}`:  `"A B" is not the name of a variable`,
		`{`:                      `unexpected EOF`,
	} {
		file := filepath.Join(t.TempDir(), "tasks.json")
		must.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := plugintest.Read("/bin/true", file)
		must.ErrorContains(t, err, expected)
	}
	// A file without tasks has those of a driver with "command" and "args".
	file := filepath.Join(t.TempDir(), "tasks.json")
	must.NoError(t, os.WriteFile(file, []byte(`{"unit_millis": 10}`), 0o600))
	o, err := plugintest.Read("/bin/true", file)
	must.NoError(t, err)
	commands, err := plugintest.Commands("/bin/true")
	must.NoError(t, err)
	commands.UnitMillis = 10
	must.Eq(t, commands, o)
	_, err = plugintest.Read("/bin/true", "testdata/none.json")
	must.ErrorIs(t, err, os.ErrNotExist)
}
