package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/packages"
)

// CheckDeclarations returns exported names without a comment, package variables
// that hold state, and exported signatures that say any. A method that does what
// a commented method of one of the module's interfaces says needs no comment of
// its own. The exceptions give, by full name, the reason why a variable or a
// function may be as it is; one that excuses nothing is a finding.
func CheckDeclarations(m *Module, exceptions map[string]string) []Finding {
	d := &declarations{graph: newGraph(m), exceptions: exceptions, met: map[string]bool{}, promised: map[string][]*types.Func{}}
	for _, pkg := range m.Packages {
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				if i, ok := n.(*ast.InterfaceType); ok {
					d.gatherPromises(i, pkg.TypesInfo)
				}
				return true
			})
		}
	}
	for _, pkg := range m.Packages {
		for _, file := range pkg.Syntax {
			for _, decl := range file.Decls {
				d.check(decl, pkg)
			}
		}
	}
	d.checkState()
	for name := range exceptions {
		if !d.met[name] {
			d.found = append(d.found, Finding{What: fmt.Sprintf("the exception for %s excuses nothing", name)})
		}
	}
	return sortFindings(d.found)
}

type declarations struct {
	*graph
	exceptions map[string]string
	met        map[string]bool
	// promised are the commented methods of interfaces, by name.
	promised map[string][]*types.Func
	found    []Finding
}

// gatherPromises notes the commented methods of an interface.
func (d *declarations) gatherPromises(i *ast.InterfaceType, info *types.Info) {
	for _, field := range i.Methods.List {
		for _, name := range field.Names {
			if m, ok := info.Defs[name].(*types.Func); ok && (field.Doc != nil || field.Comment != nil) {
				d.promised[name.Name] = append(d.promised[name.Name], m)
			}
		}
	}
}

func (d *declarations) report(n ast.Node, format string, args ...any) {
	d.found = append(d.found, d.module.at(n, format, args...))
}

func (d *declarations) check(decl ast.Decl, pkg *packages.Package) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		f := pkg.TypesInfo.Defs[decl.Name].(*types.Func)
		if !isExported(f) {
			return
		}
		if decl.Doc == nil && !d.explained(f) {
			d.report(decl, "%s has no comment", decl.Name.Name)
		}
		d.checkAny(decl, f)
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			d.checkSpec(decl, spec, pkg)
		}
	}
}

// isExported reports whether a function can be named from another package.
func isExported(f *types.Func) bool {
	if f.Signature().Recv() == nil {
		return f.Exported()
	}
	return f.Exported() && token.IsExported(receiverName(f))
}

func (d *declarations) checkSpec(decl *ast.GenDecl, spec ast.Spec, pkg *packages.Package) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if !spec.Name.IsExported() {
			return
		}
		if decl.Doc == nil && spec.Doc == nil {
			d.report(spec, "%s has no comment", spec.Name.Name)
		}
		if i, ok := pkg.TypesInfo.Defs[spec.Name].Type().Underlying().(*types.Interface); ok {
			for m := range i.ExplicitMethods() {
				d.checkAny(spec, m)
			}
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			if name.IsExported() && decl.Doc == nil && spec.Doc == nil && spec.Comment == nil {
				d.report(name, "%s has no comment", name.Name)
			}
		}
	}
}

// checkAny finds parameters and results of an exported function that may be
// anything.
func (d *declarations) checkAny(at ast.Node, f *types.Func) {
	sig := f.Signature()
	if !saysAny(sig.Params()) && !saysAny(sig.Results()) {
		return
	}
	if !d.excused(f) {
		d.report(at, "%s says any where a type would do", f.FullName())
	}
}

// excused reports whether there is an exception for the object.
func (d *declarations) excused(o types.Object) bool {
	name := d.fullName(o)
	_, is := d.exceptions[name]
	if is {
		d.met[name] = true
	}
	return is
}

// explained reports whether one of the module's interfaces says what the method
// does.
func (d *declarations) explained(method *types.Func) bool {
	recv := method.Signature().Recv()
	if recv == nil {
		return false
	}
	for _, m := range d.promised[method.Name()] {
		if t, ok := namedUnder(recv.Type()); ok && d.implements(t, m.Signature().Recv().Type()) {
			return true
		}
	}
	return false
}

func saysAny(tuple *types.Tuple) bool {
	for v := range tuple.Variables() {
		if mentionsAny(v.Type()) {
			return true
		}
	}
	return false
}

