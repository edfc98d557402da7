package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// output is the output of some benchmarks.
const output = `goos: linux
pkg: example.com/bench
BenchmarkFigure/quiet-2            	       1	         0 rows	         3 wake-ups	        24 read
BenchmarkFigure/whole/small-2      	       1	   1000 base-ns	   1100 with-ns	 2.500 gc-%	 1.10 ratio	 1.15 ratio-high	 1.05 ratio-low
BenchmarkFigure/whole/large-2     	       1	   1000 base-ns	 12.5 gc-%	 1.45 ratio	 1.48 ratio-high	 1.44 ratio-low
BenchmarkFigure/wait-2             	       1	 2.90 p99-ratio	 3.80 p99-ratio-high	 2.80 p99-ratio-low
PASS
ok  	example.com/bench	1.0s
`

// boundsWith returns bounds that hold for the output, with some changed.
func boundsWith(changed ...bound) []bound {
	all := []bound{
		{name: "quiet", unit: "rows", most: 0, what: "rows"},
		{name: "quiet", unit: "wake-ups", most: 3, what: "wake-ups"},
		{name: "whole", unit: measure.UnitRatio, most: 2, what: "whole"},
		{name: "wait", unit: "p99-ratio", most: 4, what: "wait"},
	}
	for _, c := range changed {
		for i, b := range all {
			if b.name == c.name && b.unit == c.unit {
				all[i] = c
			}
		}
	}
	return all
}

// smallRun is the run that produced the output.
var smallRun = benchmarks{size: measure.Small, pairs: measure.MinPairs}

func parsed(t *testing.T, text string) []result {
	results, err := parse(strings.NewReader(text), 2)
	must.NoError(t, err)
	return results
}

func TestParse(t *testing.T) {
	results := parsed(t, output)
	must.Len(t, 4, results)
	must.Eq(t, "quiet", results[0].Name)
	must.Eq(t, 3, results[0].Metrics["wake-ups"])
	must.Eq(t, "whole/large", results[2].Name)
	must.Eq(t, 1.45, results[2].Metrics[measure.UnitRatio])
	must.Eq(t, 1000, results[2].Metrics[measure.UnitBase])
	must.Eq(t, 12.5, results[2].Metrics[measure.UnitGC])
}

func TestConclude(t *testing.T) {
	for _, c := range []struct {
		name   string
		bounds []bound
		code   int
		want   map[string]measure.Verdict // by case or, without one, by what
	}{
		{"all hold", boundsWith(), 0, map[string]measure.Verdict{"rows": measure.Holds, "wake-ups": measure.Holds, "small": measure.Holds, "large": measure.Holds}},
		{"a count", boundsWith(bound{name: "quiet", unit: "wake-ups", most: 2, what: "wake-ups"}), 1, map[string]measure.Verdict{"wake-ups": measure.Broken, "rows": measure.Holds}},
		{"a ratio of one case", boundsWith(bound{name: "whole", unit: measure.UnitRatio, most: 1.3, what: "whole"}), 1, map[string]measure.Verdict{"small": measure.Holds, "large": measure.Broken}},
		{"an interval around the bound", boundsWith(bound{name: "wait", unit: "p99-ratio", most: 3, what: "wait"}), 0, map[string]measure.Verdict{"wait": measure.Unclear}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := newReport(smallRun, c.bounds, parsed(t, output), false)
			must.NoError(t, err)
			must.Len(t, 5, r.Figures)
			for _, f := range r.Figures {
				name := f.Case
				if name == "" {
					name = f.What
				}
				if want, is := c.want[name]; is {
					must.Eq(t, want, f.Verdict, must.Sprint(name))
				}
			}
			must.Eq(t, c.code, min(1, r.Broken))
		})
	}
}

// Results and bounds that do not match are an error.
func TestNewReport_refuses(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		bounds         []bound
		want           string
	}{
		{name: "a metric is missing", from: "wake-ups", to: "other", want: "figure quiet reports no wake-ups"},
		{name: "a ratio without its spread", from: "1.48 ratio-high", to: "1.48 other", want: "figure whole/large reports no ratio-high"},
		{name: "not a number", from: "1.45 ratio\t", to: "NaN ratio\t", want: "figure whole/large reports no ratio"},
		{name: "a figure without a bound", from: "Figure/wait-2", to: "Figure/other-2", bounds: boundsWith()[:3], want: "figure other has no bound"},
		{name: "a bound without a figure", from: "Figure/wait-2", to: "Figure/whole/wait-2", want: "figure whole/wait reports no ratio"},
		{name: "no figures at all", from: output, to: "PASS\n", want: "no figure was measured for the bound quiet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.StrContains(t, output, c.from)
			bounds := c.bounds
			if bounds == nil {
				bounds = boundsWith()
			}
			_, err := newReport(smallRun, bounds, parsed(t, strings.Replace(output, c.from, c.to, 1)), false)
			must.ErrorContains(t, err, c.want)
		})
	}
}

// A benchmark that failed is a broken figure. The report has the other figures too.
func TestNewReport_failed(t *testing.T) {
	results := append(parsed(t, output)[1:], result{Name: "^quiet$", Failed: errors.New("exit status 1")})
	r, err := newReport(smallRun, boundsWith(), results, false)
	must.NoError(t, err)
	must.Len(t, 4, r.Figures)
	must.Eq(t, figure{What: "a benchmark failed: exit status 1", Case: "^quiet$", Verdict: measure.Broken}, r.Figures[0])
	must.Eq(t, 1, r.Broken)
}

