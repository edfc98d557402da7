package main

import (
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

// tabulate puts together the reports in the files, and prints them as one table in
// Markdown. It returns the exit code: 1 if something in them is broken.
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

// table is what several reports of one size say.
type table struct {
	size measure.Size
	rows []tableRow
}

// tableRow is a figure with how many pairs its report says a ratio is the median of.
type tableRow struct {
	figure
	pairs int
}

// readTable reads reports, in the order of the bounds. Of a figure that several have the
// last says what it is.
func readTable(files []string) (*table, error) {
	t := new(table)
	for _, name := range files {
		r, err := readReport(name)
		if err != nil {
			return nil, err
		}
		if t.size == "" {
			t.size = r.Size
		}
		if r.Size != t.size {
			return nil, fmt.Errorf("%s is of the size %s, and what is before it of %s", name, r.Size, t.size)
		}
		for _, f := range r.Figures {
			t.rows = slices.DeleteFunc(t.rows, func(old tableRow) bool { return old.What == f.What && old.Case == f.Case && old.Unit == f.Unit })
			t.rows = append(t.rows, tableRow{f, r.Pairs})
		}
	}
	if len(t.rows) == 0 {
		return nil, errors.New("there is nothing to tabulate: name files that -json has written")
	}
	bounds := bounds()
	place := func(r tableRow) int { // what failed has none, and comes first
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
	fmt.Fprintf(&b, "| what (%s) | case | figure | bound | verdict | pairs | collector | besides |\n|---|---|---|---|---|---|---|---|\n", t.size)
	cell := strings.NewReplacer("|", `\|`, "\n", " ") // what failed is named as it was asked for
	for _, r := range t.rows {
		fmt.Fprintf(&b, "| %s | %s | %s | %g | %s | %s | %s | %s |\n", cell.Replace(r.What), cell.Replace(r.Case), r.value(), r.Bound, r.Verdict, r.pairsRead(), r.collector(), r.besides())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// pairsRead is how many pairs there were, or empty where nothing was paired.
func (r tableRow) pairsRead() string {
	if r.Ratio == nil || r.Ratio.Low == r.Ratio.High {
		return ""
	}
	return strconv.Itoa(r.pairs)
}
