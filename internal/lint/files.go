package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is the Go files of a folder and of those below it, tests included, but
// without what the go command leaves out: testdata, and names that begin with a
// dot or an underscore.
type Tree struct {
	fset  *token.FileSet
	files []file
}

// file is one Go file, parsed.
type file struct {
	// name is relative to the tree's folder, with slashes.
	name   string
	text   []byte
	syntax *ast.File
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// ReadTree reads a folder's Go files. A file that does not parse is an error.
func ReadTree(dir string) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	var errs []error
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch base := filepath.Base(name); {
		case err != nil:
			return err
		case name != dir && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || d.IsDir() && base == "testdata"):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		f := file{name: relative(dir, name)}
		if f.text, err = os.ReadFile(name); err != nil {
			return err
		}
		f.syntax, err = parser.ParseFile(t.fset, f.name, f.text, parser.ParseComments|parser.SkipObjectResolution)
		errs = append(errs, err)
		t.files = append(t.files, f)
		return nil
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, fmt.Errorf("reading the Go files of %s: %w", dir, err)
	}
	return t, nil
}

// MaxFileLines is how long a file may be that is no test: beyond it, it surely
// holds more than one noun.
const MaxFileLines = 500

// CheckFiles returns what is wrong with the form of files, and of packages as
// sets of files.
func CheckFiles(t *Tree) []Finding {
	var found []Finding
	for _, f := range t.files {
		found = append(found, f.checkFormat()...)
		found = append(found, t.checkWords(f)...)
		found = append(found, t.checkTime(f)...)
	}
	return sortFindings(append(found, t.checkPackageComments()...))
}

func (f file) at(line int, what string) Finding {
	return Finding{Pos: token.Position{Filename: f.name, Line: line}, What: what}
}

func (f file) checkFormat() []Finding {
	var found []Finding
	if formatted, err := format.Source(f.text); err != nil || !bytes.Equal(formatted, f.text) {
		found = append(found, f.at(1, "gofmt would change this file"))
	}
	if lines := bytes.Count(f.text, []byte("\n")); lines > MaxFileLines && !f.isTest() {
		found = append(found, f.at(lines, fmt.Sprintf("the file has %d lines, and may have %d: it holds more than one noun", lines, MaxFileLines)))
	}
	return found
}

// unfinished are the words of unfinished work, put together so that they do not
// stand here.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func (t *Tree) checkWords(f file) []Finding {
	var found []Finding
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if word := unfinished.FindString(c.Text); word != "" {
				found = append(found, f.at(t.fset.Position(c.Pos()).Line, word+": finish it, or write an issue"))
			}
		}
	}
	return found
}

// checkTime finds time.After where its channel is thrown away, which waits for
// nothing, and time.Sleep in tests, which waits for the wrong thing: in a bubble
// of testing/synctest it waits exactly, elsewhere it makes a test slow or flaky.
func (t *Tree) checkTime(f file) []Finding {
	name := f.importName("time")
	if name == "" {
		return nil
	}
	var found []Finding
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ExprStmt:
			if isCallOf(n.X, name, "After") {
				found = append(found, f.at(t.fset.Position(n.Pos()).Line, "time.After as a statement waits for nothing"))
			}
		case *ast.CallExpr:
			if isCallOf(n, name, "Sleep") && f.isTest() && f.importName("testing/synctest") == "" {
				found = append(found, f.at(t.fset.Position(n.Pos()).Line, "a test sleeps outside of a synctest bubble"))
			}
		}
		return true
	})
	return found
}

// importName returns the name under which a file imports a package, or nothing.
func (f file) importName(path string) string {
	for _, i := range f.syntax.Imports {
		if got, err := strconv.Unquote(i.Path.Value); err == nil && got == path {
			if i.Name != nil {
				return i.Name.Name
			}
			return path[strings.LastIndex(path, "/")+1:]
		}
	}
	return ""
}

func isCallOf(e ast.Expr, pkg, name string) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// checkPackageComments: every package has one comment, where people look for it.
func (t *Tree) checkPackageComments() []Finding {
	packages := map[string][]file{}
	for _, f := range t.files {
		if !f.isTest() {
			dir := path.Dir(f.name)
			packages[dir] = append(packages[dir], f)
		}
	}
	var found []Finding
	for _, files := range packages {
		slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
		place := "doc.go"
		if files[0].syntax.Name.Name == "main" {
			place = "main.go"
		}
		commented := false
		for _, f := range files {
			if f.syntax.Doc == nil {
				continue
			}
			commented = true
			if path.Base(f.name) != place {
				found = append(found, f.at(t.clause(f), "the package comment belongs into "+place))
			}
		}
		if !commented {
			found = append(found, files[0].at(t.clause(files[0]), "the package has no package comment: write "+place))
		}
	}
	return found
}

// clause returns the line of a file's package clause.
func (t *Tree) clause(f file) int { return t.fset.Position(f.syntax.Package).Line }
