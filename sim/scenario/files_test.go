package scenario_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Every file in sim/scenarios is valid without a warning and has prose, a story and an end.
func TestFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../scenarios/*.drain")
	must.NoError(t, err)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		must.NoError(t, err)
		s, warnings, err := scenario.Parse(filepath.Base(file), bytes.NewReader(text))
		must.NoError(t, err)
		must.SliceEmpty(t, warnings, must.Sprint(file, warnings))
		must.SliceNotEmpty(t, s.Prose, must.Sprint(file))
		must.NotEq(t, "", s.Story, must.Sprint(file))
		must.NotEq(t, "", s.End, must.Sprint(file))
		must.Eq(t, string(text), string(scenario.Rewrite(text, s.Story, s.End)), must.Sprint(file))
		must.NoError(t, s.Check())
		names = append(names, s.Name)
	}
	for n := 1; n <= 38; n++ {
		has(t, names, fmt.Sprintf("^case-%02d-", n))
	}
	for _, n := range []int{13, 14, 15, 30, 31, 32, 33, 37, 47, 48, 50, 51, 52, 53, 54, 59, 65, 67, 69, 71, 75, 76, 77, 78, 80, 81, 82, 84} {
		has(t, names, fmt.Sprintf("^g-%02d-", n))
	}
}

func has(t *testing.T, names []string, pattern string) {
	t.Helper()
	must.True(t, slices.ContainsFunc(names, regexp.MustCompile(pattern).MatchString), must.Sprintf("no file is %s", pattern))
}
