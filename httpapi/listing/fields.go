package listing

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// checkFields returns an error if an expression reads a field that rows of the type do not have. The evaluator
// alone finds this only in rows that it reads so far: not behind a missing object, nor after the first half of an
// "and". Keys of maps differ from row to row, so every key is valid.
func checkFields(expression any, row reflect.Type) error {
	var check func(expression any, bound []string) error
	check = func(expression any, bound []string) error {
		switch e := expression.(type) {
		case *grammar.UnaryExpression:
			return check(e.Operand, bound)
		case *grammar.BinaryExpression:
			if err := check(e.Left, bound); err != nil {
				return err
			}
			return check(e.Right, bound)
		case *grammar.CollectionExpression:
			if err := checkPath(e.Selector.Path, row, bound); err != nil {
				return err
			}
			names := e.NameBinding
			return check(e.Inner, append(bound, names.Default, names.Index, names.Value))
		case *grammar.MatchExpression:
			return checkPath(e.Selector.Path, row, bound)
		}
		return nil
	}
	return check(expression, nil)
}

// checkPath returns an error if a path names a field that the type does not have. It does not check a path that
// begins with a bound name.
func checkPath(path []string, t reflect.Type, bound []string) error {
	if len(path) > 0 && slices.Contains(bound, path[0]) {
		return nil
	}
	for i, part := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch {
		case t == reflect.TypeFor[wire.Time](): // compared as text
			return nil
		case t.Kind() == reflect.Map, t.Kind() == reflect.Slice, t.Kind() == reflect.Array:
			t = t.Elem()
		case t.Kind() == reflect.Struct:
			fields := fieldsOf(t)
			at := slices.IndexFunc(fields, func(f reflect.StructField) bool { return f.Name == part })
			if at < 0 {
				return unknownField(path[:i+1], fields)
			}
			t = fields[at].Type
		default:
			return nil
		}
	}
	return nil
}

// fieldsOf returns the fields that an expression can read, in their order.
func fieldsOf(t reflect.Type) (fields []reflect.StructField) {
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() {
			fields = append(fields, f)
		}
	}
	return fields
}

// unknownField names the known fields.
func unknownField(path []string, fields []reflect.StructField) error {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return fmt.Errorf("the field %s is unknown; known are %s", failure.Quoted(strings.Join(path, ".")), strings.Join(names, ", "))
}
