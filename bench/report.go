package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

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
	// Ratio is the ratio as measured, or nil of a count.
	Ratio *measure.Ratio `json:"ratio,omitempty"`
}

// report is the table.
type report struct {
	Size measure.Size `json:"size"`
	// Pairs is how many a ratio is the median of.
	Pairs   int      `json:"pairs"`
	Figures []figure `json:"figures"`
}

// judge holds the results against the bounds. A result without a bound is an error, and
// so is one that lacks what is bounded: a figure that cannot be wrong says nothing. A
// bound without a result is one too, unless only some figures were asked for.
func judge(of benchmarks, bounds []bound, results []result, some bool) (*report, error) {
	r := &report{Size: of.size, Pairs: of.pairs}
	bounded := map[string]bool{}
	for _, b := range bounds {
		before := len(r.Figures)
		for _, result := range results {
			if result.Name != b.name && !strings.HasPrefix(result.Name, b.name+"/") {
				continue
			}
			bounded[result.Name] = true
			f, err := b.judge(result)
			if err != nil {
				return nil, err
			}
			r.Figures = append(r.Figures, f)
		}
		if len(r.Figures) == before && !some {
			return nil, fmt.Errorf("nothing was measured of what is bounded as %s", b.name)
		}
	}
	for _, result := range results {
		if !bounded[result.Name] {
			return nil, fmt.Errorf("figure %s has no bound", result.Name)
		}
	}
	if len(r.Figures) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return r, nil
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
		if f.Value > b.most {
			f.Verdict = measure.Broken
		}
		return f, nil
	}
	low, errLow := value(b.unit + measure.SuffixLow)
	high, errHigh := value(b.unit + measure.SuffixHigh)
	f.Ratio = &measure.Ratio{Median: f.Value, Low: low, High: high, GC: r.Metrics[measure.UnitGC] / 100}
	f.Verdict = f.Ratio.Verdict(b.most)
	return f, errors.Join(errLow, errHigh)
}

// broken reports whether a bound is broken.
func (r *report) broken() bool {
	return slices.ContainsFunc(r.Figures, func(f figure) bool { return f.Verdict == measure.Broken })
}

func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "what (%s, %d pairs)\tcase\tfigure\tbound\tverdict\tcollector\n", r.Size, r.Pairs)
	for _, f := range r.Figures {
		value, collector := fmt.Sprintf("%.6g %s", f.Value, f.Unit), ""
		if f.Ratio != nil {
			value, collector = f.Ratio.String(), fmt.Sprintf("%.0f %%", 100*f.Ratio.GC)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%g\t%s\t%s\n", f.What, f.Case, value, f.Bound, f.Verdict, collector)
	}
	return t.Flush()
}

func (r *report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}
