// Package result unwraps the results of calls that must succeed in a test: result.Of(call()).OK(t).
package result

import (
	"testing"

	"github.com/shoenig/test/must"
)

// Result is the result of a call.
type Result[T any] struct {
	value T
	err   error
}

// Of returns the result of a call with a value and an error.
func Of[T any](value T, err error) Result[T] { return Result[T]{value, err} }

// Read returns the result of a read of an API client, without the headers of the answer.
func Read[T, Headers any](value T, _ Headers, err error) Result[T] { return Result[T]{value, err} }

// OK returns the value. An error ends the test.
func (r Result[T]) OK(t testing.TB) T {
	t.Helper()
	must.NoError(t, r.err)
	return r.value
}
