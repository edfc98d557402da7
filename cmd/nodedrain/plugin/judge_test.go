package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/clitest"
	"github.com/seed-f9cf0b39/nodedrain/internal/freshmachine"

	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

// wrongTasks is the configuration of the driver in plugin/plugintest/testdata/wrong with a fault.
const wrongTasks = `{
	"args": [%q],
	"no_processes": true,
	"unit_millis": 250,
	"required": "run_for",
	"tasks": {
		"run for ever": {"run_for": "1000h"},
		"exit": {"run_for": "{millis}ms", "exit_code": "={code}"},
		"die": {"run_for": "{millis}ms", "exit_signal": "={number}"},
		"ignore": {"run_for": "1000h", "stop_ignore": true},
		"trap": {"run_for": "1000h", "signal_codes": {"SIG{signal}": "={code}"}},
		"fail": {"run_for": "1000h", "start_error": "the config says so"},
		"lines": {"run_for": "0s", "stdout_string": "{output}"}
	}
}`

// wrongProcesses is the configuration of the same driver with processes.
const wrongProcesses = `{
	"args": [%q],
	"unit_millis": 250,
	"config": {"enabled": true},
	"env": {"OF_THE_FILE": "{dir}"},
	"tasks": {"run for ever": {"command": "/bin/sleep", "args": ["1000000"]}},
	"skips": {"D4 output": "the drivers differ in their starts"}
}`

// built builds a program and returns its path.
func built(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	programs.Build(t, source, path)
	return path
}

// written writes a file and returns its path.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.json")
	must.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// wrongStory is a plugin with a fault, the rules that it breaks, and words of what happened.
type wrongStory struct{ fault, fails, happened string }

// judge tests the plugin with the command.
func (story wrongStory) judge(t *testing.T, path, config, kind string, skipped int) {
	t.Helper()
	code, out, errs := command(t.Context(), "plugin test -json -strict -config "+written(t, config)+" "+path)
	var found judgement
	must.NoError(t, json.Unmarshal([]byte(out), &found), must.Sprint(errs))
	must.Eq(t, kind, found.Type)
	var fails, happened []string
	for _, rule := range found.Rules {
		if len(rule.Failures) > 0 {
			fails = append(fails, rule.Rule)
		}
		happened = append(happened, rule.Log)
		for _, failure := range rule.Failures {
			happened = append(happened, rule.Rule+": "+failure.Happened)
		}
	}
	must.Eq(t, story.fails, strings.Join(fails, ", "), must.Sprint(strings.Join(happened, "\n")))
	must.StrContains(t, strings.Join(happened, "\n"), story.happened)
	must.Eq(t, len(fails), found.Failed)
	must.Eq(t, min(len(fails), 1), code)
	must.Eq(t, skipped, found.Skipped)
}

// wrongDrivers are the stories of [TestPluginTest_wrongDrivers].
func wrongDrivers() []wrongStory {
	return []wrongStory{
		{"none", "", ""},
		{"answers-one-waiter", "D10, D12", "exit result is lost"},
		{"panics", "D15", "panic: this signal has no name"},
		{"forgets-exits", "D14, D19", "Inspect has"},
	}
}

// wrongUsers are the stories of [TestPluginTest_wrongUsers].
func wrongUsers() []wrongStory {
	return []wrongStory{
		{"ignores-users", "D4 user", `the task of the user "nodedrain-no-such-user" runs as the user of the driver`},
		{"accepts-existing-users", "D4 user", `the task of the user "daemon" runs as the user of the driver`},
		{"gives-its-environment", "D4 environment", `the task has variables of the driver's process: ["NODEDRAIN_TEST_PLUGIN" "OF_THE_FILE"]`},
	}
}

// The command tests the users and the variables of a task's processes.
//
//race:skip its programs do not have the detector
func TestPluginTest_wrongUsers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it runs tasks as another user")
	}
	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	for _, story := range wrongUsers() {
		t.Run(story.fault, func(t *testing.T) {
			t.Parallel()
			story.judge(t, "-run D4 "+path, fmt.Sprintf(wrongProcesses, story.fault), "driver", 1)
		})
	}
}

