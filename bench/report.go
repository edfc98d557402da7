package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// figure is one measured figure against its bound.
type figure struct {
	What    string          `json:"what"`
	Case    string          `json:"case"`
	Unit    string          `json:"unit"`
	Value   float64         `json:"value"`
	Bound   float64         `json:"bound"`
	Verdict measure.Verdict `json:"verdict"`
	// Ratio is the ratio as measured, or nil of a count, and of a benchmark that failed.
	Ratio *measure.Ratio `json:"ratio,omitempty"`
	// Notes are what the benchmark reports besides, by unit: of several figures of one
	// benchmark the first has them.
	Notes map[string]float64 `json:"notes,omitempty"`
}

// report is the table.
type report struct {
	Size measure.Size `json:"size"`
	// Pairs is how many a ratio is the median of.
	Pairs int `json:"pairs"`
	// Unclear and Broken are how many figures are.
	Unclear int      `json:"unclear"`
	Broken  int      `json:"broken"`
	Figures []figure `json:"figures"`
}

// judge holds the results against the bounds. A benchmark that failed breaks them. A
// result without a bound is an error, and so is one that lacks what is bounded: a figure
// that cannot be wrong says nothing. A bound without a result is one too, unless only
// some figures were asked for, or something failed.
func judge(of benchmarks, bounds []bound, results []result, some bool) (*report, error) {
	r := &report{Size: of.size, Pairs: of.pairs}
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
			f, err := b.judge(result)
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
			return nil, fmt.Errorf("nothing was measured of what is bounded as %s", b.name)
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

// bounds reports whether the bound is one of the result's.
func (b bound) bounds(r result) bool {
	return r.Name == b.name || strings.HasPrefix(r.Name, b.name+"/")
}

func (b bound) judge(r result) (figure, error) {
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
		// Less than nothing was not counted: what it was compared with is wrong.
		if f.Value > b.most || f.Value < 0 {
			f.Verdict = measure.Broken
		}
		return f, nil
	}
	low, errLow := value(b.unit + measure.SuffixLow)
	high, errHigh := value(b.unit + measure.SuffixHigh)
	f.Ratio = &measure.Ratio{Median: f.Value, Low: low, High: high}
	if b.unit == measure.UnitRatio { // the others are not of CPU
		f.Ratio.Base, f.Ratio.With = time.Duration(r.Metrics[measure.UnitBase]), time.Duration(r.Metrics[measure.UnitWith])
		f.Ratio.GC = r.Metrics[measure.UnitGC] / 100
	}
	f.Verdict = f.Ratio.Verdict(b.most)
	return f, errors.Join(errLow, errHigh)
}

// notes are the metrics of a result that are neither bounded nor part of what is.
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

// fails reports whether the report is to fail whoever asked for it: because a bound is
// broken or, with countsOnly, a bound of a count or a benchmark.
func (r *report) fails(countsOnly bool) bool {
	return slices.ContainsFunc(r.Figures, func(f figure) bool {
		return f.Verdict == measure.Broken && (f.Ratio == nil || !countsOnly)
	})
}

func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "what (%s, %d pairs)\tcase\tfigure\tbound\tverdict\tcollector\tbesides\n", r.Size, r.Pairs)
	for _, f := range r.Figures {
		fmt.Fprintf(t, "%s\t%s\t%s\t%g\t%s\t%s\t%s\n", f.What, f.Case, f.value(), f.Bound, f.Verdict, f.collector(), f.besides())
	}
	fmt.Fprintf(t, "%d figures: %d broken, %d unclear\n", len(r.Figures), r.Broken, r.Unclear)
	return t.Flush()
}

// value is the figure as it is read; that of a benchmark that failed is empty.
func (f figure) value() string {
	switch {
	case f.Ratio != nil:
		return f.Ratio.String()
	case f.Unit == "":
		return ""
	}
	return fmt.Sprintf("%.6g %s", f.Value, f.Unit)
}

// collector is its share, or empty where nothing was measured of it.
func (f figure) collector() string {
	if f.Ratio == nil || f.Ratio.Base == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*f.Ratio.GC)
}

func (f figure) besides() string {
	var all []string
	for _, unit := range slices.Sorted(maps.Keys(f.Notes)) {
		all = append(all, fmt.Sprintf("%.6g %s", f.Notes[unit], unit))
	}
	return strings.Join(all, ", ")
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
