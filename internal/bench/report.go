package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figure is one measured figure, compared with its bound.
type figure struct {
	What    string
	Case    string
	Unit    string
	Value   float64
	Bound   float64
	Verdict measure.Verdict
	// Ratio is the measured ratio. It is nil for a count and for a benchmark that failed.
	Ratio *measure.Ratio
	// Notes are the other metrics of the benchmark, by unit. They belong to its first figure.
	Notes map[string]float64
}

// report is the result of one run.
type report struct {
	Size measure.Size
	// Pairs is the number of pairs of a ratio.
	Pairs int
	// Commit is the measured commit, or empty if it is unknown.
	Commit string
	// Go is the version of Go, Processors is the number of processors that were used.
	Go         string
	Processors int
	// Unclear and Broken are the numbers of figures with these verdicts.
	Unclear int
	Broken  int
	Figures []figure
}

// newReport compares the results with the bounds. A benchmark that failed is a broken figure. It is an
// error if a result has no bound or lacks its bounded metric. It is also an error if a bound has no
// result, unless some is set or a benchmark failed.
func newReport(run benchmarks, bounds []bound, results []result, some bool) (*report, error) {
	r := &report{Size: run.size, Pairs: run.pairs, Commit: run.commit, Go: runtime.Version(), Processors: runtime.GOMAXPROCS(0)}
	for _, result := range results {
		if result.Failed != nil {
			some = true
			r.add(figure{What: "a benchmark failed: " + result.Failed.Error(), Case: result.Name, Verdict: measure.Broken})
		}
	}
	bounded := map[string]bool{}
	for _, b := range bounds {
		measured := false
		for _, result := range results {
			if result.Failed != nil || !b.bounds(result) {
				continue
			}
			f, err := b.compare(result)
			if err != nil {
				return nil, err
			}
			if !bounded[result.Name] {
				f.Notes = notes(bounds, result)
			}
			bounded[result.Name], measured = true, true
			r.add(f)
		}
		if !measured && !some {
			return nil, fmt.Errorf("no figure was measured for the bound %s", b.name)
		}
	}
	for _, result := range results {
		if result.Failed == nil && !bounded[result.Name] {
			return nil, fmt.Errorf("figure %s has no bound", result.Name)
		}
	}
	if len(r.Figures) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return r, nil
}

func (r *report) add(f figure) {
	r.Figures = append(r.Figures, f)
	switch f.Verdict {
	case measure.Unclear:
		r.Unclear++
	case measure.Broken:
		r.Broken++
	}
}

// bounds reports whether the bound applies to the result.
func (b bound) bounds(r result) bool {
	return r.Name == b.name || strings.HasPrefix(r.Name, b.name+"/")
}

func (b bound) compare(r result) (figure, error) {
	f := figure{What: b.what, Case: strings.TrimPrefix(strings.TrimPrefix(r.Name, b.name), "/"), Unit: b.unit, Bound: b.most}
	value := func(unit string) (float64, error) {
		v, is := r.Metrics[unit]
		if !is || math.IsNaN(v) {
			return 0, fmt.Errorf("figure %s reports no %s", r.Name, unit)
		}
		return v, nil
	}
	var err error
	if f.Value, err = value(b.unit); err != nil {
		return f, err
	}
	if b.count() {
		f.Verdict = measure.Holds
		// A negative difference means that the count it is compared with is wrong.
		if f.Value > b.most || f.Value < 0 {
			f.Verdict = measure.Broken
		}
		return f, nil
	}
	low, errLow := value(b.unit + measure.SuffixLow)
	high, errHigh := value(b.unit + measure.SuffixHigh)
	f.Ratio = &measure.Ratio{Median: f.Value, Low: low, High: high}
	if b.unit == measure.UnitRatio { // the other ratios are not of CPU time
		f.Ratio.Base, f.Ratio.With = time.Duration(r.Metrics[measure.UnitBase]), time.Duration(r.Metrics[measure.UnitWith])
		f.Ratio.GC = r.Metrics[measure.UnitGC] / 100
	}
	f.Verdict = f.Ratio.Verdict(b.most)
	return f, errors.Join(errLow, errHigh)
}

// notes returns the metrics of a result that belong to no bound.
func notes(bounds []bound, r result) map[string]float64 {
	notes := maps.Clone(r.Metrics)
	for _, unit := range []string{"ns/op", measure.UnitBase, measure.UnitWith, measure.UnitGC} {
		delete(notes, unit)
	}
	for _, b := range bounds {
		if b.bounds(r) {
			for _, suffix := range []string{"", measure.SuffixLow, measure.SuffixHigh} {
				delete(notes, b.unit+suffix)
			}
		}
	}
	if len(notes) == 0 {
		return nil
	}
	return notes
}

// write writes the report as a table in Markdown, with its commit, size, Go version and number of processors,
// and the numbers of its verdicts.
func (r *report) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Of commit %s, size %s, %s, GOMAXPROCS=%d.\n\n", cmp.Or(r.Commit, "unknown"), r.Size, r.Go, r.Processors)
	b.WriteString("| what | case | figure | bound | verdict | pairs | collector | other metrics |\n|---|---|---|---|---|---|---|---|\n")
	escape := strings.NewReplacer("|", `\|`, "\n", " ") // a benchmark that failed may have "|" in its name
	for _, f := range r.Figures {
		pairs := ""
		if f.Ratio != nil && f.Ratio.Low != f.Ratio.High { // otherwise it was the same in all pairs
			pairs = strconv.Itoa(r.Pairs)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %g | %s | %s | %s | %s |\n", escape.Replace(f.What), escape.Replace(f.Case), f.value(), f.Bound, f.Verdict, pairs, f.collector(), f.otherMetrics())
	}
	fmt.Fprintf(&b, "\n%d figures: %d broken, %d unclear\n", len(r.Figures), r.Broken, r.Unclear)
	_, err := io.WriteString(w, b.String())
	return err
}

// value returns the figure as text, or an empty text for a benchmark that failed.
func (f figure) value() string {
	switch {
	case f.Ratio != nil:
		return f.Ratio.String()
	case f.Unit == "":
		return ""
	}
	return fmt.Sprintf("%.6g %s", f.Value, f.Unit)
}

// collector returns the garbage collector's part of the CPU time, or an empty text for a figure that is
// not of CPU time.
func (f figure) collector() string {
	if f.Ratio == nil || f.Ratio.Base == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*f.Ratio.GC)
}

func (f figure) otherMetrics() string {
	var all []string
	for _, unit := range slices.Sorted(maps.Keys(f.Notes)) {
		all = append(all, fmt.Sprintf("%.6g %s", f.Notes[unit], unit))
	}
	return strings.Join(all, ", ")
}
