package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
)

// orderComment is a comment with the reason why a loop over a map is correct.
type orderComment struct {
	pos token.Position
	// needed means that a loop needs the comment.
	needed bool
}

const seesOrder = "a range over a map sees its order, which differs from run to run: " +
	"sort the keys first, or add //lint:order with the reason why the order does not matter"

var orderPattern = regexp.MustCompile(`^//lint:order\s+\S`)

// orderComments returns the module's order comments by the lines, without a column, of the loops that
// may need them.
func orderComments(m *Module) map[token.Position]*orderComment {
	comments := map[token.Position]*orderComment{}
	for _, pkg := range m.Packages {
		for _, file := range pkg.Syntax {
			for _, group := range file.Comments {
				for _, c := range group.List {
					if orderPattern.MatchString(c.Text) {
						o := &orderComment{pos: m.position(c.Pos())}
						comments[line(o.pos, 0)] = o
						comments[line(o.pos, 1)] = o
					}
				}
			}
		}
	}
	return comments
}

func line(p token.Position, below int) token.Position {
	return token.Position{Filename: p.Filename, Line: p.Line + below}
}

// checkOrder reports a loop over a map whose result depends on the order.
func (b *body) checkOrder(r *ast.RangeStmt, path []ast.Node) {
	loop := &mapLoop{body: b, loop: r, function: enclosingFunction(path, b.node)}
	if loop.orderFree() {
		return
	}
	if c := b.orders[line(b.module.position(r.Pos()), 0)]; c != nil {
		c.needed = true
		return
	}
	b.report(r, seesOrder)
}

// checkMapSequence reports a use of maps.Keys, maps.Values or maps.All whose result depends on the
// order.
func (b *body) checkMapSequence(call *ast.CallExpr, path []ast.Node) {
	if !b.isMapSequence(call) || len(path) == 0 {
		return
	}
	switch parent := path[len(path)-1].(type) {
	case *ast.RangeStmt: // checkRange judges it
		return
	case *ast.CallExpr:
		switch name := b.calledName(parent); name {
		case "slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc", "maps.Collect", "maps.Insert":
			return
		case "slices.Collect":
			if b.collectedAndSorted(parent, path) {
				return
			}
		}
	}
	if c := b.orders[line(b.module.position(call.Pos()), 0)]; c != nil {
		c.needed = true
		return
	}
	b.report(call, seesOrder)
}

func (b *body) isMapSequence(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	return ok && slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, b.calledName(call))
}

// calledName returns the full name of the called function, or an empty text.
func (b *body) calledName(call *ast.CallExpr) string {
	if f, ok := typeOrFuncOf(call.Fun, b.pkg.TypesInfo).(*types.Func); ok {
		return f.FullName()
	}
	return ""
}

// collectedAndSorted reports whether keys := slices.Collect(...) is followed by
// a sort of keys.
func (b *body) collectedAndSorted(collect *ast.CallExpr, path []ast.Node) bool {
	if len(path) < 2 {
		return false
	}
	assign, ok := path[len(path)-2].(*ast.AssignStmt)
	if !ok || len(assign.Lhs) != 1 || assign.Rhs[0] != collect {
		return false
	}
	return b.sortedAfter(assign.Lhs[0], assign.End(), enclosingFunction(path, b.node))
}

// enclosingFunction returns the body of the innermost function on the path, or
// the outermost node.
func enclosingFunction(path []ast.Node, outermost ast.Node) ast.Node {
	for _, n := range slices.Backward(path) {
		switch n := n.(type) {
		case *ast.FuncLit:
			return n.Body
		case *ast.FuncDecl:
			return n.Body
		}
	}
	return outermost
}

// sorts are the functions that sort their first argument.
var sorts = []string{
	"slices.Sort", "slices.SortFunc", "slices.SortStableFunc",
	"sort.Ints", "sort.Slice", "sort.SliceStable", "sort.Sort", "sort.Stable", "sort.Strings",
}

// sortedAfter reports whether the function sorts the named value after the position.
func (b *body) sortedAfter(what ast.Expr, after token.Pos, function ast.Node) bool {
	found := false
	ast.Inspect(function, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok && call.Pos() >= after && len(call.Args) > 0 && slices.Contains(sorts, b.calledName(call)) {
			found = found || b.names(call.Args[0], what)
		}
		return !found
	})
	return found
}

// names reports whether e names the same value as what, or converts it.
func (b *body) names(e, what ast.Expr) bool {
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && len(call.Args) == 1 && b.pkg.TypesInfo.Types[call.Fun].IsType() {
		e = call.Args[0]
	}
	if o := b.objectOf(what); o != nil {
		return b.objectOf(e) == o
	}
	return types.ExprString(ast.Unparen(e)) == types.ExprString(ast.Unparen(what))
}
