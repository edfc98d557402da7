// Package anything is a fixture: signatures that say any.
package anything

// Excused is excused by the test.
func Excused(any) {}

// Argument says any.
func Argument(v any) {} // want "anything.Argument says any"

// Results says any.
func Results() []interface{} { return nil } // want "anything.Results says any"

// Callback says any.
func Callback(f func(map[string]any)) {} // want "anything.Callback says any"

// Variadic says any.
func Variadic(args ...any) {} // want "anything.Variadic says any"

// Constraint constrains, which is something else.
func Constraint[T any](t T) []T { return nil }

// Typed says what it takes.
func Typed(e error, i Iface) {}

func private(any) {}

// Iface has methods.
type Iface interface { // want "Iface\).Bad says any"
	Good(int)
	Bad(any)
}

// T has methods.
type T struct{}

// Method says any.
func (T) Method() any { return nil } // want "T\).Method says any"
