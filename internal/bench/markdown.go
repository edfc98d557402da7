package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// tabulate joins the reports in the files and prints one table in Markdown. It returns the exit
// code: 0, or 1 if a bound is broken, or 2 after an error.
func tabulate(files []string, stdout, stderr io.Writer) int {
	t, err := readTable(files)
	if err == nil {
		err = t.write(stdout)
	}
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return 2
	case slices.ContainsFunc(t.rows, func(r tableRow) bool { return r.Verdict == measure.Broken }):
		return 1
	}
	return 0
}

// table joins reports of one commit, size, Go version and number of processors.
type table struct {
	// run has those four fields of the reports, and no others.
	run  report
	rows []tableRow
}

// tableRow is a figure with the number of pairs that its report measured for each ratio.
type tableRow struct {
	figure
	pairs int
}

// readTable reads reports and sorts their figures by the order of the bounds. If several reports
// have the same figure, the table has that of the last report.
func readTable(files []string) (*table, error) {
	t := new(table)
	for _, name := range files {
		r, err := readReport(name)
		if err != nil {
			return nil, err
		}
		run := report{Size: r.Size, Commit: r.Commit, Go: r.Go, Processors: r.Processors}
		if len(t.rows) == 0 {
			t.run = run
		}
		if run.title() != t.run.title() {
			return nil, fmt.Errorf("%s is a report of %s, and the reports before are of %s", name, run.title(), t.run.title())
		}
		for _, f := range r.Figures {
			t.rows = slices.DeleteFunc(t.rows, func(old tableRow) bool { return old.What == f.What && old.Case == f.Case && old.Unit == f.Unit })
			t.rows = append(t.rows, tableRow{f, r.Pairs})
		}
	}
	if len(t.rows) == 0 {
		return nil, errors.New("there are no figures: give files that -json has written")
	}
	bounds := bounds()
	position := func(r tableRow) int { // -1, so first, for a benchmark that failed: it has no bound
		return slices.IndexFunc(bounds, func(b bound) bool { return b.what == r.What && b.unit == r.Unit })
	}
	slices.SortStableFunc(t.rows, func(a, b tableRow) int { return position(a) - position(b) })
	return t, nil
}

func readReport(name string) (*report, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading a report: %w", err)
	}
	r := new(report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("reading the report %s: %w", name, err)
	}
	return r, nil
}

func (t *table) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Of %s.\n\n", t.run.title())
	b.WriteString("| what | case | figure | bound | verdict | pairs | collector | other metrics |\n|---|---|---|---|---|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "\n", " ") // a benchmark that failed may have "|" in its name
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %g | %s | %s | %s | %s |\n", escape.Replace(r.What), escape.Replace(r.Case), r.value(), r.Bound, r.Verdict, r.pairCount(), r.collector(), r.otherMetrics())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pairCount returns the number of measured pairs as text. It is empty for a count, and for a ratio
// that was the same in all pairs.
func (r tableRow) pairCount() string {
	if r.Ratio == nil || r.Ratio.Low == r.Ratio.High {
		return ""
	}
	return strconv.Itoa(r.pairs)
}

// title describes the run of a report: its commit, size, Go version and processors.
func (r *report) title() string {
	return fmt.Sprintf("commit %s, size %s, %s, GOMAXPROCS=%d", cmp.Or(r.Commit, "unknown"), r.Size, r.Go, r.Processors)
}
