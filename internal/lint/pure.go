package lint

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// changesNothing reports whether no call in the code surely changes anything
// that is seen outside of it. What the code itself stores is not looked at, but
// what its function literals store is.
func (g *graph) changesNothing(n ast.Node, pkg *packages.Package) bool {
	p := purity{graph: g, assumed: map[types.Object]bool{}}
	return p.callsOnly(n, pkg)
}

// purity judges functions by their code. It is careful: what it does not
// understand changes something.
type purity struct {
	*graph
	// assumed are the functions judged already or just being judged.
	assumed map[types.Object]bool
}

// callsOnly reports whether all that the code calls changes nothing.
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
		// Other people's functions and methods of values are taken not to change
		// anything; methods of pointers are there to do so.
		recv := f.Signature().Recv()
		return recv == nil || !isPointer(recv.Type())
	}
	s, ok := p.code[f]
	return ok && p.callsOnly(s.node, s.pkg) && p.storesOnlyWithin(s.node, s.pkg)
}

// storesOnlyWithin reports whether the function stores into its own variables
// alone.
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
