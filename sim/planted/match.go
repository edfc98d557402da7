package planted

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
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
	old, hint := tokensOf(e.Old), ""
	for _, file := range s.files {
		for _, d := range file.Decls {
			f, is := d.(*ast.FuncDecl)
			switch {
			case !is || f.Body == nil:
			case funcName(f) == e.Func:
				return f, nil
			case len(places(tokensOf(s.body(f)), old)) > 0:
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
func apply(e Edit, body string) (string, error) {
	code, old := tokensOf(body), tokensOf(e.Old)
	found := places(code, old)
	if len(found) != 1 {
		return "", fmt.Errorf("the function has the old code %d times, not once: %squote the code as it is now, or delete the bug if the code is gone",
			len(found), missing(code, old))
	}
	after := strings.TrimSpace(e.New)
	if isBinary(after) && isExpr(e.Old) {
		after = "(" + after + ")"
	}
	first, last := code[found[0]], code[found[0]+len(old)-1]
	return body[:first.start] + after + body[last.end():], nil
}

// element is a token of the code with its offset.
type element struct {
	token token.Token
	text  string
	start int
}

func (e element) end() int { return e.start + len(e.text) }

func (e element) same(o element) bool {
	return e.token == o.token && (e.text == o.text || e.token == token.SEMICOLON)
}

// tokensOf returns the tokens of a text without comments, layout, and semicolons at its end.
func tokensOf(text string) (all []element) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, 0)
	for {
		pos, tok, literal := s.Scan()
		switch {
		case tok == token.EOF:
			for len(all) > 0 && all[len(all)-1].token == token.SEMICOLON {
				all = all[:len(all)-1]
			}
			return all
		case !tok.IsLiteral() && tok != token.SEMICOLON:
			literal = tok.String()
		}
		all = append(all, element{tok, literal, file.Offset(pos)})
	}
}

// places returns where the code contains the tokens. Those of a method's call are not those of a
// function's call with the same name.
func places(code, tokens []element) (found []int) {
	for i := 0; len(tokens) > 0 && i+len(tokens) <= len(code); i++ {
		selected := i > 0 && code[i-1].token == token.PERIOD && tokens[0].token == token.IDENT
		if !selected && slices.EqualFunc(code[i:i+len(tokens)], tokens, element.same) {
			found = append(found, i)
		}
	}
	return found
}

// missing names the identifiers of the old code that the function does not use.
func missing(code, old []element) (text string) {
	for _, e := range old {
		if e.token == token.IDENT && !slices.ContainsFunc(code, e.same) {
			text += fmt.Sprintf("the function does not use the identifier %s; ", e.text)
		}
	}
	return text
}

func isExpr(text string) bool {
	_, err := parser.ParseExpr(text)
	return err == nil
}

// isBinary reports whether the code is an expression such as a+b, which may need parentheses
// in its new place.
func isBinary(text string) bool {
	e, err := parser.ParseExpr(text)
	_, is := e.(*ast.BinaryExpr)
	return err == nil && is
}
