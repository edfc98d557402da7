package lint_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// Every test that the documents about tests name exists: in any package, or in the one that is named.
func TestProject_testsThatTheDocumentNames(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	must.NoError(t, filepath.WalkDir(root(), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(source, -1) {
			name := string(found[1])
			declared[name], declared[filepath.Base(filepath.Dir(path))+"."+name] = true, true
		}
		return err
	}))
	for document, form := range map[string]string{
		"TESTING.md":           "`((?:Test|Fuzz)[A-Z]\\w+)[`/]",
		"docs/plugin-tests.md": "`([a-z0-9]+\\.(?:Test|Fuzz)\\w+)`",
	} {
		text, err := os.ReadFile(filepath.Join(root(), document))
		must.NoError(t, err)
		named := regexp.MustCompile(form).FindAllSubmatch(text, -1)
		must.Positive(t, len(named))
		for _, name := range named {
			must.True(t, declared[string(name[1])], must.Sprintf("%s names %s, which does not exist", document, name[1]))
		}
	}
}

// Every folder that TESTING.md names exists. Regression: it named a package that was gone.
func TestProject_foldersThatTheDocumentNames(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root(), "TESTING.md"))
	must.NoError(t, err)
	named := regexp.MustCompile("`([a-z0-9_]+/(?:[A-Za-z0-9_]+/)*)`").FindAllSubmatch(text, -1)
	must.Positive(t, len(named))
	for _, name := range named {
		if folder := string(name[1]); !strings.HasPrefix(folder, "testdata/") { // of the package in the text before
			must.DirExists(t, filepath.Join(root(), folder))
		}
	}
}
