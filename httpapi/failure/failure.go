// Package failure has the errors with which the API refuses requests. Begin with [New] and [Bad].
package failure

import (
	"fmt"
	"net/http"
	"strings"
)

// Failure is an error with the status code and the text of the answer.
type Failure struct {
	Code int
	Text string
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// New returns a failure with the code and the text.
func New(code int, text string) error { return &Failure{code, text} }

// Newf returns a failure with the code and a formatted text.
func Newf(code int, format string, args ...any) error {
	return &Failure{code, fmt.Sprintf(format, args...)}
}

// Bad returns the failure 400 of a request that is wrong. The text describes how.
func Bad(format string, args ...any) error { return Newf(http.StatusBadRequest, format, args...) }

// QuotedBytes is the length of the longest part of a request that an error repeats.
const QuotedBytes = 64

// Quoted returns the start of a text of a request, for an error.
func Quoted(text string) string {
	if len(text) > QuotedBytes {
		text = strings.ToValidUTF8(text[:QuotedBytes], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
