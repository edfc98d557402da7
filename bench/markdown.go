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
// code: 1 if a bound is broken.
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
	of   report
	rows []tableRow
}

// tableRow is a figure with the number of pairs of its report.
type tableRow struct {
	figure
	pairs int
}

// readTable reads reports and sorts their figures by the order of the bounds. If several reports
// have a figure, the last one counts.
func readTable(files []string) (*table, error) {
	t := new(table)
	for _, name := range files {
		r, err := readReport(name)
		if err != nil {
			return nil, err
		}
		of := report{Size: r.Size, Commit: r.Commit, Go: r.Go, Processors: r.Processors}
		if len(t.rows) == 0 {
			t.of = of
		}
		if of.title() != t.of.title() {
			return nil, fmt.Errorf("%s is a report of %s, and the reports before are of %s", name, of.title(), t.of.title())
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
	place := func(r tableRow) int { // -1 for a benchmark that failed, which is first
		return slices.IndexFunc(bounds, func(b bound) bool { return b.what == r.What && b.unit == r.Unit })
	}
	slices.SortStableFunc(t.rows, func(a, b tableRow) int { return place(a) - place(b) })
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
	fmt.Fprintf(&b, "Of %s.\n\n", t.of.title())
	b.WriteString("| what | case | figure | bound | verdict | pairs | collector | other metrics |\n|---|---|---|---|---|---|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "\n", " ") // the name of a benchmark that failed is a pattern
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %g | %s | %s | %s | %s |\n", cell.Replace(r.What), cell.Replace(r.Case), r.value(), r.Bound, r.Verdict, r.pairsRead(), r.collector(), r.otherMetrics())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pairsRead returns the number of pairs, or an empty text for a figure without pairs.
func (r tableRow) pairsRead() string {
	if r.Ratio == nil || r.Ratio.Low == r.Ratio.High {
		return ""
	}
	return strconv.Itoa(r.pairs)
}

// title describes the commit and the machine of a report.
func (r *report) title() string {
	return fmt.Sprintf("commit %s, size %s, %s, GOMAXPROCS=%d", cmp.Or(r.Commit, "unknown"), r.Size, r.Go, r.Processors)
}
