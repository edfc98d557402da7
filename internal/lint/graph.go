package lint

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/packages"
)

// graph holds the code that each piece of the module's code can reach.
type graph struct {
	module *Module
	// code holds the declaration of each function and the initializer of each package variable.
	code map[types.Object]source
	// fields holds the values that the module puts into each struct field.
	fields map[*types.Var][]source
	// concrete are the module's named types that are not interfaces, in the order of the files.
	concrete []*types.Named
}

// source is a piece of syntax and its package.
type source struct {
	node ast.Node
	pkg  *packages.Package
}

func newGraph(m *Module) *graph {
	g := &graph{module: m, code: map[types.Object]source{}, fields: map[*types.Var][]source{}}
	for _, pkg := range m.Packages {
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				g.gather(n, pkg)
				return true
			})
		}
	}
	return g
}

// gather records the declarations of one node.
func (g *graph) gather(n ast.Node, pkg *packages.Package) {
	info := pkg.TypesInfo
	switch n := n.(type) {
	case *ast.FuncDecl:
		g.code[info.Defs[n.Name]] = source{n, pkg}
	case *ast.TypeSpec:
		if named, ok := info.Defs[n.Name].Type().(*types.Named); ok && !types.IsInterface(named) {
			g.concrete = append(g.concrete, named)
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			// var a, b = f() has one value for two names.
			if len(n.Values) > 0 && isPackageVar(info.Defs[name]) {
				g.code[info.Defs[name]] = source{n.Values[min(i, len(n.Values)-1)], pkg}
			}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			if sel, ok := ast.Unparen(left).(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) {
				g.putInField(info.Uses[sel.Sel], n.Rhs[i], pkg)
			}
		}
	case *ast.CompositeLit:
		for i, element := range n.Elts {
			if kv, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := kv.Key.(*ast.Ident); ok {
					g.putInField(info.Uses[key], kv.Value, pkg)
				}
			} else if s, ok := structOf(info.TypeOf(n)); ok && i < s.NumFields() {
				g.putInField(s.Field(i), element, pkg)
			}
		}
	}
}

func (g *graph) putInField(to types.Object, value ast.Expr, pkg *packages.Package) {
	if field, ok := to.(*types.Var); ok && field.IsField() && isFunc(field.Type()) {
		g.fields[field.Origin()] = append(g.fields[field.Origin()], source{value, pkg})
	}
}

// inModule reports whether the object is declared in the module.
func (g *graph) inModule(o types.Object) bool {
	return o.Pkg() != nil && g.module.byPath[o.Pkg().Path()] != nil
}

// implementations returns the methods of the module that a call of an interface's method may run.
// The interface may have the method from an embedded interface.
func (g *graph) implementations(method *types.Func, iface types.Type) []*types.Func {
	var found []*types.Func
	for _, t := range g.concrete {
		if g.implements(t, iface) {
			if f := methodOf(t, method); f != nil {
				found = append(found, f)
			}
		}
	}
	return found
}

// implements reports whether T or *T implements the interface. For generic types it compares only
// the names of the methods.
func (g *graph) implements(t *types.Named, iface types.Type) bool {
	i, ok := iface.Underlying().(*types.Interface)
	if !ok {
		return false
	}
	if t.TypeParams().Len() == 0 && !isGeneric(iface) {
		return types.Implements(types.NewPointer(t), i)
	}
	for m := range i.Methods() {
		if methodOf(t, m) == nil {
			return false
		}
	}
	return true
}

// methodOf returns the method of t or *t with the name of another, or nil.
func methodOf(t types.Type, like *types.Func) *types.Func {
	if !types.IsInterface(t) {
		t = types.NewPointer(t)
	}
	o, _, _ := types.LookupFieldOrMethod(t, true, like.Pkg(), like.Name())
	f, _ := o.(*types.Func)
	return f
}

// reached are the objects that a piece of code runs or mentions.
type reached struct {
	// module are the module's functions, variables, and function fields.
	module []types.Object
	// dispatched are methods of interfaces, of the module or not.
	dispatched []dispatch
	// outside are functions and variables of other modules.
	outside []use
}

// use is a mention of an object.
type use struct {
	at     ast.Node
	object types.Object
}

// dispatch is a mention of a method of an interface.
type dispatch struct {
	method *types.Func
	iface  types.Type
}

// sources returns the code that running or calling the object may run.
func (g *graph) sources(o types.Object) []source {
	if v, ok := o.(*types.Var); ok && v.IsField() {
		return g.fields[v]
	}
	if s, ok := g.code[o]; ok {
		return []source{s}
	}
	return nil
}

// reach returns the objects that the source reaches directly.
func (g *graph) reach(s source) reached {
	var r reached
	// A method of io.Writer that is called on a hash.Hash is a method of hash.Hash.
	receivers := map[*ast.Ident]types.Type{}
	ast.Inspect(s.node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if selection := s.pkg.TypesInfo.Selections[n]; selection != nil {
				receivers[n.Sel] = selection.Recv()
			}
		case *ast.Ident:
			g.mention(&r, n, s.pkg.TypesInfo.Uses[n], receivers[n])
		case *ast.CallExpr:
			g.callBacks(&r, n, s.pkg.TypesInfo)
		}
		return true
	})
	return r
}

