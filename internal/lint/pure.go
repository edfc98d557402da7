package lint

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// changesNothing reports whether the calls in the code have no effect outside of it. It ignores the
// assignments of the code itself, but not those of its function literals.
func (g *graph) changesNothing(n ast.Node, pkg *packages.Package) bool {
	p := purity{graph: g, assumed: map[types.Object]bool{}}
	return p.callsOnly(n, pkg)
}

// purity judges functions by their code. Code that it does not understand counts as a change.
type purity struct {
	*graph
	// assumed are the functions that are judged or under judgment.
	assumed map[types.Object]bool
}

// callsOnly reports whether no called function changes anything.
func (p purity) callsOnly(n ast.Node, pkg *packages.Package) bool {
	ok := true
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			ok = ok && p.call(n, pkg)
		case *ast.FuncLit:
			ok = ok && p.storesOnlyWithin(n, pkg)
		case *ast.GoStmt, *ast.DeferStmt, *ast.SendStmt:
			ok = false
		case *ast.UnaryExpr:
			ok = ok && n.Op != token.ARROW
		}
		return ok
	})
	return ok
}

func (p purity) call(call *ast.CallExpr, pkg *packages.Package) bool {
	if pkg.TypesInfo.Types[call.Fun].IsType() {
		return true
	}
	switch callee := typeOrFuncOf(call.Fun, pkg.TypesInfo).(type) {
	case *types.Builtin:
		return callee.Name() != "clear" && callee.Name() != "copy"
	case *types.Func:
		return p.function(callee.Origin())
	}
	_, literal := ast.Unparen(call.Fun).(*ast.FuncLit)
	return literal
}

func (p purity) function(f *types.Func) bool {
	if p.assumed[f] {
		return true
	}
	p.assumed[f] = true
	if isInterfaceMethod(f) {
		for _, i := range p.implementations(f, f.Signature().Recv().Type()) {
			if !p.function(i) {
				return false
			}
		}
		return p.inModule(f) || f.Pkg() == nil
	}
	if !p.inModule(f) {
		// Outside the module, functions and methods of values count as pure, and methods of
		// pointers as changes.
		recv := f.Signature().Recv()
		return recv == nil || !isPointer(recv.Type())
	}
	s, ok := p.code[f]
	return ok && p.callsOnly(s.node, s.pkg) && p.storesOnlyWithin(s.node, s.pkg)
}

// storesOnlyWithin reports whether the function assigns only to its own variables.
func (p purity) storesOnlyWithin(function ast.Node, pkg *packages.Package) bool {
	own := func(e ast.Expr) bool {
		id, ok := ast.Unparen(e).(*ast.Ident)
		return ok && (id.Name == "_" || declaredIn(pkg.TypesInfo.ObjectOf(id), function))
	}
	ok := true
	ast.Inspect(function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				ok = ok && own(left)
			}
		case *ast.IncDecStmt:
			ok = ok && own(n.X)
		case *ast.RangeStmt:
			ok = ok && (n.Tok != token.ASSIGN || (n.Key == nil || own(n.Key)) && (n.Value == nil || own(n.Value)))
		case *ast.CallExpr:
			if b, is := typeOrFuncOf(n.Fun, pkg.TypesInfo).(*types.Builtin); is {
				ok = ok && b.Name() != "delete"
			}
		}
		return ok
	})
	return ok
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}