// The command names the rules that a wrong driver breaks, and no others.
//
//race:skip its programs do not have the detector
func TestPluginTest_wrongDrivers(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	for _, story := range wrongDrivers() {
		t.Run(story.fault, func(t *testing.T) {
			t.Parallel()
			story.judge(t, path, fmt.Sprintf(wrongTasks, story.fault), "driver", 3)
		})
	}
}

// Under nohup a driver once started tasks that no SIGHUP reached: they inherited the ignored signal.
//
//race:skip its programs do not have the detector
func TestPluginTest_ignoredSignals(t *testing.T) {
	t.Parallel()
	groups, err := cgroup.Find("/")
	if err != nil || !groups.Usable() {
		t.Skip("this user may not create control groups")
	}
	path := filepath.Join(t.TempDir(), "ignores")
	must.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\ntrap '' HUP TERM USR1\nexec "+built(t, "../../../examples/driver")+"\n"), 0o700))
	code, out, errs := command(t.Context(), "plugin test -run D15 -config ../../../examples/driver/test.json "+path)
	must.Zero(t, code, must.Sprint(out, errs))
}

// An author gets what was done, what was expected, what happened, and the sentence of the contract.
//
//race:skip its programs do not have the detector
func TestPluginTest_words(t *testing.T) {
	t.Parallel()
	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	tasks := written(t, fmt.Sprintf(wrongTasks, "forgets-exits"))
	code, out, _ := command(t.Context(), "plugin test -run d1,D17,D19 -config "+tasks+" "+path)
	must.One(t, code)
	for _, want := range []string{
		"D1            passed   The first fingerprint comes at once.\n",
		"D17 children  skipped  Destroy with force kills children in other sessions.\n    why       the file says that the tasks have no processes\n",
		"D19           failed   Inspect has the state of the task, and its result at the end.\n    done      at ",
		": Fingerprint until the driver is healthy: ok",
		": encode {",
		": StartTask: ok",
		": InspectTask: exited",
		"    expected  the result of a task that has ended\n    happened  Inspect has no result\n    contract  InspectTask has the id, the name",
		"\n2 passed, 1 failed, 1 skipped, 0 warnings\n",
	} {
		must.StrContains(t, out, want)
	}
}

// A should is a warning: the command prints it and exits with 0. With -strict it is a failure. A must
// beside it fails.
//
//race:skip its programs do not have the detector
func TestPluginTest_warnings(t *testing.T) {
	t.Parallel()
	files := "-run V1 -config " + written(t, fmt.Sprintf(devices, `{"device": [{"name": "sample", "paths": ["{dir}/*"]}]}`, "{}")) + " " + built(t, "../../../examples/device")
	code, out, errs := command(t.Context(), "plugin test "+files)
	must.Zero(t, code, must.Sprint(out, errs))
	for _, want := range []string{
		"V1 empty      warning  A plugin without a device reports an empty list at once.\n",
		"\n    contract  An empty list is a fingerprint. Without it the client waits for the plugin.\n" +
			"    should    A client loses nothing. With -strict this is a failure.\n",
		"\n4 passed, 0 failed, 0 skipped, 1 warning\n",
	} {
		must.StrContains(t, out, want)
	}
	code, out, _ = command(t.Context(), "plugin test -strict "+files)
	must.One(t, code)
	must.StrContains(t, out, "\n4 passed, 1 failed, 0 skipped, 0 warnings\n")

	path := built(t, "../../../plugin/plugintest/testdata/wrong")
	code, out, _ = command(t.Context(), "plugin test -json -run D10,D12 -config "+written(t, fmt.Sprintf(wrongTasks, "answers-one-waiter"))+" "+path)
	must.One(t, code)
	var found judgement
	must.NoError(t, json.Unmarshal([]byte(out), &found))
	var results []string
	for _, rule := range found.Rules {
		results = append(results, fmt.Sprint(rule.Rule, " ", rule.Level, " ", rule.Outcome))
	}
	must.Eq(t, []string{"D10 should warning", "D12 must failed", "D12 stop should passed"}, results)
	must.Eq(t, []int{1, 1, 0, 1}, []int{found.Passed, found.Failed, found.Skipped, found.Warnings})
	must.Positive(t, len(found.Rules[0].Failures))
}

