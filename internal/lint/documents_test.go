//race:skip it reads sources
package lint_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// The tests and folders that documents name exist, and docs/security.md names each test whose name begins with
// TestSecurity_. Regression: TESTING.md named a package that was gone.
func TestProject_namesInDocuments(t *testing.T) {
	t.Parallel()
	declared := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	must.NoError(t, fs.WalkDir(os.DirFS(root()), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/") {
			return err
		}
		source, err := os.ReadFile(filepath.Join(root(), name))
		for _, found := range function.FindAllSubmatch(source, -1) {
			test := string(found[1])
			declared[test], declared[path.Base(path.Dir(name))+"."+test] = true, true
		}
		return err
	}))
	documents := map[string]string{}
	for document, form := range map[string]string{
		"TESTING.md":           "`((?:Test|Fuzz)[A-Z]\\w+)[`/]",
		"docs/security.md":     "`(Test\\w+)`",
		"docs/plugin-tests.md": "`([a-z0-9]+\\.(?:Test|Fuzz)\\w+)`",
	} {
		text, err := os.ReadFile(filepath.Join(root(), document))
		must.NoError(t, err)
		documents[document] = string(text)
		named := regexp.MustCompile(form).FindAllStringSubmatch(string(text), -1)
		must.Positive(t, len(named))
		for _, name := range named {
			must.True(t, declared[name[1]], must.Sprintf("%s names %s, which does not exist", document, name[1]))
		}
	}
	for name := range declared {
		if strings.HasPrefix(name, "TestSecurity_") {
			must.StrContains(t, documents["docs/security.md"], "`"+name+"`")
		}
	}
	for _, name := range regexp.MustCompile("`([a-z0-9_]+/(?:[A-Za-z0-9_]+/)*)`").FindAllStringSubmatch(documents["TESTING.md"], -1) {
		if !strings.HasPrefix(name[1], "testdata/") { // of the package in the text before
			must.DirExists(t, filepath.Join(root(), name[1]))
		}
	}
}

// Decision records have consecutive numbers, and their titles repeat them.
func TestProject_decisions(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(root(), "docs", "decisions")
	files, err := os.ReadDir(folder) // sorted by name
	must.NoError(t, err)
	must.Positive(t, len(files))
	for i, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		must.NoError(t, err)
		must.StrHasPrefix(t, fmt.Sprintf("%04d-", i+1), file.Name())
		title, _, _ := strings.Cut(string(text), "\n")
		must.StrHasPrefix(t, fmt.Sprintf("# %d. ", i+1), title, must.Sprint(file.Name()))
	}
}
