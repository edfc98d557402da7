package lint

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// mapLoop judges whether a loop over a map has the same result in every order. It knows a few
// shapes that have. All other loops count as dependent on the order.
type mapLoop struct {
	*body
	loop *ast.RangeStmt
	// function is the function that may sort the collected values after the loop.
	function ast.Node
	// stores holds, for each target outside of the loop, the operation that the loop applies to it.
	// A second operation would make the order matter.
	stores map[string]string
	// answer is the one answer that the loop returns, or empty.
	answer string
	// inner counts the loops and switches around a statement.
	inner int
}

// orderFree reports whether the result does not depend on the order of the loop.
func (l *mapLoop) orderFree() bool {
	l.stores = map[string]string{}
	if !l.changesNothing(l.loop.Body, l.pkg) || !l.allFree(l.loop.Body.List) {
		return false
	}
	// A loop that may end early must not store anything.
	return l.answer == "" || len(l.stores) == 0
}

func (l *mapLoop) allFree(list []ast.Stmt) bool {
	for _, s := range list {
		if !l.free(s) {
			return false
		}
	}
	return true
}

func (l *mapLoop) free(s ast.Stmt) bool {
	switch s := s.(type) {
	case nil, *ast.EmptyStmt, *ast.DeclStmt:
		return true
	case *ast.BlockStmt:
		return l.allFree(s.List)
	case *ast.IfStmt:
		return l.free(s.Init) && l.allFree(s.Body.List) && l.free(s.Else)
	case *ast.RangeStmt:
		return !isChan(l.typeOf(s.X)) && s.Tok != token.ASSIGN && l.freeInside(s.Body)
	case *ast.ForStmt:
		return l.free(s.Init) && l.free(s.Post) && l.freeInside(s.Body)
	case *ast.SwitchStmt:
		return l.free(s.Init) && l.freeInside(s.Body)
	case *ast.TypeSwitchStmt:
		return l.free(s.Init) && l.freeInside(s.Body)
	case *ast.CaseClause:
		return l.allFree(s.Body)
	case *ast.BranchStmt:
		return s.Label == nil && (s.Tok == token.CONTINUE || s.Tok == token.BREAK && l.inner > 0)
	case *ast.ReturnStmt:
		return l.returnFree(s)
	case *ast.ExprStmt:
		return l.deleteFree(s.X)
	case *ast.IncDecStmt:
		return l.isOwn(s.X) || l.store(s.X, "+=")
	case *ast.AssignStmt:
		return l.assignFree(s)
	}
	return false
}

func (l *mapLoop) freeInside(b *ast.BlockStmt) bool {
	l.inner++
	defer func() { l.inner-- }()
	return l.allFree(b.List)
}

// returnFree reports whether all returns of the loop have the same constant values.
func (l *mapLoop) returnFree(s *ast.ReturnStmt) bool {
	answer := "return"
	for _, e := range s.Results {
		if l.constant(e) == nil && !l.pkg.TypesInfo.Types[e].IsNil() {
			return false
		}
		answer += " " + types.ExprString(e)
	}
	same := l.answer == "" || l.answer == answer
	l.answer = answer
	return same
}

// deleteFree accepts only calls of delete.
func (l *mapLoop) deleteFree(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok || !l.isBuiltin(call, "delete") {
		return false
	}
	if l.isKey(call.Args[1]) {
		return l.store(call.Args[0], "at the key")
	}
	return !l.isLooped(call.Args[0]) && l.store(call.Args[0], "delete")
}

func (l *mapLoop) assignFree(s *ast.AssignStmt) bool {
	for i, left := range s.Lhs {
		if s.Tok == token.DEFINE || l.isOwn(left) {
			continue
		}
		if len(s.Lhs) != len(s.Rhs) || !l.storeFree(left, s.Tok, s.Rhs[i]) {
			return false
		}
	}
	return true
}

