package lint

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// LoopRule names the first and the last functions of code that decides.
type LoopRule struct {
	// Roots are the functions at which it begins. A root that does not exist is a finding.
	Roots []Root
	// Boundaries are functions, function fields and interfaces that the walk does not enter, by
	// full name with the reason. "path.Caller → path.F" permits one function to use another. A
	// boundary that the walk never meets is a finding.
	Boundaries map[string]string
	// Outside are the packages outside the module whose functions may be called. A package that is
	// never called is a finding.
	Outside []string
}

// Root is a function or method that decides.
type Root struct {
	// Package is the path of its package, or empty for all.
	Package string
	// Receiver is the name of its type, empty for a function, "*" for any method.
	Receiver string
	Name     string
	// Takes are the names of the types that its first parameter may have, or nil for any type. A
	// Step without a time is not a step of this project.
	Takes []string
}

// String returns "package.receiver.name" without empty parts.
func (r Root) String() string {
	parts := slices.DeleteFunc([]string{r.Package, r.Receiver, r.Name}, func(s string) bool { return s == "" })
	return strings.Join(parts, ".")
}

func (r Root) matches(f *types.Func) bool {
	if f.Name() != r.Name || f.Pkg() == nil || r.Package != "" && f.Pkg().Path() != r.Package {
		return false
	}
	if recv := receiverName(f); recv != r.Receiver && (r.Receiver != "*" || recv == "") {
		return false
	}
	if r.Takes == nil {
		return true
	}
	params := f.Signature().Params()
	return params.Len() > 0 && slices.Contains(r.Takes, typeName(params.At(0).Type()))
}

// CheckLoopRules walks all code that is reachable from the roots of each rule and returns the
// violations.
func CheckLoopRules(m *Module, rules ...LoopRule) []Finding {
	g, orders := newGraph(m), orderComments(m)
	var found []Finding
	for _, rule := range rules {
		found = append(found, newWalk(g, rule, orders).run()...)
	}
	for _, c := range orders {
		if !c.needed {
			found = append(found, Finding{Pos: c.pos, What: "no loop needs this order comment"})
		}
	}
	return sortFindings(found)
}

// walk is one walk from the roots, breadth first, so that it reports a shortest way to a finding.
type walk struct {
	graph *graph
	rule  LoopRule
	// from holds, for each reached object, the object that reached it, or nil for a root.
	from  map[types.Object]types.Object
	queue []types.Object
	// met are the boundaries and outside packages that the walk has met.
	met    map[string]bool
	orders map[token.Position]*orderComment
	found  []Finding
}

func newWalk(g *graph, rule LoopRule, orders map[token.Position]*orderComment) *walk {
	return &walk{graph: g, rule: rule, orders: orders, from: map[types.Object]types.Object{}, met: map[string]bool{}}
}

func (w *walk) run() []Finding {
	for _, r := range w.rule.Roots {
		w.begin(r)
	}
	for len(w.queue) > 0 {
		o := w.queue[0]
		w.queue = w.queue[1:]
		w.visit(o)
	}
	w.reportStale()
	return w.found
}

func (w *walk) begin(r Root) {
	before := len(w.queue)
	exists := false
	for o := range w.graph.code {
		if f, ok := o.(*types.Func); ok && r.matches(f) {
			exists = true
			w.enter(f, nil)
		}
	}
	if !exists {
		w.found = append(w.found, Finding{What: fmt.Sprintf("the loop rule's root %s does not exist", r)})
	}
	slices.SortFunc(w.queue[before:], func(a, b types.Object) int { return cmp.Compare(a.Pos(), b.Pos()) })
}

// enter queues an object that another one reaches.
func (w *walk) enter(o, from types.Object) {
	if _, reached := w.from[o]; !reached {
		w.from[o] = from
		w.queue = append(w.queue, o)
	}
}

// visit checks an object's code and follows its calls.
func (w *walk) visit(o types.Object) {
	if w.boundary(w.graph.fullName(o)) {
		return
	}
	for _, s := range w.graph.sources(o) {
		way := w.way(o)
		body := &body{graph: w.graph, source: s, orders: w.orders}
		for _, f := range body.check() {
			f.What += way
			w.found = append(w.found, f)
		}
		r := w.graph.reach(s)
		for _, next := range r.module {
			w.enter(next, o)
		}
		for _, d := range r.dispatched {
			w.dispatch(d, o)
		}
		for _, use := range r.outside {
			if why := w.outside(use.object, o); why != "" {
				w.found = append(w.found, w.graph.module.at(use.at, "%s %s%s", w.graph.fullName(use.object), why, way))
			}
		}
	}
}

