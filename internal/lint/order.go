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

const seesOrder = "a range over a map has an order that differs from run to run: " +
	"range over slices.Sorted(maps.Keys(m)), or add //lint:order with the reason why the order does not matter"

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

// checkOrder reports a loop over a map, or a sequence of one, that has no comment with its reason.
func (b *body) checkOrder(n ast.Node) {
	if c := b.orders[line(b.module.position(n.Pos()), 0)]; c != nil {
		c.needed = true
		return
	}
	b.report(n, seesOrder)
}

// checkMapSequence reports a use of maps.Keys, maps.Values or maps.All that is not sorted at once or stored in
// a map.
func (b *body) checkMapSequence(call *ast.CallExpr, parent ast.Node) {
	if !slices.Contains([]string{"maps.Keys", "maps.Values", "maps.All"}, b.calledName(call)) {
		return
	}
	if outer, ok := parent.(*ast.CallExpr); ok && slices.Contains(orderFree, b.calledName(outer)) {
		return
	}
	b.checkOrder(call)
}

// orderFree are functions whose result does not depend on the order of a sequence.
var orderFree = []string{"slices.Sorted", "slices.SortedFunc", "slices.SortedStableFunc", "maps.Collect", "maps.Insert"}

// calledName returns the full name of the called function, or an empty text.
func (b *body) calledName(call *ast.CallExpr) string {
	if f, ok := typeOrFuncOf(call.Fun, b.pkg.TypesInfo).(*types.Func); ok {
		return f.FullName()
	}
	return ""
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
