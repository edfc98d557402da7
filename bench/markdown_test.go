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

// written is the file of a report.
func written(t *testing.T, r *report) string {
	name := filepath.Join(t.TempDir(), "report.json")
	file, err := os.Create(name)
	must.NoError(t, err)
	must.NoError(t, r.writeJSON(file))
	must.NoError(t, file.Close())
	return name
}

// of is a ratio of CPU against the bound of that name.
func of(t *testing.T, bound, of string, low, median, high float64) figure {
	for _, b := range bounds() {
		if b.name == bound {
			f, err := b.judge(result{Name: bound + "/" + of, Metrics: map[string]float64{
				measure.UnitRatio: median, measure.UnitRatio + measure.SuffixLow: low, measure.UnitRatio + measure.SuffixHigh: high,
			}})
			must.NoError(t, err)
			return f
		}
	}
	t.Fatalf("there is no bound %s", bound)
	return figure{}
}

// Reports of parts are one table, in the order of the bounds, in which the last word on a
// figure counts.
func TestTabulate(t *testing.T) {
	first := written(t, &report{Size: measure.Full, Pairs: 3, Figures: []figure{
		of(t, "drains/cpu/max_parallel=10", "large", 1.5, 1.6, 1.65), of(t, "recheck", "jobs", 1.0, 1.1, 1.2),
	}})
	second := written(t, &report{Size: measure.Full, Pairs: 5, Figures: []figure{
		of(t, "drains/cpu/max_parallel=10", "large", 1.0, 1.1, 1.15), of(t, "drains/cpu/max_parallel=100", "large", 1.0, 1.1, 1.15),
	}})
	var stdout, stderr bytes.Buffer
	must.Eq(t, 0, run(t.Context(), []string{"-table", first, second}, &stdout, &stderr))
	must.Eq(t, "", stderr.String())
	lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	must.Len(t, 5, lines)
	must.Eq(t, "| applying marks that are judged again, to applying them unjudged | jobs | 1.10 (1.00 to 1.20) | 2 | holds | 3 |  |  |", lines[2])
	must.Eq(t, "| whole drains at max_parallel 10, entries of 0.25 ms, to applying their entries | large | 1.10 (1.00 to 1.15) | 1.4 | holds | 5 |  |  |", lines[3])
	must.StrContains(t, lines[4], "max_parallel 100")
	must.Eq(t, 1, run(t.Context(), []string{"-table", first}, io.Discard, io.Discard)) // broken there

	failed := written(t, &report{Size: measure.Full, Figures: []figure{{What: "a benchmark failed: one\nand another", Case: "a|b", Verdict: measure.Broken}}})
	stdout.Reset()
	must.Eq(t, 1, run(t.Context(), []string{"-table", second, failed}, &stdout, &stderr))
	must.Eq(t, `| a benchmark failed: one and another | a\|b |  | 0 | broken |  |  |  |`, strings.Split(stdout.String(), "\n")[2])
}

func TestTabulate_refuses(t *testing.T) {
	full, small := written(t, &report{Size: measure.Full, Figures: []figure{{}}}), written(t, &report{Size: measure.Small, Figures: []figure{{}}})
	for _, files := range [][]string{{}, {full, small}, {full + "-not"}, {"markdown_test.go"}} {
		var stdout, stderr bytes.Buffer
		must.Eq(t, 2, run(t.Context(), append([]string{"-table"}, files...), &stdout, &stderr), must.Sprint(files))
		must.Eq(t, "", stdout.String())
		must.NotEq(t, "", stderr.String())
	}
}
