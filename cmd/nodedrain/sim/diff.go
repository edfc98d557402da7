package sim

import (
	"strings"

	textdiff "github.com/rogpeppe/go-internal/diff"
)

// diff returns the differences of two texts by line, with the lines around them: a missing line after
// a minus, an added line after a plus. It is empty for equal texts.
func diff(expected, got string) string {
	const header = 4 // three lines of names, and the place of the first difference
	lines := strings.Split(string(textdiff.Diff("", []byte(expected+"\n"), "", []byte(got+"\n"))), "\n")
	var b strings.Builder
	for _, line := range lines[min(header, len(lines)):] {
		switch {
		case strings.HasPrefix(line, "@@"):
			b.WriteString("  ...\n")
		case line != "":
			b.WriteString(strings.TrimRight(line[:1]+" "+line[1:], " ") + "\n")
		}
	}
	return b.String()
}
