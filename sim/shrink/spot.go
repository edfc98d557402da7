package shrink

import (
	"reflect"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// spot is where a value stands in a scenario: numbers of fields and places in lists,
// from the outside inwards. It is the same in a copy.
//
// Values are found by reflection, so that whatever the language learns to say can be
// shrunk too.
type spot []int

// in returns the value at the spot.
func (p spot) in(s *scenario.Scenario) reflect.Value {
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

// held is a value and where it stands.
type held struct {
	spot
	reflect.Value
}

// values returns all values of a scenario that can be made simpler: numbers, words,
// flags, times and ranges, whether they are set or not.
func values(s *scenario.Scenario) []held {
	var all []held
	collect(&all, nil, reflect.ValueOf(s).Elem())
	return all
}

// named reports whether values of a type are names of things, or are made simpler
// in a way of their own.
func named(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[cluster.NodeID](), reflect.TypeFor[cluster.JobKey](), reflect.TypeFor[cluster.GroupKey](),
		reflect.TypeFor[scenario.AllocName](), reflect.TypeFor[scenario.Selector](), reflect.TypeFor[scenario.Indexes](),
		reflect.TypeFor[scenario.FaultName](), reflect.TypeFor[[]cluster.NodeID]():
		return true
	}
	return false
}

// apart reports whether a field of a type is no part of what is played, or is made
// simpler in a way of its own.
func apart(t reflect.Type, field string) bool {
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

// collect adds the values in v, which stands at a spot.
func collect(all *[]held, at spot, v reflect.Value) {
	inside := func(i int, v reflect.Value) {
		collect(all, append(at[:len(at):len(at)], i), v)
	}
	switch {
	case named(v.Type()):
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
			if !apart(v.Type(), v.Type().Field(i).Name) {
				inside(i, v.Field(i))
			}
		}
	default:
		*all = append(*all, held{at, v})
	}
}

// as returns the value where it is of that type, or may be and is: not nil.
func as[T any](v reflect.Value) (value T, is bool) {
	if v = reflect.Indirect(v); v.IsValid() {
		value, is = reflect.TypeAssert[T](v)
	}
	return value, is
}

// become sets a value, also of what may be nil.
func become[T any](at spot, value T) edit {
	return func(d *draft) { reflect.Indirect(at.in(d.Scenario)).Set(reflect.ValueOf(value)) }
}
