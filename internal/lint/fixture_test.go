package lint_test

import (
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// folder returns the absolute name of testdata/src/name.
func folder(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "src", name))
	must.NoError(t, err)
	return dir
}

// load loads the packages of a fixture.
func load(t *testing.T, name string) *lint.Module {
	t.Helper()
	m, err := lint.Load(folder(t, name), "./...")
	must.NoError(t, err)
	must.SliceNotEmpty(t, m.Packages)
	return m
}

var (
	wantPattern = regexp.MustCompile(`// want (".*")$`)
	textPattern = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// expected are the findings that comments of files expect, by line.
type expected map[token.Position][]*regexp.Regexp

// readExpected reads the want comments of a fixture's files.
func readExpected(t *testing.T, dir string) expected {
	t.Helper()
	w := expected{}
	must.NoError(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		must.NoError(t, err)
		rel, err := filepath.Rel(dir, name)
		must.NoError(t, err)
		w.read(filepath.ToSlash(rel), string(text))
		return nil
	}))
	must.MapNotEmpty(t, w)
	return w
}

func (w expected) read(file, text string) {
	for i, line := range strings.Split(text, "\n") {
		match := wantPattern.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		at := token.Position{Filename: file, Line: i + 1}
		for _, quoted := range textPattern.FindAllString(match[1], -1) {
			w[at] = append(w[at], regexp.MustCompile(quoted[1:len(quoted)-1]))
		}
	}
}

// check compares the findings with the expected ones.
func (w expected) check(t *testing.T, found []lint.Finding) {
	t.Helper()
	for _, f := range found {
		at := token.Position{Filename: f.Pos.Filename, Line: f.Pos.Line}
		if !w.take(at, f.What) {
			t.Errorf("not expected: %s", f)
		}
	}
	for at, left := range w {
		for _, want := range left {
			t.Errorf("%s: nothing found that matches %q", fmt.Sprintf("%s:%d", at.Filename, at.Line), want)
		}
	}
}

func (w expected) take(at token.Position, what string) bool {
	for i, want := range w[at] {
		if want.MatchString(what) {
			w[at] = append(w[at][:i:i], w[at][i+1:]...)
			return true
		}
	}
	return false
}
