package shrink

import (
	"reflect"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// path locates a value in a scenario by the indexes of fields and list items. It is valid in a copy
// too.
//
// Reflection finds the values, so that new fields of the language can be shrunk too.
type path []int

// in returns the value at the path.
func (p path) in(s *scenario.Scenario) reflect.Value {
	v := reflect.ValueOf(s)
	for _, i := range p {
		for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.Kind() == reflect.Slice {
			v = v.Index(i)
		} else {
			v = v.Field(i)
		}
	}
	return v
}

// located is a value with its path.
type located struct {
	path
	reflect.Value
}

// values returns all values that can be simplified: numbers, words, flags, times and ranges, also
// zero ones.
func values(s *scenario.Scenario) []located {
	var all []located
	collect(&all, nil, reflect.ValueOf(s).Elem())
	return all
}

// isName reports whether values of a type are names, which other passes simplify.
func isName(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[cluster.NodeID](), reflect.TypeFor[cluster.JobKey](), reflect.TypeFor[cluster.GroupKey](),
		reflect.TypeFor[scenario.AllocName](), reflect.TypeFor[scenario.Selector](), reflect.TypeFor[scenario.Indexes](),
		reflect.TypeFor[scenario.FaultName](), reflect.TypeFor[[]cluster.NodeID]():
		return true
	}
	return false
}

// isExcluded reports whether a field is not part of the run, or whether another pass simplifies it.
func isExcluded(t reflect.Type, field string) bool {
	switch t {
	case reflect.TypeFor[scenario.Scenario]():
		return field == "Name" || field == "Prose" || field == "Seed" || field == "Story" || field == "End"
	case reflect.TypeFor[scenario.Event]():
		return field == "Line" || field == "Maybe"
	case reflect.TypeFor[scenario.Group]():
		return field == "Name" || field == "Count"
	}
	return false
}

// collect adds the values in v, which is at a path.
func collect(all *[]located, at path, v reflect.Value) {
	inside := func(i int, v reflect.Value) {
		collect(all, append(at[:len(at):len(at)], i), v)
	}
	switch {
	case isName(v.Type()), v.Kind() == reflect.Func, v.Kind() == reflect.Interface && v.IsNil():
	case v.Kind() == reflect.Interface:
		collect(all, at, v.Elem())
	case v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct && v.Type().Implements(reflect.TypeFor[scenario.Op]()):
		collect(all, at, v.Elem())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			inside(i, v.Index(i))
		}
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[scenario.Range]():
		for i := range v.NumField() {
			if !isExcluded(v.Type(), v.Type().Field(i).Name) {
				inside(i, v.Field(i))
			}
		}
	default:
		*all = append(*all, located{at, v})
	}
}

// as returns the value if it has the type T or is a pointer to T, but not nil.
func as[T any](v reflect.Value) (value T, is bool) {
	if v = reflect.Indirect(v); v.IsValid() {
		value, is = reflect.TypeAssert[T](v)
	}
	return value, is
}

// setValue sets the value at a path, or the target of a pointer.
func setValue[T any](at path, value T) edit {
	return func(d *draft) { reflect.Indirect(at.in(d.Scenario)).Set(reflect.ValueOf(value)) }
}
