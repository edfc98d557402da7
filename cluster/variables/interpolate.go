// Package variables reads the variables in texts of jobs, such as ${attr.kernel.name}. The client replaces
// them when it starts a task. The scheduler reads their names, because a task does not start on a node
// without one of them.
package variables

import (
	"fmt"
	"strings"
)

// Lookup returns the value of a variable such as "attr.kernel.name", and whether there is one. Nil
// has no variable.
type Lookup func(variable string) (string, bool)

// MaxText bounds a text after its variables are replaced, in bytes.
const MaxText = 1 << 20

// Interpolate replaces each ${name} of a text by the variable's value. Spaces around a name do not
// count, and ${meta["name"]} is ${meta.name}. $${ stands for ${. The error names the variable that
// has no value, or the text whose result has more than [MaxText] bytes. Values are not interpolated
// themselves.
func Interpolate(text string, lookup Lookup) (string, error) {
	var out strings.Builder
	for rest, found := text, true; found; {
		var before, value string
		var err error
		before, rest, found = strings.Cut(rest, "${")
		switch {
		case found && strings.HasSuffix(before, "$"):
			value = "{" // The first $ is in before.
		case found:
			value, rest, err = first(rest, lookup)
		}
		if err == nil && out.Len()+len(before)+len(value) > MaxText {
			err = fmt.Errorf("the text %.40q has more than %d bytes with the values of its variables", text, MaxText)
		}
		if err != nil {
			return "", err
		}
		out.WriteString(before)
		out.WriteString(value)
	}
	return out.String(), nil
}

// first returns the value of the variable whose name the text begins with, and what follows the
// closing brace.
func first(text string, lookup Lookup) (value, after string, err error) {
	inside, after, closed := strings.Cut(text, "}")
	if !closed {
		return "", "", fmt.Errorf("%q has no closing brace", "${"+text)
	}
	ok := false
	if lookup != nil {
		value, ok = lookup(variable(inside))
	}
	if !ok {
		return "", "", fmt.Errorf("there is no variable ${%s}", inside)
	}
	return value, after, nil
}

// variable returns the name of a variable without spaces, brackets and quotation marks.
func variable(inside string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(inside), `["`, "."), `"]`, "")
}

// Names returns the names of the variables in a text, in their order. They end where a closing brace is missing.
func Names(text string) (names []string) {
	_, _ = Interpolate(text, func(name string) (string, bool) { // the names before an error count
		names = append(names, name)
		return "", true
	})
	return names
}

// Broken reports whether a variable in a text has no closing brace.
func Broken(text string) bool {
	_, err := Interpolate(text, func(string) (string, bool) { return "", true })
	return err != nil
}
