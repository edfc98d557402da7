package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// table is text in aligned columns. Its first row names the columns.
type table struct{ rows [][]string }

func newTable(columns ...string) *table { return &table{rows: [][]string{columns}} }

func (t *table) row(cells ...string) {
	for i, cell := range cells {
		if cells[i] = singleLine(cell); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	t.rows = append(t.rows, cells)
}

// singleLine removes line breaks and control characters from text of other origin, so that
// it cannot break a row or control the terminal.
func singleLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func (t *table) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, cells := range t.rows {
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush() // a closed terminal cannot show an error either
}

func (t *table) String() string {
	var text strings.Builder
	t.write(&text)
	return strings.TrimRight(text.String(), "\n")
}

// facts are names and values, one pair per line.
type facts struct{ lines []string }

func (f *facts) add(name, value string) {
	if value = singleLine(value); value == "" {
		value = "<none>"
	}
	f.lines = append(f.lines, name+"\t= "+value)
}

func (f *facts) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	for _, line := range f.lines {
		fmt.Fprintln(w, line)
	}
	_ = w.Flush()
}

// shortIDLength is the length of a shortened id.
const shortIDLength = 8

// shortID returns a prefix of an id, long enough for commands to find the node.
func shortID(id string, whole bool) string {
	if whole || len(id) <= shortIDLength {
		return id
	}
	return id[:shortIDLength]
}