func mentionsAny(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.Interface:
		return t.Empty()
	case *types.Pointer:
		return mentionsAny(t.Elem())
	case *types.Slice:
		return mentionsAny(t.Elem())
	case *types.Array:
		return mentionsAny(t.Elem())
	case *types.Chan:
		return mentionsAny(t.Elem())
	case *types.Map:
		return mentionsAny(t.Key()) || mentionsAny(t.Elem())
	case *types.Signature:
		return saysAny(t.Params()) || saysAny(t.Results())
	}
	return false
}

// checkState finds package variables that can change, or that hold something
// that can. Errors, compiled patterns, embedded files and tables that nothing
// writes to may stay.
func (d *declarations) checkState() {
	for _, pkg := range d.module.Packages {
		embedded := embeds(pkg)
		for o := range d.code {
			v, ok := o.(*types.Var)
			if ok && v.Pkg() == pkg.Types && !embedded[v] && !isFixed(v.Type()) && v.Name() != "_" && !d.excused(v) {
				d.found = append(d.found, d.state(v, "a package variable of a type that can change"))
			}
		}
		scope := pkg.Types.Scope()
		for _, name := range scope.Names() {
			if v, ok := scope.Lookup(name).(*types.Var); ok && d.code[v].node == nil && !embedded[v] {
				d.found = append(d.found, d.state(v, "a package variable without a value can only be state"))
			}
		}
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				d.checkWrite(n, pkg.TypesInfo)
				return true
			})
		}
	}
}

func (d *declarations) state(v *types.Var, what string) Finding {
	return Finding{Pos: d.module.position(v.Pos()), What: v.Name() + ": " + what}
}

// isFixed reports whether a variable of the type changes only when something
// visibly writes to it.
func isFixed(t types.Type) bool {
	switch t.String() {
	case "error", "*regexp.Regexp", "*text/template.Template", "*html/template.Template", "time.Time":
		return true
	}
	switch u := t.Underlying().(type) {
	case *types.Basic, *types.Signature:
		return true
	case *types.Array:
		return isFixed(u.Elem())
	case *types.Slice:
		return isFixed(u.Elem())
	case *types.Map:
		return isFixed(u.Elem())
	case *types.Struct:
		for f := range u.Fields() {
			if !isFixed(f.Type()) {
				return false
			}
		}
		return true
	}
	return false
}

// checkWrite finds writes to package variables, and addresses taken of them.
func (d *declarations) checkWrite(n ast.Node, info *types.Info) {
	written := func(e ast.Expr) {
		if v := packageVarUnder(e, info); v != nil && d.inModule(v) {
			d.report(e, "%s: a package variable is written to", v.Name())
		}
	}
	switch n := n.(type) {
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			written(left)
		}
	case *ast.IncDecStmt:
		written(n.X)
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			written(n.Key)
			written(n.Value)
		}
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			written(n.X)
		}
	case *ast.SelectorExpr:
		if m := info.Selections[n]; m != nil && m.Kind() == types.MethodVal && !isPointer(info.TypeOf(n.X)) &&
			isPointer(m.Obj().(*types.Func).Signature().Recv().Type()) {
			written(n.X) // its method takes the address
		}
	case *ast.CallExpr:
		if b, ok := typeOrFuncOf(n.Fun, info).(*types.Builtin); ok {
			switch b.Name() {
			case "clear", "copy", "delete":
				written(n.Args[0])
			}
		}
	}
}

// packageVarUnder returns the package variable that writing to the expression
// writes to, or nil.
func packageVarUnder(e ast.Expr, info *types.Info) *types.Var {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		if v, ok := info.Uses[e].(*types.Var); ok && isPackageVar(v) {
			return v
		}
	case *ast.SelectorExpr:
		if v, ok := info.Uses[e.Sel].(*types.Var); ok && isPackageVar(v) {
			return v
		}
		return packageVarUnder(e.X, info)
	case *ast.IndexExpr:
		return packageVarUnder(e.X, info)
	case *ast.SliceExpr:
		return packageVarUnder(e.X, info)
	case *ast.StarExpr:
		return packageVarUnder(e.X, info)
	}
	return nil
}

// embeds returns the variables that a //go:embed comment fills.
func embeds(pkg *packages.Package) map[*types.Var]bool {
	found := map[*types.Var]bool{}
	for _, file := range pkg.Syntax {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR || gen.Doc == nil {
				continue
			}
			for _, c := range gen.Doc.List {
				if !strings.HasPrefix(c.Text, "//go:embed ") {
					continue
				}
				for _, spec := range gen.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						if v, ok := pkg.TypesInfo.Defs[name].(*types.Var); ok {
							found[v] = true
						}
					}
				}
			}
		}
	}
	return found
}