// mention records one use of an object. Receiver is the type on which a method is called, or nil if
// it is unknown.
func (g *graph) mention(r *reached, at ast.Node, o types.Object, receiver types.Type) {
	switch object := o.(type) {
	case *types.Func:
		o = object.Origin()
		if isInterfaceMethod(object) {
			r.dispatched = append(r.dispatched, dispatchOf(object, receiver))
		}
	case *types.Var:
		o = object.Origin()
		if !isPackageVar(o) && !(object.IsField() && isFunc(object.Type())) {
			return
		}
	default:
		return
	}
	switch {
	case g.inModule(o):
		r.module = append(r.module, o)
	case !isField(o):
		r.outside = append(r.outside, use{at, o})
	}
}

// dispatchOf returns the dispatch of a method by the receiver if it is an interface, or by the
// interface that declares the method.
func dispatchOf(method *types.Func, receiver types.Type) dispatch {
	if receiver == nil || !types.IsInterface(receiver) || isTypeParam(receiver) {
		receiver = method.Signature().Recv().Type()
	}
	return dispatch{method, receiver}
}

func isTypeParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

func isField(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && v.IsField()
}

func isInterfaceMethod(f *types.Func) bool {
	recv := f.Signature().Recv()
	return recv != nil && types.IsInterface(recv.Type())
}

// shown are the methods that packages like fmt call on any value.
var shown = []string{"Error", "Format", "GoString", "MarshalBinary", "MarshalJSON", "MarshalText", "String"}

// callBacks records the methods that code outside the module may call on a value that it gets as an
// interface: container/heap calls Less, fmt calls String.
func (g *graph) callBacks(r *reached, call *ast.CallExpr, info *types.Info) {
	if callee := typeOrFuncOf(call.Fun, info); callee == nil || g.inModule(callee) {
		return
	}
	for i, arg := range call.Args {
		target, actual := parameterType(call, i, info), info.TypeOf(arg)
		if target == nil || actual == nil || !types.IsInterface(target) {
			continue
		}
		if i, ok := target.Underlying().(*types.Interface); ok {
			for m := range i.Methods() {
				g.mentionMethod(r, arg, actual, m)
			}
		}
		for _, name := range shown {
			g.mentionMethod(r, arg, actual, types.NewFunc(0, nil, name, nil))
		}
	}
}

func (g *graph) mentionMethod(r *reached, at ast.Node, t types.Type, like *types.Func) {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	// Calls between other modules do not count.
	switch m := methodOf(t, like); {
	case m == nil:
	case g.inModule(m):
		g.mention(r, at, m, t)
	case isInterfaceMethod(m):
		r.dispatched = append(r.dispatched, dispatchOf(m, t))
	}
}

// typeOrFuncOf returns the function of a call or the type of a conversion. It returns nil for a call
// of a function value.
func typeOrFuncOf(fun ast.Expr, info *types.Info) types.Object {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return info.Uses[fun]
	case *ast.SelectorExpr:
		return info.Uses[fun.Sel]
	case *ast.IndexExpr:
		return typeOrFuncOf(fun.X, info)
	case *ast.IndexListExpr:
		return typeOrFuncOf(fun.X, info)
	}
	return nil
}

// parameterType returns the type of the parameter of the i-th argument of a call or conversion, or
// nil if it is unknown.
func parameterType(call *ast.CallExpr, i int, info *types.Info) types.Type {
	fun := info.Types[call.Fun]
	if fun.IsType() {
		return fun.Type
	}
	sig, ok := fun.Type.(*types.Signature)
	if !ok || sig.Params().Len() == 0 {
		return nil
	}
	last := sig.Params().Len() - 1
	if i < last || !sig.Variadic() {
		return sig.Params().At(min(i, last)).Type()
	}
	if call.Ellipsis.IsValid() {
		return sig.Params().At(last).Type()
	}
	return sig.Params().At(last).Type().Underlying().(*types.Slice).Elem()
}

// isPackageVar reports whether the object is a variable of a package.
func isPackageVar(o types.Object) bool {
	v, ok := o.(*types.Var)
	return ok && !v.IsField() && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
}

func isFunc(t types.Type) bool {
	_, ok := t.Underlying().(*types.Signature)
	return ok
}

// namedUnder returns the named type that t is or points to.
func namedUnder(t types.Type) (*types.Named, bool) {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return n, ok
}

func isGeneric(t types.Type) bool {
	n, ok := t.(*types.Named)
	return ok && n.TypeParams().Len() > 0
}

// structOf returns the struct that t is or points to.
func structOf(t types.Type) (*types.Struct, bool) {
	if t == nil {
		return nil, false
	}
	if p, ok := t.Underlying().(*types.Pointer); ok {
		t = p.Elem()
	}
	s, ok := t.Underlying().(*types.Struct)
	return s, ok
}
