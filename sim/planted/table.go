package planted

import (
	"bufio"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Row is what was measured of one bug. Zero values are not measured.
type Row struct {
	Bug    string
	Breaks []Guarantee
	// Test is the ordinary test that was seen to fail, as "drainer.TestName", or
	// [Survives]; TestedAt is the commit whose tests they were.
	Test, TestedAt string
	// Invariant is the one that found the bug most often, or [Hides] if none did.
	Invariant string
	// Found counts the starts from which the bug was found, of Starts. Seeds is the
	// median of how many seeds that took, where one that did not find it took all
	// it had.
	Found, Starts, Seeds int
	// Ops is how many operations and faults the shrunk scenario has.
	Ops int
	// HuntedAt is the commit whose simulator it was.
	HuntedAt string
}

const (
	// Survives stands for the test that finds a bug, of one that no ordinary test
	// finds.
	Survives = "survives"
	// Hides stands for the invariant that finds a bug, of one that none finds.
	Hides = "hides"
)

// Table is a row for each bug, in the order of their names, as it is kept in a
// Markdown file between the two marks.
type Table []Row

const (
	tableBegin = "<!-- planted -->"
	tableEnd   = "<!-- /planted -->"
	tableHead  = "| bug | breaks | go test | at | found by | from | seeds | operations | at |\n|---|---|---|---|---|---|---|---|---|\n"
)

// Row returns the bug's row, or nil.
func (t Table) Row(bug string) *Row {
	for i := range t {
		if t[i].Bug == bug {
			return &t[i]
		}
	}
	return nil
}

// Match returns a table with a row for each of the bugs and no other: what was
// measured of a bug stays, what it breaks is the bug's own.
func (t Table) Match(bugs []*Bug) Table {
	matched := make(Table, 0, len(bugs))
	for _, b := range bugs {
		row := Row{Bug: b.Name}
		if known := t.Row(b.Name); known != nil {
			row = *known
		}
		row.Breaks = b.Breaks
		matched = append(matched, row)
	}
	slices.SortFunc(matched, func(a, b Row) int { return strings.Compare(a.Bug, b.Bug) })
	return matched
}

// String is the table in Markdown.
func (t Table) String() string {
	var text strings.Builder
	text.WriteString(tableHead)
	for _, r := range t {
		from, seeds, ops := "", "", ""
		if r.Starts > 0 {
			from, seeds = fmt.Sprintf("%d of %d", r.Found, r.Starts), strconv.Itoa(r.Seeds)
		}
		if r.Ops > 0 {
			ops = strconv.Itoa(r.Ops)
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s |\n",
			r.Bug, join(r.Breaks), r.Test, r.TestedAt, r.Invariant, from, seeds, ops, r.HuntedAt)
	}
	return text.String()
}

func join(breaks []Guarantee) string {
	names := make([]string, len(breaks))
	for i, g := range breaks {
		names[i] = string(g)
	}
	return strings.Join(names, " ")
}

// ReadTable finds the table in a Markdown file. An error names the line.
func ReadTable(document string) (Table, error) {
	_, rest, begins := strings.Cut(document, tableBegin+"\n")
	text, _, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return nil, fmt.Errorf("no table stands between %s and %s", tableBegin, tableEnd)
	}
	body, headed := strings.CutPrefix(text, tableHead)
	if !headed {
		return nil, errors.New("the table has another head")
	}
	first := 1 + strings.Count(document[:len(document)-len(rest)], "\n") + strings.Count(tableHead, "\n")
	var t Table
	lines := bufio.NewScanner(strings.NewReader(body))
	for n := first; lines.Scan(); n++ {
		r, err := readRow(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		t = append(t, r)
	}
	return t, lines.Err()
}

// WriteTable returns the document with another table in it.
func WriteTable(document string, t Table) (string, error) {
	before, rest, begins := strings.Cut(document, tableBegin+"\n")
	_, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		return "", fmt.Errorf("no table stands between %s and %s", tableBegin, tableEnd)
	}
	return before + tableBegin + "\n" + t.String() + tableEnd + after, nil
}

func readRow(line string) (Row, error) {
	cells := strings.Split(line, "|")
	if len(cells) != 11 {
		return Row{}, fmt.Errorf("%d cells, not 9", max(0, len(cells)-2))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	r := Row{Bug: strings.Trim(cells[1], "`"), Test: cells[3], TestedAt: cells[4], Invariant: cells[5], HuntedAt: cells[9]}
	for _, name := range strings.Fields(cells[2]) {
		r.Breaks = append(r.Breaks, Guarantee(name))
	}
	if cells[6] != "" {
		if _, err := fmt.Sscanf(cells[6], "%d of %d", &r.Found, &r.Starts); err != nil {
			return Row{}, fmt.Errorf("%q is not found of starts: %w", cells[6], err)
		}
		if r.Starts < 1 || r.Found < 0 || r.Found > r.Starts {
			return Row{}, fmt.Errorf("found %d of %d starts", r.Found, r.Starts)
		}
	} else if cells[7] != "" {
		return Row{}, fmt.Errorf("%q seeds of no start", cells[7])
	}
	var err error
	if r.Seeds, err = readCount(cells[7]); err != nil {
		return Row{}, err
	}
	r.Ops, err = readCount(cells[8])
	return r, err
}

// readCount reads a number, or nothing as zero.
func readCount(cell string) (int, error) {
	if cell == "" {
		return 0, nil
	}
	return strconv.Atoi(cell)
}
