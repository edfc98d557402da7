package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Table is text in aligned columns. Its first row names the columns.
type Table struct {
	columns []string // with those that are not shown
	rows    [][]string
}

// NewTable returns a table with columns. Those without a name are not shown; see If.
func NewTable(columns ...string) *Table {
	t := &Table{columns: columns}
	t.Row(columns...)
	return t
}

// If returns the name of a column that is shown under a condition.
func If(shown bool, column string) string {
	if shown {
		return column
	}
	return ""
}

// Row adds a row, with a cell for each column of NewTable.
func (t *Table) Row(cells ...string) {
	var row []string
	for i, cell := range cells {
		if t.columns[i] != "" {
			row = append(row, cmp.Or(SingleLine(cell), "<none>"))
		}
	}
	t.rows = append(t.rows, row)
}

// SingleLine removes line breaks and control characters from text of other origin, so that
// it cannot break a row or control the terminal.
func SingleLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func (t *Table) Write(out io.Writer) {
	aligned(out, t.rows, 2)
}

// aligned writes rows in columns with a gap between them. It counts the columns of the terminal,
// of which a wide character takes two. It ignores errors: a closed terminal cannot show one.
func aligned(out io.Writer, rows [][]string, gap int) {
	var widths []int
	for _, cells := range rows {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(cell))
		}
	}
	var text strings.Builder
	for _, cells := range rows {
		for i, cell := range cells {
			text.WriteString(cell)
			if i < len(cells)-1 {
				text.WriteString(strings.Repeat(" ", widths[i]-runewidth.StringWidth(cell)+gap))
			}
		}
		text.WriteByte('\n')
	}
	_, _ = io.WriteString(out, text.String())
}

func (t *Table) String() string {
	var text strings.Builder
	t.Write(&text)
	return strings.TrimRight(text.String(), "\n")
}

// Facts are names and values, one pair per line.
type Facts struct{ lines [][]string }

// Add adds a name and its value.
func (f *Facts) Add(name, value string) {
	f.lines = append(f.lines, []string{name, "= " + cmp.Or(SingleLine(value), "<none>")})
}

func (f *Facts) Write(out io.Writer) {
	aligned(out, f.lines, 1)
}

// AddAny adds a name and its value, unless the value is empty.
func (f *Facts) AddAny(name, value string) {
	if value != "" {
		f.Add(name, value)
	}
}

// Section prints a title and a table.
func (c *Base) Section(title string, t *Table) {
	fmt.Fprintf(c.Out, "\n%s\n", title)
	t.Write(c.Out)
}

// SectionIfAny prints a title and a table, if the table has rows.
func (c *Base) SectionIfAny(title string, t *Table) {
	if len(t.rows) > 1 {
		c.Section(title, t)
	}
}

// shortIDLength is the length of a shortened id.
const shortIDLength = 8

// lengthOfUUID is the length of the ids that ShortIDs shortens.
const lengthOfUUID = 36

// ShortIDs shortens the ids in a text of a server that are UUIDs.
func ShortIDs(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		bare := strings.TrimRight(word, ",;.:")
		if len(bare) == lengthOfUUID && strings.Count(bare, "-") == 4 && strings.Trim(bare, "0123456789abcdef-") == "" {
			words[i] = ShortID(bare, false) + word[len(bare):]
		}
	}
	return strings.Join(words, " ")
}

// ShortID returns a prefix of an id, long enough for commands to find the node.
func ShortID(id string, whole bool) string {
	if whole || len(id) <= shortIDLength {
		return id
	}
	return id[:shortIDLength]
}
