//race:skip it reads sources
package lint_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// docs/security.md names tests that exist, and each test whose name begins with TestSecurity_.
func TestProject_claims(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/security.md")
	must.NoError(t, err)
	var exist []string
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	must.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		must.NoError(t, err)
		for _, found := range declared.FindAllStringSubmatch(string(source), -1) {
			exist = append(exist, found[1])
		}
		return nil
	}))
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	must.SliceNotEmpty(t, named)
	for _, name := range named {
		must.SliceContains(t, exist, name[1])
	}
	for _, name := range exist {
		if strings.HasPrefix(name, "TestSecurity_") {
			must.StrContains(t, string(text), "`"+name+"`")
		}
	}
}
