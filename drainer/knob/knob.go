// Package knob declares configuration values. A [Knob] is declared once, with its name, default,
// bounds and sentence. The validation of a configuration, the flags of a server, the words of a
// scenario and the manual follow from it.
package knob

import (
	"fmt"
	"strings"
)

// Knob is one value of a configuration.
type Knob struct {
	// Name is the word for the value: "max-ids". Never empty.
	Name string
	// Field is the path of the Go field: "Policy.HealthGrace". Never empty.
	Field string
	// Text is a sentence for operators. Never empty.
	Text string
	// Operator means that an operator may change the value: servers have a flag for it.
	Operator bool
	// Value reads and changes the field. Never nil.
	Value Value
}

// Value is the field of a knob. The constructors of this package return one for each type.
type Value interface {
	// Set parses a text and changes the field. An error names what the text must be, and leaves
	// the field as it was. The caller shows it to its user.
	Set(text string) error
	// String returns the field as Set parses it.
	String() string
	// IsZero reports whether the field is zero, which means its default.
	IsZero() bool
	// SetDefault changes a zero field to its default.
	SetDefault()
	// Default returns the default as Set parses it.
	Default() string
	// Check reports whether the field, or its default if it is zero, is within the bounds.
	Check() bool
	// Bounds describes the values that are permitted: ">= 2", "hold or proceed".
	Bounds() string
}

// List are the knobs of one configuration, in the order in which they are printed.
type List []Knob

// SetDefaults changes all zero fields to their defaults.
func (l List) SetDefaults() {
	for _, k := range l {
		k.Value.SetDefault()
	}
}

// Validate returns an error that names the first field that is not within its bounds, or nil.
func (l List) Validate() error {
	for _, k := range l {
		if !k.Value.Check() {
			return fmt.Errorf("%s must be %s", k.Field, k.Value.Bounds())
		}
	}
	return nil
}

// list joins words: "a, b or c".
func list(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