// dispatch follows a call of an interface's method to its implementations.
func (w *walk) dispatch(d dispatch, from types.Object) {
	if w.boundary(w.graph.fullName(d.method)) || w.boundary(ownerName(d.method)) {
		return
	}
	for _, f := range w.graph.implementations(d.method, d.iface) {
		if w.graph.inModule(f) {
			w.enter(f, from)
		}
	}
}

func (w *walk) boundary(name string) bool {
	_, is := w.rule.Boundaries[name]
	if is {
		w.met[name] = true
	}
	return is
}

// outside returns the reason why an object of another module must not be used, or an empty text.
func (w *walk) outside(o, from types.Object) string {
	if o.Pkg() == nil { // error.Error and the like
		return ""
	}
	name := w.graph.fullName(o)
	if w.boundary(name) || w.boundary(ownerName(o)) {
		return ""
	}
	path := o.Pkg().Path()
	why, bad := forbidden[name]
	if !bad && drawsGlobally(o) {
		why, bad = "draws from the process's randomness: draw from a seed", true
	}
	if !bad {
		if slices.Contains(w.rule.Outside, path) {
			w.met[path] = true
			return ""
		}
		why = "belongs to the package " + path + ", which Outside of this rule does not list"
	}
	if w.boundary(w.graph.fullName(from) + " → " + name) {
		return ""
	}
	return why
}

// way returns the chain of calls to an object.
func (w *walk) way(o types.Object) string {
	var names []string
	for ; o != nil; o = w.from[o] {
		names = append(names, w.graph.shortName(o))
	}
	slices.Reverse(names)
	return " (in " + strings.Join(names, " → ") + ")"
}

// reportStale reports exceptions of the rule that no code needs.
func (w *walk) reportStale() {
	for name := range w.rule.Boundaries {
		if !w.met[name] {
			w.found = append(w.found, Finding{What: fmt.Sprintf("the loop rule's boundary %s is never met", name)})
		}
	}
	for _, path := range w.rule.Outside {
		if !w.met[path] {
			w.found = append(w.found, Finding{What: fmt.Sprintf("the loop rule allows %s, which no code calls", path)})
		}
	}
}

// fullName returns the name of an object as the tables write it: "time.Now",
// "(*sync.Cond).Wait", "path.Type.Field".
func (g *graph) fullName(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		return f.FullName()
	}
	return o.Pkg().Path() + "." + g.inType(o)
}

// shortName returns "package.Type.Name".
func (g *graph) shortName(o types.Object) string { return o.Pkg().Name() + "." + g.inType(o) }

// inType returns the object's name after that of the type it belongs to.
func (g *graph) inType(o types.Object) string {
	switch o := o.(type) {
	case *types.Func:
		if t := receiverName(o); t != "" {
			return t + "." + o.Name()
		}
	case *types.Var:
		if t := g.structWith(o); t != "" {
			return t + "." + o.Name()
		}
	}
	return o.Name()
}

// structWith returns the name of the struct that has the field, or an empty text.
func (g *graph) structWith(field *types.Var) string {
	for _, t := range g.concrete {
		if s, ok := t.Underlying().(*types.Struct); ok {
			for f := range s.Fields() {
				if f == field {
					return t.Obj().Name()
				}
			}
		}
	}
	return ""
}

// ownerName returns the full name of the type that a method belongs to.
func ownerName(o types.Object) string {
	if f, ok := o.(*types.Func); ok && f.Pkg() != nil && receiverName(f) != "" {
		return f.Pkg().Path() + "." + receiverName(f)
	}
	return ""
}

func receiverName(f *types.Func) string {
	if recv := f.Signature().Recv(); recv != nil {
		return typeName(recv.Type())
	}
	return ""
}

// typeName returns the name of the type that t is or points to, or an empty text.
func typeName(t types.Type) string {
	if n, ok := namedUnder(t); ok {
		return n.Obj().Name()
	}
	return ""
}
