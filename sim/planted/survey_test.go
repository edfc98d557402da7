package planted_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/planted"
)

func TestFailedTest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ output, want string }{
		{"ok  \tm/a\t0.1s\n", ""},
		{"ok  \tm/a\t0.1s\n--- FAIL: TestX (0.00s)\n    x_test.go:1: no\nFAIL\nFAIL\tm/b\t0.2s\nFAIL\n", "b.TestX"},
		{"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/one (0.00s)\n--- FAIL: TestY (0.00s)\nFAIL\nFAIL\tm/b/c\t12.203s\n", "c.TestX"},
		{"panic: runtime error: oops [recovered]\n\ngoroutine 1\nFAIL\tm/b\t0.2s\n", "b.panic: runtime error: oops [recovered]"},
		{"FAIL\tm/b\t0.2s\nFAIL\n", "b"},
		{"# m/b\nb.go:1: undefined: x\nFAIL\tm/b [build failed]\nFAIL\n", ""}, // says nothing of the bug
	} {
		must.Eq(t, c.want, planted.FailedTest(c.output), must.Sprint(c.output))
	}
}

// toy is a module with a test that finds one bug and not the other.
func toy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module toy\n\ngo 1.26\n",
		"p/p.go":        "package p\n\nfunc one() int {\n\treturn 1\n}\n\nfunc two() int {\n\treturn 2\n}\n",
		"p/p_test.go":   "package p\n\nimport \"testing\"\n\nfunc TestOne(t *testing.T) {\n\tif one() != 1 {\n\t\tt.Fatal(one())\n\t}\n}\n",
		".git/HEAD":     "not to be copied\n",
		"p/testdata/in": "to be copied\n",
	} {
		file := filepath.Join(dir, name)
		must.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		must.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

// No package is forgotten that comes to the repository, and none of the simulator's
// is surveyed: it is the simulator that the bugs judge.
func TestSurvey_RunsWhatThereIs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	parts, err := planted.Ordinary(t.Context(), root)
	must.NoError(t, err)
	others := parts[len(parts)-1]
	must.SliceContains(t, others, module+"/internal/lint")
	must.SliceContains(t, others, module+"/cmd/nodedrain")
	must.SliceNotContains(t, others, module+"/drainer")
	must.SliceNotContains(t, others, module+"/cases")
	for _, p := range others {
		must.False(t, strings.HasPrefix(p+"/", module+"/sim/"), must.Sprint(p))
	}
}

func TestSurvey_LeavesTheCopyAsItWas(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	dir := t.TempDir()
	survey, err := planted.NewSurvey(toy(t), dir)
	must.NoError(t, err)
	survey.Parts = [][]string{{"./p"}}
	must.FileNotExists(t, filepath.Join(dir, ".git"))
	must.FileExists(t, filepath.Join(dir, "p", "testdata", "in"))

	test, err := survey.Try(t.Context(), bug(t, "@@ p/p.go\n-\treturn 1\n+\treturn 3\n"))
	must.NoError(t, err)
	must.Eq(t, "p.TestOne", test)

	test, err = survey.Try(t.Context(), bug(t, "@@ p/p.go\n-\treturn 2\n+\treturn 3\n"))
	must.NoError(t, err)
	must.Eq(t, planted.Survives, test)

	_, err = survey.Try(t.Context(), bug(t, "@@ p/p.go\n-\treturn 2\n+\treturn x\n"))
	must.ErrorContains(t, err, "undefined: x")

	text, err := os.ReadFile(filepath.Join(dir, "p", "p.go"))
	must.NoError(t, err)
	must.StrContains(t, string(text), "return 1")
	must.StrContains(t, string(text), "return 2")
}

// moody are tests of which one fails in each run, until a file names none any more.
const moody = `package p

import (
	"os"
	"strings"
	"testing"
)

var fails string

func TestOne(t *testing.T) {
	runs, _ := os.ReadFile("runs")
	this, others, _ := strings.Cut(string(runs), " ")
	_ = os.WriteFile("runs", []byte(others), 0o600)
	if fails = this; fails == "One" {
		t.Fatal("not in the mood")
	}
}

func TestTwo(t *testing.T) {
	if fails == "Two" {
		t.Fatal("not in the mood")
	}
}
`

// A test that fails and then passes is not what finds a bug.
func TestSurvey_RunsAgainWhatFails(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command")
	}
	for _, c := range []struct{ runs, want, err string }{
		{runs: "One", want: planted.Survives},
		{runs: "Two Two", want: "p.TestTwo"},
		{runs: "One Two Two", want: "p.TestTwo"},
		{runs: "One Two One Two Two", err: "each of p.TestOne, p.TestTwo, p.TestOne, p.TestTwo once"},
	} {
		dir := t.TempDir()
		survey, err := planted.NewSurvey(toy(t), dir)
		must.NoError(t, err)
		survey.Parts = [][]string{{"./p"}}
		must.NoError(t, os.WriteFile(filepath.Join(dir, "p", "p_test.go"), []byte(moody), 0o600))
		must.NoError(t, os.WriteFile(filepath.Join(dir, "p", "runs"), []byte(c.runs), 0o600))
		test, err := survey.Try(t.Context(), bug(t, "@@ p/p.go\n-\treturn 2\n+\treturn 3\n"))
		must.Eq(t, c.want, test, must.Sprint(c.runs))
		if c.err == "" {
			must.NoError(t, err)
		} else {
			must.ErrorContains(t, err, c.err)
		}
	}
}
