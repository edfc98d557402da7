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

// Door promises.
type Door interface {
	// Open opens.
	Open(int)
	Close()
}

// Gate keeps what Door promises.
type Gate struct{}

func (*Gate) Open(int) {}

func (*Gate) Close() {} // want "Close has no comment"

// Hatch opens otherwise.
type Hatch struct{}

func (Hatch) Open() {} // want "Open has no comment"
