package planted

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
)

// sources is one package's parsed files without its tests.
type sources struct {
	set   *token.FileSet
	files []*ast.File
	texts map[string]string // by file name from the top of the repository
}

// parseFolder parses the package in a folder.
func parseFolder(repository fs.FS, folder string) (*sources, error) {
	names, err := fs.Glob(repository, path.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	s := &sources{set: token.NewFileSet(), texts: map[string]string{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files, s.texts[name] = append(s.files, file), string(text)
	}
	return s, nil
}

// function finds the edit's function.
func (s *sources) function(e Edit) (*ast.FuncDecl, error) {
	before, _, err := fragments(e)
	if err != nil {
		return nil, err
	}
	hint := ""
	for _, file := range s.files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			switch {
			case !is || f.Body == nil:
			case funcName(f) == e.Func:
				return f, nil
			case len(before.in(f.Body)) > 0:
				hint += fmt.Sprintf(" (%s has the old code)", funcName(f))
			}
		}
	}
	return nil, fmt.Errorf("the package has no function %s%s: name the function that has this code now, or delete the bug if the code is gone", e.Func, hint)
}

// body returns the text of a function's body, braces included.
func (s *sources) body(f *ast.FuncDecl) string {
	start, end := s.set.Position(f.Body.Pos()), s.set.Position(f.Body.End())
	return s.texts[start.Filename][start.Offset:end.Offset]
}

// funcName returns a function's name, with its receiver's type in front if it is a method.
func funcName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, is := t.(*ast.StarExpr); is {
		t = star.X
	}
	switch generic := t.(type) {
	case *ast.IndexExpr:
		t = generic.X
	case *ast.IndexListExpr:
		t = generic.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// apply makes the edit in the body of its function.
func (s *sources) apply(e Edit, body string) (string, error) {
	const header = "package p; func _() "
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", header+body, parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	before, after, err := fragments(e)
	if err != nil {
		return "", err
	}
	found := before.in(file.Decls[0].(*ast.FuncDecl).Body)
	if len(found) != 1 {
		return "", fmt.Errorf("the function has the old code %d times, not once: %squote the code as it is now, or delete the bug if the code is gone",
			len(found), s.missing(before, file))
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset - len(header) }
	return body[:offset(found[0].start)] + after.text + body[offset(found[0].end):], nil
}

// missing names the identifiers of the old code that the function does not use.
func (s *sources) missing(old fragment, function ast.Node) string {
	inFunction, inPackage := names(function), map[string]bool{}
	for _, file := range s.files {
		for name := range names(file) {
			inPackage[name] = true
		}
	}
	var text strings.Builder
	for _, n := range old.nodes {
		for _, name := range slices.Sorted(maps.Keys(names(n))) {
			switch {
			case !inPackage[name]:
				fmt.Fprintf(&text, "the package has no identifier %s; ", name)
			case !inFunction[name]:
				fmt.Fprintf(&text, "the function does not use the identifier %s; ", name)
			}
		}
	}
	return text.String()
}

// names returns the identifiers below a node.
func names(root ast.Node) map[string]bool {
	all := map[string]bool{}
	ast.Inspect(root, func(n ast.Node) bool {
		if id, is := n.(*ast.Ident); is {
			all[id.Name] = true
		}
		return true
	})
	return all
}

// fragment is parsed code: one expression, or a list of statements or of cases.
type fragment struct {
	nodes []ast.Node
	text  string
}

// frames make a Go file of an expression, of statements and of the cases of a switch.
var frames = [...]struct {
	before, after string
	nodes         func(*ast.File) []ast.Node
}{
	{"package p; var _ = ", "", func(f *ast.File) []ast.Node {
		return []ast.Node{f.Decls[0].(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0]}
	}},
	{"package p; func _() {", "}", func(f *ast.File) []ast.Node { return nodes(statements(f)) }},
	{"package p; func _() { switch {", "}}", func(f *ast.File) []ast.Node {
		return nodes(statements(f)[0].(*ast.SwitchStmt).Body.List)
	}},
}

func statements(f *ast.File) []ast.Stmt { return f.Decls[0].(*ast.FuncDecl).Body.List }

func nodes(list []ast.Stmt) []ast.Node {
	all := make([]ast.Node, len(list))
	for i, s := range list {
		all[i] = s
	}
	return all
}

// fragments parses both sides of an edit as the same kind of code.
func fragments(e Edit) (before, after fragment, err error) {
	var why error
	for i, frame := range frames {
		parse := func(text string) (fragment, error) {
			file, err := parser.ParseFile(token.NewFileSet(), "", frame.before+text+frame.after, parser.SkipObjectResolution)
			switch {
			case err != nil:
				return fragment{}, err
			case len(file.Decls) != 1:
				return fragment{}, errors.New("more than one declaration")
			}
			return fragment{frame.nodes(file), text}, nil
		}
		before, errBefore := parse(e.Old)
		after, errAfter := parse(e.New)
		if errBefore == nil && errAfter == nil {
			after.text = strings.TrimSpace(after.text)
			if i == 0 && binary(after) {
				after.text = "(" + after.text + ")"
			}
			return before, after, nil
		}
		if i == 1 {
			why = errors.Join(errBefore, errAfter)
		}
	}
	return fragment{}, fragment{}, fmt.Errorf("both sides must be an expression each, or statements, or cases of a switch: %w", why)
}

// binary reports whether the code is an expression such as a+b, which may need parentheses
// in its new place.
func binary(f fragment) bool {
	_, is := f.nodes[0].(*ast.BinaryExpr)
	return is
}

// span is a place in the sources.
type span struct{ start, end token.Pos }

// in returns the places in which a function contains the code.
func (f fragment) in(root ast.Node) (found []span) {
	ast.Inspect(root, func(n ast.Node) bool {
		list := []ast.Node{n}
		switch n := n.(type) {
		case *ast.BlockStmt:
			list = nodes(n.List)
		case *ast.CaseClause:
			list = nodes(n.Body)
		case *ast.CommClause:
			list = nodes(n.Body)
		case ast.Stmt:
			return true
		}
		for i := 0; i+len(f.nodes) <= len(list); i++ {
			window := list[i : i+len(f.nodes)]
			if slices.EqualFunc(window, f.nodes, sameCode) {
				found = append(found, span{window[0].Pos(), window[len(window)-1].End()})
			}
		}
		return true
	})
	return found
}

func sameCode(a, b ast.Node) bool { return same(reflect.ValueOf(a), reflect.ValueOf(b)) }

// same compares syntax trees without positions and comments. A position that may be absent,
// such as the one of the dots in f(x...), is part of the code.
func same(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch {
	case !a.IsValid():
		return true
	case a.Type() == reflect.TypeFor[token.Pos]():
		return (a.Int() == 0) == (b.Int() == 0)
	case a.Type() == reflect.TypeFor[*ast.CommentGroup]():
		return true
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		return same(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !same(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !same(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}
