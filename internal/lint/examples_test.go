package lint_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoenig/test/must"
)

// The packages that an embedder imports have an example of a function, a type or a method that go doc shows. go vet
// refuses examples of names that do not exist.
func TestProject_examples(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"drainer", "drainer/rules", "drainer/lifecycle", "shims", "witness"} {
		names, err := filepath.Glob(filepath.Join(root(), folder, "*.go"))
		must.NoError(t, err)
		fset, files := token.NewFileSet(), []*ast.File{}
		for _, name := range names {
			file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
			must.NoError(t, err)
			files = append(files, file)
		}
		p, err := doc.NewFromFiles(fset, files, folder)
		must.NoError(t, err)
		hasExample := func(f *doc.Func) bool { return len(f.Examples) > 0 }
		shown := slices.ContainsFunc(p.Funcs, hasExample) || slices.ContainsFunc(p.Types, func(t *doc.Type) bool {
			return len(t.Examples) > 0 || slices.ContainsFunc(t.Funcs, hasExample) || slices.ContainsFunc(t.Methods, hasExample)
		})
		must.True(t, shown, must.Sprintf("%s has no example that go doc attaches to an exported name", folder))
	}
}
