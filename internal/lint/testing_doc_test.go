package lint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// Every test that TESTING.md names exists.
func TestProject_testsThatTheDocumentNames(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	must.NoError(t, filepath.WalkDir(root(), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(source, -1) {
			declared[string(found[1])] = true
		}
		return err
	}))
	document, err := os.ReadFile(filepath.Join(root(), "TESTING.md"))
	must.NoError(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w+)[`/]").FindAllSubmatch(document, -1)
	must.Positive(t, len(named))
	for _, name := range named {
		must.True(t, declared[string(name[1])], must.Sprintf("TESTING.md names %s, which does not exist", name[1]))
	}
}