// A negative count is broken.
func TestNewReport_negative(t *testing.T) {
	r, err := newReport(smallRun, boundsWith(), parsed(t, strings.Replace(output, "         0 rows", "      -0.5 rows", 1)), false)
	must.NoError(t, err)
	must.Eq(t, measure.Broken, r.Figures[0].Verdict)
}

// Only the first figure of a benchmark shows the other metrics. Only ratios of CPU time show the part
// of the garbage collector.
func TestTable(t *testing.T) {
	r, err := newReport(smallRun, boundsWith(bound{name: "wait", unit: "p99-ratio", most: 3, what: "wait"}), parsed(t, output), false)
	must.NoError(t, err)
	must.Eq(t, map[string]float64{"read": 24}, r.Figures[0].Notes)
	for _, f := range r.Figures[1:] {
		must.MapEmpty(t, f.Notes)
	}
	must.Eq(t, "2 %", r.Figures[2].collector())
	must.Eq(t, 1100, r.Figures[2].Ratio.With)
	must.Eq(t, "", r.Figures[4].collector())
	var table bytes.Buffer
	must.NoError(t, r.write(&table))
	must.Eq(t, 1, strings.Count(table.String(), "24 read"))
	must.StrHasPrefix(t, "Of commit unknown, size small, ", table.String())
	must.StrContains(t, table.String(), "\n| whole | small | 1.10 (1.05 to 1.15) | 2 | holds | 5 | 2 % |  |\n")
	must.StrHasSuffix(t, "\n\n5 figures: 0 broken, 1 unclear\n", table.String())

	table.Reset()
	failed := &report{Figures: []figure{{What: "a benchmark failed: one\nand another", Case: "a|b", Verdict: measure.Broken}}}
	must.NoError(t, failed.write(&table))
	must.StrContains(t, table.String(), `| a benchmark failed: one and another | a\|b |  | 0 | broken |  |  |  |`)
}

// A benchmark that fails keeps its results so far. A program that does not exist is an error.
func TestRunOne(t *testing.T) {
	program := filepath.Join(t.TempDir(), "figures")
	must.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\ncat <<'END'\n"+output+"END\nexit 1\n"), 0o700))
	results, err := benchmarks{progress: io.Discard}.runOne(t.Context(), program, "quiet")
	must.ErrorContains(t, err, "exit status 1")
	must.Len(t, 4, results)
	results, err = benchmarks{progress: io.Discard}.runOne(t.Context(), program+"-not", "quiet")
	must.Error(t, err)
	must.SliceEmpty(t, results)
}

// With -run some figures may be missing. It is an error if all are missing.
func TestNewReport_some(t *testing.T) {
	r, err := newReport(smallRun, boundsWith(), parsed(t, output)[:1], true)
	must.NoError(t, err)
	must.Len(t, 2, r.Figures)
	_, err = newReport(smallRun, boundsWith(), nil, true)
	must.ErrorContains(t, err, "nothing was measured")
}

// Each figure has one pattern, also if it has several bounds.
func TestNames(t *testing.T) {
	must.Eq(t, []string{"^quiet$", "^drains$/^free$"}, names([]bound{{name: "quiet", unit: "a"}, {name: "quiet", unit: "b"}, {name: "drains/free"}}))
	must.Eq(t, []string{"^wait$"}, names([]bound{{name: "wait", unit: "a"}, {name: "wait/long", unit: "b"}}))
	must.Eq(t, "^BenchmarkFigure$/^drains$/^free$", pattern("^drains$/^free$"))
	must.True(t, bound{unit: "rows"}.count())
	must.False(t, bound{unit: "p50-ratio"}.count())
}

// With one processor Go appends no number to a name.
func TestParse_oneProcessor(t *testing.T) {
	results, err := parse(strings.NewReader(output), 1)
	must.NoError(t, err)
	must.Eq(t, "quiet-2", results[0].Name)
}

func TestRun_refuses(t *testing.T) {
	for _, arguments := range [][]string{{"-size", "huge"}, {"more"}, {"-nothing"}, {"-counts", "-run", "idle"}, {"-pairs", "4"}, {"-pairs", "1"}, {"-pairs", "many"}} {
		var stdout, stderr bytes.Buffer
		must.Eq(t, 2, run(t.Context(), arguments, &stdout, &stderr), must.Sprint(arguments))
		must.Eq(t, "", stdout.String())
		must.NotEq(t, "", stderr.String())
	}
}

// Each bound has a description, and each figure has a bound.
func TestBounds(t *testing.T) {
	listed := map[[2]string]bool{}
	for _, b := range bounds() {
		must.NotEq(t, "", b.what)
		must.False(t, listed[[2]string{b.name, b.unit}], must.Sprint(b.name, b.unit))
		listed[[2]string{b.name, b.unit}] = true
	}
	for _, f := range figures() { // a figure without a bound would not run
		must.True(t, slices.ContainsFunc(bounds(), func(b bound) bool { return strings.Split(b.name, "/")[0] == f.name }), must.Sprint(f.name))
	}
}

// A percentile is one of the times.
func TestPercentile(t *testing.T) {
	times := []time.Duration{40, 10, 30, 20}
	for p, want := range map[float64]time.Duration{25: 10, 50: 20, 51: 30, 99: 40, 100: 40} {
		must.Eq(t, want, percentile(times, p), must.Sprint(p))
	}
	must.Eq(t, 7, percentile([]time.Duration{7}, 50))
}
