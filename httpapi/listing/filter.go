package listing

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/hashicorp/go-bexpr"
	"github.com/hashicorp/go-bexpr/grammar"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/failure"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Bounds of a filter. Its parser tries every alternative, and each nested pair of parentheses takes
// ten times as long: six levels took half a second, and a line of four thousand parentheses three
// seconds. With these bounds the worst filter takes some tenths of a second; five levels and about
// a hundred comparisons in a row are accepted. The work for each row grows with the product of the
// lists that any and all iterate over: they may stand side by side, but not nest.
const (
	// maxFilter is in bytes.
	maxFilter = 4096
	// maxFilterSteps is in alternatives that the parser tries.
	maxFilterSteps = 250_000
)

// filter is a boolean expression over a row in full; nil lets everything through.
type filter struct {
	evaluator  *bexpr.Evaluator
	expression any
	// checked reports whether the fields of the expression were compared with those of a row. All rows of a
	// list have one type.
	checked bool
}

func newFilter(expression string) (*filter, error) {
	if expression == "" {
		return nil, nil
	}
	if len(expression) > maxFilter {
		return nil, badFilter(fmt.Errorf("it is longer than %d bytes", maxFilter))
	}
	parsed, err := grammar.Parse("", []byte(expression), grammar.MaxExpressions(maxFilterSteps))
	if err != nil {
		return nil, badFilter(err)
	}
	if nests(parsed, false) {
		return nil, badFilter(errors.New("any and all cannot be nested"))
	}
	evaluator, err := bexpr.CreateEvaluator(expression, bexpr.WithMaxExpressions(maxFilterSteps), bexpr.WithHookFn(plain))
	if err != nil {
		return nil, badFilter(err)
	}
	return &filter{evaluator: evaluator, expression: parsed}, nil
}

// nests reports whether any or all stands within another, or at all if the expression
// itself stands within one.
func nests(expression any, within bool) bool {
	switch e := expression.(type) {
	case *grammar.UnaryExpression:
		return nests(e.Operand, within)
	case *grammar.BinaryExpression:
		return nests(e.Left, within) || nests(e.Right, within)
	case *grammar.CollectionExpression:
		return within || nests(e.Inner, true)
	}
	return false
}

func badFilter(err error) error {
	return failure.Bad("failed to create result paginator: failed to read filter expression: %v", err)
}

func badRow(err error) error { return failure.Bad("failed to read result page: %v", err) }

// row reports whether the filter lets a row through.
func (f *filter) row(full func() any) (bool, error) {
	if f == nil {
		return true, nil
	}
	value := full()
	if !f.checked {
		if err := checkFields(f.expression, reflect.TypeOf(value)); err != nil {
			return false, badRow(err)
		}
		f.checked = true
	}
	ok, err := f.evaluator.Evaluate(value)
	if err != nil {
		return false, badRow(err)
	}
	return ok, nil
}

// Select returns the rows that a filter lets through. Full is a row in full.
func Select[Row any](rows iter.Seq[Row], expression string, full func(Row) any) (taken []Row, err error) {
	f, err := newFilter(expression)
	if err != nil {
		return nil, err
	}
	for row := range rows {
		ok, err := f.row(func() any { return full(row) })
		if err != nil {
			return nil, err
		}
		if ok {
			taken = append(taken, row)
		}
	}
	return taken, nil
}

// plain converts values on a filter's path. A time becomes its text. A missing object has no
// fields, so LastDrain.Status == "complete" is false for a node that never drained, and not an
// error.
func plain(v reflect.Value) reflect.Value {
	if t, is := timeOf(v); is {
		return reflect.ValueOf(t)
	}
	if v.Kind() == reflect.Pointer && v.IsNil() && v.Type().Elem().Kind() == reflect.Struct {
		return reflect.ValueOf(map[string]string{})
	}
	return v
}

// timeOf is the text of a time as it travels, empty for null.
func timeOf(v reflect.Value) (string, bool) {
	if v.Type() != reflect.TypeFor[wire.Time]() {
		return "", false
	}
	t := v.Interface().(wire.Time)
	if t.IsZero() {
		return "", true
	}
	return t.Format(time.RFC3339Nano), true
}
