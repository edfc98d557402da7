package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// ReadFields returns the fields of rows that code reachable from the roots reads, as sorted
// "Type.Field". Rows are struct types of one package and the structs of the package in them. An
// assignment to a field does not read it. A comparison of structs reads all their fields. ReadFields
// follows calls as [CheckLoopRules] does.
func ReadFields(m *Module, pkg string, rows []string, roots []Root) ([]string, error) {
	r := &reads{graph: newGraph(m), rows: map[*types.Named]bool{}, seen: map[types.Object]bool{}, fields: map[string]bool{}}
	for _, name := range rows {
		o := m.byPath[pkg].Types.Scope().Lookup(name)
		if o == nil {
			return nil, fmt.Errorf("%s has no type %s", pkg, name)
		}
		r.addRow(o.Type())
	}
	for _, root := range roots {
		exists := false
		for o := range r.graph.code {
			if f, ok := o.(*types.Func); ok && root.matches(f) {
				exists = true
				r.enter(f)
			}
		}
		if !exists {
			return nil, fmt.Errorf("the root %s does not exist", root)
		}
	}
	for len(r.queue) > 0 {
		o := r.queue[0]
		r.queue = r.queue[1:]
		r.visit(o)
	}
	var fields []string
	for f := range r.fields {
		fields = append(fields, f)
	}
	slices.Sort(fields)
	return fields, nil
}

// reads is one walk of [ReadFields].
type reads struct {
	graph  *graph
	rows   map[*types.Named]bool
	seen   map[types.Object]bool
	queue  []types.Object
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

func (r *reads) enter(o types.Object) {
	if !r.seen[o] {
		r.seen[o] = true
		r.queue = append(r.queue, o)
	}
}

func (r *reads) visit(o types.Object) {
	for _, s := range r.graph.sources(o) {
		r.inspect(s)
		reached := r.graph.reach(s)
		for _, next := range reached.module {
			r.enter(next)
		}
		for _, d := range reached.dispatched {
			for _, f := range r.graph.implementations(d.method, d.iface) {
				if r.graph.inModule(f) {
					r.enter(f)
				}
			}
		}
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
