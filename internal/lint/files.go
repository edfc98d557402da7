package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Files are the parsed Go files of a folder and its subfolders, tests included.
type Files struct {
	fset   *token.FileSet
	parsed []file
}

type file struct {
	// name is relative to the folder, with slashes.
	name   string
	syntax *ast.File
}

// written returns the files without those that a program has generated.
func (f *Files) written() []file {
	return slices.DeleteFunc(slices.Clone(f.parsed), func(file file) bool { return ast.IsGenerated(file.syntax) })
}

// ReadFiles parses the Go files of a folder. Like the go command it ignores testdata folders and
// names that begin with a dot or an underscore.
func ReadFiles(dir fs.FS) (*Files, error) {
	f := &Files{fset: token.NewFileSet()}
	err := fs.WalkDir(dir, ".", func(name string, d fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case d.IsDir() && isIgnored(name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_"):
			return nil
		}
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(f.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		f.parsed = append(f.parsed, file{name, syntax})
		return err
	})
	if err == nil && len(f.parsed) == 0 {
		err = errors.New("no Go file found")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Go files: %w", err)
	}
	return f, nil
}

// isIgnored reports whether the go command ignores a folder.
func isIgnored(name string) bool {
	base := path.Base(name)
	return name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata")
}

func (f *Files) at(n ast.Node, format string, args ...any) Finding {
	return Finding{Pos: f.fset.Position(n.Pos()), What: fmt.Sprintf(format, args...)}
}

// CheckCounts returns the packages with more files than most, or than mostMain for a package main.
// Tests and generated files do not count.
func CheckCounts(f *Files, most, mostMain int) []Finding {
	count, limit := map[string]int{}, map[string]int{}
	for _, file := range f.written() {
		if strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		folder := path.Dir(file.name)
		count[folder]++
		limit[folder] = most
		if file.syntax.Name.Name == "main" {
			limit[folder] = mostMain
		}
	}
	var found []Finding
	for folder, n := range count {
		if n > limit[folder] {
			found = append(found, Finding{What: fmt.Sprintf("%s has %d files, and may have %d", folder, n, limit[folder])})
		}
	}
	return sortFindings(found)
}

// CheckVariables returns the package variables outside of tests and generated files, without errors, compiled
// patterns, dates and embedded files. The key of allowed is "folder.name", the value is the reason why this
// variable is no state. A reason that is not needed is a finding.
func CheckVariables(f *Files, allowed map[string]string) []Finding {
	var found []Finding
	needed := map[string]bool{}
	for _, file := range f.written() {
		if strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		for _, decl := range file.syntax.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.VAR && !isEmbed(gen) {
				for _, spec := range gen.Specs {
					for _, name := range variables(spec.(*ast.ValueSpec)) {
						full := path.Dir(file.name) + "." + name.Name
						needed[full] = true
						if allowed[full] == "" {
							found = append(found, f.at(name, "%s is a package variable, which may be state", full))
						}
					}
				}
			}
		}
	}
	for name := range allowed {
		if !needed[name] {
			found = append(found, Finding{What: fmt.Sprintf("the exception for the variable %s is not needed", name)})
		}
	}
	return sortFindings(found)
}

func isEmbed(decl *ast.GenDecl) bool {
	if decl.Doc != nil {
		for _, c := range decl.Doc.List {
			if strings.HasPrefix(c.Text, "//go:embed ") {
				return true
			}
		}
	}
	return false
}

// variables returns the names whose values may change.
func variables(spec *ast.ValueSpec) (names []*ast.Ident) {
	for i, name := range spec.Names {
		if name.Name != "_" && (len(spec.Values) != len(spec.Names) || !isFixed(spec.Values[i])) {
			names = append(names, name)
		}
	}
	return names
}

// isFixed reports whether the value is an error, a compiled pattern or a date.
func isFixed(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := function.X.(*ast.Ident)
	if !ok {
		return false
	}
	switch pkg.Name + "." + function.Sel.Name {
	case "errors.New", "fmt.Errorf", "regexp.MustCompile", "template.Must", "time.Date":
		return true
	}
	return false
}

// within reports whether a path is the folder or below it.
func within(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
