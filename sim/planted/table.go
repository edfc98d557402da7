package planted

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Row is how a bug is found.
type Row struct {
	Bug    string
	Breaks []Guarantee
	// Found is "seed 53", "scenario case-12-job-stopped" or "test drainer.TestTerm_Quiet".
	Found string
	// Check is the judge's check that fails first, such as "G6 not retried". It is empty for
	// a named test.
	Check string
}

// TestPrefix begins [Row.Found] of a bug that a named test finds.
const TestPrefix = "test "

const (
	// leastBugs is how many bugs break each guarantee before any other, at least.
	leastBugs = 2
	// mostByTest is how many bugs of the servers may be found by a named test only: no simulated
	// cluster shows them. The tests of package client are simulations of their own.
	mostByTest = 7
)

// Table has a row for each found bug, in the order of names.
type Table []Row

const (
	tableTitle = `# How the planted bugs are found

` + "`go run ./sim/planted/find`" + ` writes this file; see [doc.go](doc.go). A seed is a small
seed that fails, a scenario is a file of [sim/scenarios](../scenarios).

`
	tableHead = "| bug | breaks | found by | check |\n|---|---|---|---|\n"
)

// Match returns a table with the rows of these bugs only. What a bug breaks comes from the
// bug.
func (t Table) Match(bugs []*Bug) Table {
	var matched Table
	for _, b := range bugs {
		if i := t.index(b.Name); i >= 0 {
			row := t[i]
			row.Breaks = b.Breaks
			matched = append(matched, row)
		}
	}
	return matched
}

// Set returns the table with the row in the place of the bug's row, if it had one.
func (t Table) Set(row Row) Table {
	t = slices.DeleteFunc(slices.Clone(t), func(r Row) bool { return r.Bug == row.Bug })
	t = append(t, row)
	slices.SortFunc(t, func(a, b Row) int { return strings.Compare(a.Bug, b.Bug) })
	return t
}

// Row returns the row of a bug, or a zero one.
func (t Table) Row(bug string) Row {
	if i := t.index(bug); i >= 0 {
		return t[i]
	}
	return Row{}
}

func (t Table) index(bug string) int {
	return slices.IndexFunc(t, func(r Row) bool { return r.Bug == bug })
}

// Check returns an error that lists the guarantees with too few bugs, the bugs without a row,
// and too many bugs that only a named test finds.
func (t Table) Check(bugs []*Bug) error {
	var errs []error
	breaking, byTest := map[Guarantee]int{}, 0
	for _, b := range bugs {
		breaking[b.Breaks[0]]++
		i := t.index(b.Name)
		switch {
		case i < 0:
			errs = append(errs, fmt.Errorf("%s has no row: run go run ./sim/planted/find %s", b.Name, b.Name))
		case strings.HasPrefix(t[i].Found, TestPrefix) && !strings.HasPrefix(string(b.Breaks[0]), "N"):
			byTest++
		}
	}
	for _, g := range Guarantees() {
		if breaking[g] < leastBugs {
			errs = append(errs, fmt.Errorf("%d bugs break %s first, at least %d must", breaking[g], g, leastBugs))
		}
	}
	if byTest > mostByTest {
		errs = append(errs, fmt.Errorf("%d bugs are found by a named test only, at most %d may", byTest, mostByTest))
	}
	return errors.Join(errs...)
}

// String returns the table in Markdown.
func (t Table) String() string {
	var text strings.Builder
	text.WriteString(tableTitle + tableHead)
	for _, r := range t {
		names := make([]string, len(r.Breaks))
		for i, g := range r.Breaks {
			names[i] = string(g)
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", r.Bug, strings.Join(names, " "), r.Found, r.Check)
	}
	return text.String()
}

// ReadTable reads what String writes.
func ReadTable(document string) (Table, error) {
	_, body, found := strings.Cut(document, tableHead)
	if !found {
		return nil, errors.New("the document has no table of planted bugs")
	}
	var t Table
	for line := range strings.Lines(body) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 {
			return nil, fmt.Errorf("a row of planted bugs has 4 cells, not %d: %q", len(cells)-2, line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		row := Row{Bug: strings.Trim(cells[1], "`"), Found: cells[3], Check: cells[4]}
		for name := range strings.FieldsSeq(cells[2]) {
			row.Breaks = append(row.Breaks, Guarantee(name))
		}
		t = append(t, row)
	}
	return t, nil
}
