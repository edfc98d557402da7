package lint_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/lint"
)

// files parses Go files. The texts have no package clause.
func files(t *testing.T, texts map[string]string) *lint.Files {
	t.Helper()
	dir := fstest.MapFS{}
	for name, text := range texts {
		dir[name] = &fstest.MapFile{Data: []byte("package p\n" + text)}
	}
	f, err := lint.ReadFiles(dir)
	must.NoError(t, err)
	return f
}

// wantOne compares findings with one finding, or with none if want is empty.
func wantOne(t *testing.T, want string, found []lint.Finding) {
	t.Helper()
	var all []string
	for _, f := range found {
		all = append(all, f.What)
	}
	must.Eq(t, want, strings.Join(all, "; "))
}

func TestReadFiles(t *testing.T) {
	t.Parallel()
	dir := fstest.MapFS{}
	for _, name := range []string{"testdata/bad.go", ".hidden/bad.go", "_old/bad.go", "_bad.go", ".bad.go", "bad.txt"} {
		dir[name] = &fstest.MapFile{Data: []byte("no Go")}
	}
	_, err := lint.ReadFiles(dir)
	must.ErrorContains(t, err, "no Go file found")
	dir["bad.go"] = &fstest.MapFile{Data: []byte("pakcage p")}
	_, err = lint.ReadFiles(dir)
	must.ErrorContains(t, err, "bad.go:1:1: expected 'package'")
}

func TestCheckMethods(t *testing.T) {
	t.Parallel()
	const two = "func (*T) A() {}\nfunc (t T) B() {}\n"
	for name, test := range map[string]struct {
		texts   map[string]string
		allowed map[string]int
		want    string
	}{
		"few":              {map[string]string{"a/p.go": "type T int\n" + two}, nil, ""},
		"many":             {map[string]string{"a/p.go": "type T int\n" + two + "func (T) C() {}"}, nil, "a.T has 3 methods, and may have 2"},
		"many, allowed":    {map[string]string{"a/p.go": "type T int\n" + two + "func (T) C() {}"}, map[string]int{"a.T": 3}, ""},
		"more than listed": {map[string]string{"a/p.go": "type T int\n" + two + "func (T) C() {}\nfunc (T) D() {}"}, map[string]int{"a.T": 3}, "a.T has 4 methods, and may have 3"},
		"few, allowed":     {map[string]string{"a/p.go": "type T int\n" + two}, map[string]int{"a.T": 3}, "a.T has 2 methods and needs no exception: delete it"},
		"two files":        {map[string]string{"a/p.go": "type T int\nfunc (T) C() {}", "a/p_test.go": two}, nil, "a.T has 3 methods, and may have 2"},
		"two folders":      {map[string]string{"a/p.go": "type T int\nfunc (T) C() {}", "b/p.go": "type T int\n" + two}, nil, ""},
		"generic":          {map[string]string{"p.go": "type T[K any] int\nfunc (T[K]) A() {}\nfunc (*T[K]) B() {}\nfunc (T[K]) C() {}"}, nil, "..T has 3 methods, and may have 2"},
		"two parameters":   {map[string]string{"p.go": "type T[K, V any] int\nfunc (T[K, V]) A() {}\nfunc (*T[K, V]) B() {}\nfunc (T[K, V]) C() {}"}, nil, "..T has 3 methods, and may have 2"},
		"interface":        {map[string]string{"p.go": "type T interface { A(); B(); C() }"}, nil, "..T has 3 methods, and may have 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOne(t, test.want, lint.CheckMethods(files(t, test.texts), 2, test.allowed))
		})
	}
}

func TestCheckVariables(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text string
		allowed    map[string]string
		want       string
	}{
		"state":           {"a/p.go", "var x int", nil, "a.x is a package variable, which may be state"},
		"table":           {"a/p.go", "var x = map[string]int{}", nil, "a.x is a package variable, which may be state"},
		"call":            {"a/p.go", "var x = errors.Join()", nil, "a.x is a package variable, which may be state"},
		"one of two":      {"a/p.go", "var (\nErrX = errors.New(\"\")\ny = 1\n)", nil, "a.y is a package variable, which may be state"},
		"two of one call": {"a/p.go", "var _, x = errors.New(\"\")", nil, "a.x is a package variable, which may be state"},
		"error":           {"a/p.go", "var errX = errors.New(\"\")", nil, ""},
		"pattern":         {"a/p.go", "var x = regexp.MustCompile(`x`)", nil, ""},
		"assertion":       {"a/p.go", "var _ I = T{}", nil, ""},
		"embedded":        {"a/p.go", "//go:embed x.html\nvar x string", nil, ""},
		"constant":        {"a/p.go", "const x = 1", nil, ""},
		"local":           {"a/p.go", "func f() { var x int; _ = x }", nil, ""},
		"test":            {"a/p_test.go", "var x int", nil, ""},
		"allowed":         {"a/p.go", "var x int", map[string]string{"a.x": "because"}, ""},
		"not needed":      {"a/p.go", "", map[string]string{"a.x": "because"}, "the exception for the variable a.x is not needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOne(t, test.want, lint.CheckVariables(files(t, map[string]string{test.file: test.text}), test.allowed))
		})
	}
}

func TestCheckModules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, text, want string
	}{
		"other":     {"core/p.go", `import "r/rest"`, "the module core imports r/rest, which belongs to another module"},
		"root":      {"core/p.go", `import "r"`, "the module core imports r, which belongs to another module"},
		"test":      {"core/a/p_test.go", `import "r/rest"`, "the module core imports r/rest, which belongs to another module"},
		"like own":  {"core/p.go", `import "r/corex"`, "the module core imports r/corex, which belongs to another module"},
		"own":       {"core/p.go", `import "r/core/a"`, ""},
		"used":      {"core/p.go", `import "r/base/a"`, ""},
		"elsewhere": {"core/p.go", `import "rest"`, ""},
		"misspelt":  {"cor/p.go", `import "r/rest"`, "the module core has no Go file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantOne(t, test.want, lint.CheckModules(files(t, map[string]string{test.file: test.text}), "r", map[string][]string{"core": {"base"}}))
		})
	}
}
