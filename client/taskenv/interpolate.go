package taskenv

import (
	"fmt"
	"strings"
)

// Lookup returns the value of a variable such as "attr.kernel.name", and whether there is one. Nil
// knows no variable.
type Lookup func(variable string) (string, bool)

// Interpolate replaces each ${name} of a text by the variable's value. Spaces around a name do not
// count, and ${meta["name"]} is ${meta.name}. $${ stands for ${. The error names the variable that
// has no value. Values are not interpolated themselves.
func Interpolate(text string, lookup Lookup) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		if strings.HasSuffix(before, "$") {
			// The first $ is in before.
			out.WriteString("{")
			text = rest
			continue
		}
		inside, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("%q has no closing brace", "${"+rest)
		}
		value, ok := "", false
		if lookup != nil {
			value, ok = lookup(variable(inside))
		}
		if !ok {
			return "", fmt.Errorf("there is no variable ${%s}", inside)
		}
		out.WriteString(value)
		text = after
	}
}

// variable returns the name of a variable without spaces, brackets and quotation marks.
func variable(inside string) string {
	return strings.NewReplacer(`["`, ".", `"]`, "").Replace(strings.TrimSpace(inside))
}
