package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"
)

// raceDirective marks what the gate does not run with the race detector: a test, or a package if it is above the
// package clause of a test file. The reason follows.
const raceDirective = "//race:skip "

// oneGoroutine is the reason of a package whose code and tests start no goroutine.
const oneGoroutine = "one goroutine"

// A package that is marked as one goroutine has no go statement, and no call that starts one. The gate skips tests by
// their names, so all tests with the name of a marked test are marked.
func TestProject_raceDirectives(t *testing.T) {
	t.Parallel()
	single, starts := map[string]string{}, map[string][]string{}
	marked, unmarked := map[string]bool{}, map[string]string{}
	directives := 0
	files := token.NewFileSet()
	must.NoError(t, filepath.WalkDir(root(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() && e.Name() == "testdata" {
			return skipFolder(err)
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		starts[folder] = append(starts[folder], startsOf(files, file)...)
		for _, group := range file.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//race:") {
					directives++
					must.True(t, strings.HasSuffix(path, "_test.go"), must.Sprint(path))
				}
			}
		}
		if why, ok := raceReason(file.Doc); ok {
			directives--
			single[folder] = why
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") && !strings.HasPrefix(f.Name.Name, "Fuzz") {
				continue
			}
			if _, ok := raceReason(f.Doc); ok {
				directives--
				marked[f.Name.Name] = true
			} else if strings.HasSuffix(path, "_test.go") {
				unmarked[f.Name.Name] = path
			}
		}
		return nil
	}))
	if directives != 0 {
		t.Errorf("%d directives are not the last line above a test or a package clause, or have no reason", directives)
	}
	must.Positive(t, len(single))
	must.Positive(t, len(marked))
	for name := range marked {
		if path, ok := unmarked[name]; ok {
			t.Errorf("%s has a test %s without the directive, but another test with this name has it", path, name)
		}
	}
	for folder, why := range single {
		if why == oneGoroutine && len(starts[folder]) > 0 {
			t.Errorf("%s is marked as %q: %s", folder, why, strings.Join(starts[folder], ", "))
		}
	}
}

// skipFolder returns the error of a walk, or skips the folder.
func skipFolder(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

// raceReason returns the reason of a directive in the last line of a comment.
func raceReason(doc *ast.CommentGroup) (string, bool) {
	if doc == nil {
		return "", false
	}
	why, ok := strings.CutPrefix(doc.List[len(doc.List)-1].Text, raceDirective)
	return why, ok && strings.TrimSpace(why) != ""
}

// startsOf returns the places of a file that start a goroutine. Parallel tests share nothing: no package has
// variables with state.
func startsOf(files *token.FileSet, file *ast.File) (places []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		starts := false
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			starts = slices.Contains([]string{"Go", "AfterFunc", "NewServer"}, n.Sel.Name)
		}
		if starts {
			places = append(places, files.Position(n.Pos()).String())
		}
		return true
	})
	return places
}
