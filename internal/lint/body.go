package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

// body is one piece of deciding code.
type body struct {
	*graph
	source
	orders map[token.Position]*orderComment
	found  []Finding
}

// check returns the violations in the code itself. The walk checks the functions that it calls.
func (b *body) check() []Finding {
	// checkSelect judges the sends and receives of a select.
	judged := map[ast.Node]bool{}
	var parents []ast.Node
	ast.Inspect(b.node, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		switch n := n.(type) {
		case *ast.GoStmt:
			b.report(n, "a go statement starts a goroutine: only the shell around the steps does")
		case *ast.SelectStmt:
			b.checkSelect(n, judged)
		case *ast.SendStmt:
			if !judged[n] {
				b.report(n, "a send may block: send in a select with a default")
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !judged[n] {
				b.report(n, "a receive may block: receive in a select with a default")
			}
		case *ast.RangeStmt:
			b.checkRange(n)
		case *ast.CallExpr:
			if len(parents) > 0 {
				b.checkMapSequence(n, parents[len(parents)-1])
			}
		}
		parents = append(parents, n)
		return true
	})
	return b.found
}

func (b *body) report(n ast.Node, what string) {
	b.found = append(b.found, b.module.at(n, "%s", what))
}

func (b *body) typeOf(e ast.Expr) types.Type { return b.pkg.TypesInfo.TypeOf(e) }

func (b *body) checkSelect(s *ast.SelectStmt, judged map[ast.Node]bool) {
	communications, hasDefault := 0, false
	for _, clause := range s.Body.List {
		comm := clause.(*ast.CommClause).Comm
		if comm == nil {
			hasDefault = true
			continue
		}
		communications++
		judged[communication(comm)] = true
	}
	switch {
	case !hasDefault:
		b.report(s, "a select without a default may block")
	case communications > 1:
		b.report(s, "a select chooses at random among the channels that are ready: one channel in a select")
	}
}

// communication returns the send or receive of a select's clause.
func communication(comm ast.Stmt) ast.Node {
	switch comm := comm.(type) {
	case *ast.SendStmt:
		return comm
	case *ast.ExprStmt:
		return ast.Unparen(comm.X)
	case *ast.AssignStmt:
		return ast.Unparen(comm.Rhs[0])
	}
	return nil
}

func (b *body) checkRange(r *ast.RangeStmt) {
	switch t := b.typeOf(r.X); {
	case isChan(t):
		b.report(r, "a range over a channel waits for it to be closed")
	case isMap(t):
		b.checkOrder(r)
	}
}