// storeFree reports whether an assignment to a target outside of the loop has the same result in
// every order.
func (l *mapLoop) storeFree(left ast.Expr, op token.Token, right ast.Expr) bool {
	if index, ok := ast.Unparen(left).(*ast.IndexExpr); ok && isMap(l.typeOf(index.X)) {
		if l.isKey(index.Index) { // one iteration stores each entry
			return l.store(index.X, "at the key")
		}
		if l.isLooped(index.X) {
			return false
		}
		left = index.X
	}
	switch op {
	case token.ADD_ASSIGN, token.SUB_ASSIGN:
		// The order matters for the sum of floats and strings.
		return isInteger(l.typeOf(right)) && l.store(left, "+=")
	case token.OR_ASSIGN, token.AND_ASSIGN, token.XOR_ASSIGN:
		return l.store(left, op.String())
	case token.ASSIGN:
		if value := l.constant(right); value != nil {
			return l.store(left, "= "+value.ExactString())
		}
		return l.gathers(left, right)
	}
	return false
}

// gathers reports whether left = right is one of
//
//	x = append(x, ...) with x sorted after the loop
//	x = max(x, ...) or min(x, ...)
//	x = x || ... or x && ...
func (l *mapLoop) gathers(left, right ast.Expr) bool {
	switch right := ast.Unparen(right).(type) {
	case *ast.BinaryExpr:
		return (right.Op == token.LOR || right.Op == token.LAND) && l.names(right.X, left) && l.store(left, right.Op.String())
	case *ast.CallExpr:
		if len(right.Args) == 0 || !l.names(right.Args[0], left) {
			return false
		}
		switch {
		case l.isBuiltin(right, "append"):
			return l.sortedAfter(left, l.loop.End(), l.function) && l.store(left, "append")
		case l.isBuiltin(right, "max"), l.isBuiltin(right, "min"):
			return l.store(left, types.ExprString(right.Fun))
		}
	}
	return false
}

// store records an operation on a target and reports whether the ones before were the same.
func (l *mapLoop) store(target ast.Expr, how string) bool {
	name := types.ExprString(target)
	before, stored := l.stores[name]
	l.stores[name] = how
	return !stored || before == how
}

// isOwn reports whether the expression names a variable of the loop's own body,
// or a field of one.
func (l *mapLoop) isOwn(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return e.Name == "_" || declaredIn(l.objectOf(e), l.loop.Body)
	case *ast.SelectorExpr:
		return !isPointer(l.typeOf(e.X)) && l.isOwn(e.X)
	}
	return false
}

// isKey reports whether the expression names the loop's key.
func (l *mapLoop) isKey(e ast.Expr) bool {
	if l.loop.Key == nil {
		return false
	}
	o := l.objectOf(l.loop.Key)
	return o != nil && l.objectOf(e) == o
}

// isLooped reports whether the expression names the map of the loop. The loop may or may not visit
// entries that it stores or deletes there.
func (l *mapLoop) isLooped(e ast.Expr) bool { return l.names(l.loop.X, e) }

func (l *mapLoop) isBuiltin(call *ast.CallExpr, name string) bool {
	b, ok := l.objectOf(call.Fun).(*types.Builtin)
	return ok && b.Name() == name
}

// constant returns the value of a constant expression, or of an empty struct.
func (l *mapLoop) constant(e ast.Expr) constant.Value {
	if lit, ok := ast.Unparen(e).(*ast.CompositeLit); ok {
		if s, ok := structOf(l.typeOf(lit)); ok && s.NumFields() == 0 {
			return constant.MakeBool(true)
		}
	}
	return l.pkg.TypesInfo.Types[e].Value
}

func declaredIn(o types.Object, n ast.Node) bool {
	return o != nil && n.Pos() <= o.Pos() && o.Pos() < n.End()
}

func isInteger(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

func isMap(t types.Type) bool {
	return some(t, func(t types.Type) bool { _, ok := t.Underlying().(*types.Map); return ok })
}

func isChan(t types.Type) bool {
	return some(t, func(t types.Type) bool { _, ok := t.Underlying().(*types.Chan); return ok })
}

// some reports whether the test passes for t or for a type in the constraint of a type parameter.
func some(t types.Type, test func(types.Type) bool) bool {
	p, ok := t.(*types.TypeParam)
	if !ok {
		return test(t)
	}
	for e := range p.Constraint().Underlying().(*types.Interface).EmbeddedTypes() {
		if u, ok := e.(*types.Union); ok {
			for term := range u.Terms() {
				if test(term.Type()) {
					return true
				}
			}
		} else if test(e) {
			return true
		}
	}
	return false
}
