package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// WrittenValues returns, for each constant of the named types of a package, the functions that use the
// constant as a value: they assign, pass or return it. A comparison and a case of a switch only read it.
// The names are "folder.function" or "folder.Type.method" below the module path, and sorted. reads reports
// whether a package counts.
func WrittenValues(m *Module, modulePath, pkg string, typeNames []string, reads func(path string) bool) map[string][]string {
	found := map[string][]string{}
	scope := m.byPath[pkg].Types.Scope()
	for _, name := range scope.Names() {
		c, is := scope.Lookup(name).(*types.Const)
		if !is {
			continue
		}
		if named, is := types.Unalias(c.Type()).(*types.Named); is && slices.Contains(typeNames, named.Obj().Name()) {
			found[name] = nil
		}
	}
	for _, p := range m.Packages {
		if !reads(p.PkgPath) {
			continue
		}
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				f, is := d.(*ast.FuncDecl)
				if !is || f.Body == nil {
					continue
				}
				in := strings.TrimPrefix(p.PkgPath, modulePath+"/") + "." + nameOf(f)
				for _, name := range valuesIn(p, pkg, f.Body) {
					if _, listed := found[name]; listed && !slices.Contains(found[name], in) {
						found[name] = append(found[name], in)
					}
				}
			}
		}
	}
	for _, in := range found {
		slices.Sort(in)
	}
	return found
}

// nameOf returns "function" or "Type.method".
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	t := f.Recv.List[0].Type
	if star, is := t.(*ast.StarExpr); is {
		t = star.X
	}
	if index, is := t.(*ast.IndexExpr); is {
		t = index.X
	}
	if id, is := t.(*ast.Ident); is {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// valuesIn returns the constants of the package that a body uses as values.
func valuesIn(p *packages.Package, pkg string, body ast.Node) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			return n.Op != token.EQL && n.Op != token.NEQ && n.Op != token.LSS && n.Op != token.LEQ && n.Op != token.GTR && n.Op != token.GEQ
		case *ast.CaseClause:
			for _, s := range n.Body {
				names = append(names, valuesIn(p, pkg, s)...)
			}
			return false
		case *ast.Ident:
			if o, is := p.TypesInfo.Uses[n].(*types.Const); is && o.Pkg() != nil && o.Pkg().Path() == pkg {
				names = append(names, o.Name())
			}
		}
		return true
	})
	return names
}
