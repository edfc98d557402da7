package lint

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
)

// ReadFields returns the fields of rows that code reachable from the roots reads, as sorted
// "Type.Field". Rows are struct types of one package and the structs of the package in them. An
// assignment to a field does not read it. A comparison of structs reads all their fields. ReadFields
// follows calls as [CheckLoopRules] does.
func ReadFields(m *Module, pkg string, rows []string, roots []Root) ([]string, error) {
	r := &reads{graph: newGraph(m), rows: map[*types.Named]bool{}, fields: map[string]bool{}}
	for _, name := range rows {
		o := m.byPath[pkg].Types.Scope().Lookup(name)
		if o == nil {
			return nil, fmt.Errorf("%s has no type %s", pkg, name)
		}
		r.addRow(o.Type())
	}
	w := newWalk(r.graph, LoopRule{Roots: roots}, nil)
	for _, f := range w.run() {
		if f.Pos == (token.Position{}) {
			return nil, errors.New(f.What)
		}
	}
	for o := range w.from {
		for _, source := range r.graph.sources(o) {
			r.inspect(source)
		}
	}
	return slices.Sorted(maps.Keys(r.fields)), nil
}

// reads are the fields that [ReadFields] finds.
type reads struct {
	graph  *graph
	rows   map[*types.Named]bool
	fields map[string]bool
}

// addRow adds a struct type and the structs of its package in it.
func (r *reads) addRow(t types.Type) {
	switch u := types.Unalias(t).(type) {
	case *types.Pointer:
		r.addRow(u.Elem())
		return
	case *types.Slice:
		r.addRow(u.Elem())
		return
	}
	named, _ := types.Unalias(t).(*types.Named)
	if named == nil || r.rows[named] || !r.graph.inModule(named.Obj()) {
		return
	}
	s, ok := named.Underlying().(*types.Struct)
	if !ok {
		return
	}
	r.rows[named] = true
	for f := range s.Fields() {
		r.addRow(f.Type())
	}
}

// inspect records the fields that a piece of code reads.
func (r *reads) inspect(s source) {
	assigned := map[ast.Expr]bool{}
	ast.Inspect(s.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				assigned[ast.Unparen(left)] = n.Tok == token.ASSIGN
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				r.compared(s.pkg.TypesInfo.TypeOf(n.X))
			}
		case *ast.SelectorExpr:
			if selection := s.pkg.TypesInfo.Selections[n]; selection != nil {
				r.selected(selection, assigned[n])
			}
		}
		return true
	})
}

// compared records all fields of a compared struct.
func (r *reads) compared(t types.Type) {
	named, _ := types.Unalias(t).(*types.Named)
	if named == nil || !r.rows[named] {
		return
	}
	for f := range named.Underlying().(*types.Struct).Fields() {
		r.note(named, f)
		r.compared(f.Type())
	}
}

// selected records the fields of a selection. The last one is not read if it is a method or an
// assignment's target.
func (r *reads) selected(s *types.Selection, assigned bool) {
	way := s.Index()
	if assigned || s.Kind() != types.FieldVal {
		way = way[:len(way)-1]
	}
	t := s.Recv()
	for _, i := range way {
		fields, ok := structOf(t)
		if !ok {
			return
		}
		if named, ok := namedUnder(t); ok {
			r.note(named, fields.Field(i))
		}
		t = fields.Field(i).Type()
	}
}

func (r *reads) note(t *types.Named, f *types.Var) {
	if r.rows[t] {
		r.fields[t.Obj().Name()+"."+f.Name()] = true
	}
}
