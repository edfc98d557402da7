// Package docs is a fixture: exported names with and without comments.
package docs

// Good has a comment.
type Good struct{}

// Method has a comment.
func (Good) Method() {}

func (Good) Bare() {} // want "Bare has no comment"

func (Good) private() {}

type Bare struct{} // want "Bare has no comment"

func Function() {} // want "Function has no comment"

// A group's comment is enough.
const (
	A = 1
	B = 2
)

const (
	// C has its own.
	C = 1
	D = 2 // D has one beside it.
)

var F = []int{ // want "F has no comment"
	1,
}

type private struct{}

func (private) Exported() {}