// A config that is missing or refused is one line that names the missing key. Regression: the log, or a
// failure of each rule.
//
//race:skip its programs do not have the detector
func TestPluginTest_missingConfig(t *testing.T) {
	t.Parallel()
	wrong, files := built(t, "../../../plugin/plugintest/testdata/wrong"), built(t, "../../../examples/device")
	const own = `Give the plugin's config: in the file of -config, this is the key "config"` + "\n"
	for _, story := range []struct{ path, file, starts, ends string }{
		{files, `{"config": {"device": [{"name": "sample"}]}}`, "launching the plugin: the plugin's own config: ", own},
		{files, `{"config": {"device": [{"name": "sample", "paths": ["none"]}]}}`, "launching the plugin: the plugin's own config: SetConfig: ", own},
		{
			wrong, `{"args": ["none"]}`, `the driver does not take the config {"args":["1000000"],"command":"/bin/sleep"} of a task of kind "run for ever": `,
			`Give the configs of the driver's tasks: in a file, this is the key "tasks"` + "\n",
		},
		{wrong, `{"args": ["none"], "tasks": {}}`, `the harness has no task of kind "run for ever". `, `this is the key "tasks"` + "\n"},
	} {
		code, out, errs := command(t.Context(), "plugin test -config "+written(t, story.file)+" "+story.path)
		must.EqOp(t, 2, code)
		must.EqOp(t, "", out)
		must.StrHasPrefix(t, story.starts, errs)
		must.StrHasSuffix(t, story.ends, errs)
		must.EqOp(t, 1, strings.Count(errs, "\n"), must.Sprint(errs))
	}
}

// A wrong command line, and a plugin that does not start, test nothing.
//
//race:skip its programs do not have the detector
func TestPluginTest_mistakes(t *testing.T) {
	t.Parallel()
	wrong, storage := built(t, "../../../plugin/plugintest/testdata/wrong"), built(t, "../../../examples/csi")
	with := func(config, path string) string { return "-config " + written(t, config) + " " + path }
	for _, story := range []struct{ line, want string }{
		{"", "This command takes one argument: <path>"},
		{"a b", "This command takes one argument: <path>"},
		{"-run D21 /bin/true", `There is no rule "D21". The rules are D1 to D20 for drivers, V1 to V9 for device plugins, and S1 to S9 for storage plugins`},
		{"-config none.json /bin/true", "none.json"},
		{with(`{"args": ["none"], "skips": {"D99": "why"}}`, wrong), `the suite has no test "D99" to skip`},
		{with(`{"args": ["none"], "skips": {"D3": " "}}`, wrong), `the skip of "D3" has no reason`},
		{"-colour /bin/true", "flag provided but not defined: -colour"},
		{"/no/such/driver", "no such file"},
		{"/bin/true", "launching the plugin: the plugin did not start: no handshake: the program ended with exit status 0. Is it a plugin?\nA storage plugin (CSI)"},
		{"-run V1 " + with(`{"args": ["none"]}`, wrong), `The plugin is a driver plugin, which has no rule "V1"`},
		{storage, "A storage plugin (CSI) is tested with a file that names a volume"},
		{with(`{"args": ["-root", "{dir}/v"]}`, storage), "A storage plugin (CSI) is tested with a file that names a volume"},
		{with(`{"args": ["-rot", "{dir}/v"], "volume": "v"}`, storage), "flag provided but not defined: -rot"},
		{with(`{"volume": "v", "config": {}}`, storage), `unknown field "config"`},
		{with(`{"volume": "v", "skips": {"D1": "no"}}`, storage), `the suite has no test "D1" to skip`},
	} {
		code, out, errs := command(t.Context(), "plugin test "+story.line)
		must.EqOp(t, 2, code, must.Sprint(story.line))
		must.EqOp(t, "", out)
		must.StrContains(t, errs, story.want)
	}
}

// command runs a command line.
func command(ctx context.Context, line string) (code int, out, errs string) {
	return clitest.Program(Commands())(ctx, line)
}

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "nodedrain" { // as that, the test binary is the command
		std := cli.Stdio{In: os.Stdin, Out: os.Stdout, Errs: os.Stderr, Getenv: os.Getenv}
		os.Exit(cli.Run(os.Args[1:], Commands(), cli.Base{Ctx: context.Background(), Stdio: std}))
	}
	freshmachine.Enter()
	m.Run()
}
