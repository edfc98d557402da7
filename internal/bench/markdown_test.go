package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// written writes a report to a file and returns its name.
func written(t *testing.T, r *report) string {
	name := filepath.Join(t.TempDir(), "report.json")
	file, err := os.Create(name)
	must.NoError(t, err)
	must.NoError(t, r.writeJSON(file))
	must.NoError(t, file.Close())
	return name
}

// figureOf returns a ratio of CPU time, compared with the bound of that name.
func figureOf(t *testing.T, bound, name string, low, median, high float64) figure {
	for _, b := range bounds() {
		if b.name == bound {
			f, err := b.compare(result{Name: bound + "/" + name, Metrics: map[string]float64{
				measure.UnitRatio: median, measure.UnitRatio + measure.SuffixLow: low, measure.UnitRatio + measure.SuffixHigh: high,
			}})
			must.NoError(t, err)
			return f
		}
	}
	t.Fatalf("there is no bound %s", bound)
	return figure{}
}

// Several reports become one table in the order of the bounds. The last report of a figure counts.
func TestTabulate(t *testing.T) {
	first := written(t, &report{Size: measure.Full, Commit: "c0ffee", Pairs: 3, Figures: []figure{
		figureOf(t, "drains/cpu/max_parallel=10", "large", 1.5, 1.6, 1.65), figureOf(t, "changed/cpu", "jobs", 1.0, 1.1, 1.2),
	}})
	second := written(t, &report{Size: measure.Full, Commit: "c0ffee", Pairs: 5, Figures: []figure{
		figureOf(t, "drains/cpu/max_parallel=10", "large", 1.0, 1.1, 1.15), figureOf(t, "drains/cpu/max_parallel=100", "large", 1.0, 1.1, 1.15),
	}})
	var stdout, stderr bytes.Buffer
	must.Eq(t, 0, run(t.Context(), []string{"-table", first, second}, &stdout, &stderr))
	must.Eq(t, "", stderr.String())
	must.StrContains(t, stdout.String(), "Of commit c0ffee, size full,")
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	must.Len(t, 7, lines)
	must.Eq(t, "| a changed allocation: write and step, to the write alone | jobs | 1.10 (1.00 to 1.20) | 2 | holds | 3 |  |  |", lines[4])
	must.Eq(t, "| whole drains at max_parallel 10, entries of 0.25 ms, to applying their entries | large | 1.10 (1.00 to 1.15) | 1.4 | holds | 5 |  |  |", lines[5])
	must.StrContains(t, lines[6], "max_parallel 100")
	must.Eq(t, 1, run(t.Context(), []string{"-table", first}, io.Discard, io.Discard)) // the figure is broken in the first report

	failed := written(t, &report{Size: measure.Full, Commit: "c0ffee", Figures: []figure{{What: "a benchmark failed: one\nand another", Case: "a|b", Verdict: measure.Broken}}})
	stdout.Reset()
	must.Eq(t, 1, run(t.Context(), []string{"-table", second, failed}, &stdout, &stderr))
	must.Eq(t, `| a benchmark failed: one and another | a\|b |  | 0 | broken |  |  |  |`, strings.Split(stdout.String(), "\n")[4])
}

func TestTabulate_refuses(t *testing.T) {
	some := []figure{{}}
	full, small := written(t, &report{Size: measure.Full, Figures: some}), written(t, &report{Size: measure.Small, Figures: some})
	later := written(t, &report{Size: measure.Full, Commit: "c0ffee", Figures: some})
	for _, files := range [][]string{{}, {full, small}, {full, later}, {full + "-not"}, {"markdown_test.go"}} {
		var stdout, stderr bytes.Buffer
		must.Eq(t, 2, run(t.Context(), append([]string{"-table"}, files...), &stdout, &stderr), must.Sprint(files))
		must.Eq(t, "", stdout.String())
		must.NotEq(t, "", stderr.String())
	}
}
