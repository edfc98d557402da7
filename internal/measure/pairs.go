package measure

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/perf/benchmath"
)

// Side prepares one run of one side of a pair and returns the work to measure. The result of the
// work is garbage when the next run is prepared, in a sliced comparison when the next pair is.
type Side func() (work func(*Meter))

// Ratio is the CPU time of some work as a multiple of the baseline's.
type Ratio struct {
	// Median is the median of the pairs' ratios. Low and High are the confidence interval of the
	// median, at the level [Confidence]. Fewer than [MinPairs] pairs leave it open
	// at one side or both.
	Median float64
	Low    float64
	High   float64
	// Base and With are the medians of the two sides without the collector. GC is the part of the
	// collector in all CPU time, from 0 to 1: see [Cost]. All are zero if the ratio is not one of
	// CPU times.
	Base time.Duration
	With time.Duration
	GC   float64
}

// Compare measures the baseline and the work in turn, in so many pairs: see [PairsOf]. The order
// of the two alternates. The first pair begins with the work, so that a baseline can repeat what
// the work did.
func Compare(pairs int, base, with Side) Ratio {
	var h heap
	return ratioOf(pairs, func(i int) [2]Cost { return h.oneByOne(i, base, with) })
}

// CompareSliced is Compare for work that takes seconds, during which the speed of the machine may
// change. The sides of a pair alternate after a slice of CPU time each, at the next pause of the
// work. The longer side ends alone. Both sides are prepared before either runs, so they must share
// nothing that they change. The work runs once before the first pair, so that a baseline can
// repeat what the work did.
func CompareSliced(pairs int, base, with Side) Ratio {
	var h heap
	h.collect()
	(&Meter{heap: &h}).measure(with())
	return ratioOf(pairs, func(i int) [2]Cost { return h.byTurns(i, base, with) })
}

// slice is the CPU time after which the other side continues.
const slice = 50 * time.Millisecond

// order returns the first and the second side of a pair.
func order(pair int) [2]int { return [2][2]int{{1, 0}, {0, 1}}[pair%2] }

// oneByOne measures a pair one side after the other.
func (h *heap) oneByOne(pair int, sides ...Side) (costs [2]Cost) {
	for _, side := range order(pair) {
		work := sides[side]()
		h.clean()
		costs[side] = (&Meter{heap: h}).measure(work)
	}
	return costs
}

// byTurns measures a pair whose sides alternate.
func (h *heap) byTurns(pair int, sides ...Side) [2]Cost {
	var meters [2]*Meter
	var turns [2]func() (struct{}, bool)
	for _, side := range order(pair) {
		work, meter := sides[side](), &Meter{heap: h}
		next, stop := iter.Pull(meter.byTurns(work))
		defer stop()
		meters[side], turns[side] = meter, next
	}
	h.clean()
	defer withoutCollector()()
	for running := [2]bool{true, true}; running[0] || running[1]; {
		for _, side := range order(pair) {
			if running[side] {
				_, running[side] = turns[side]()
			}
		}
	}
	meters[0].collectRest()
	return [2]Cost{meters[0].cost, meters[1].cost}
}

// abandoned is the panic that ends paused work after the other side has failed.
type abandoned struct{}

// byTurns runs work to its end and yields after each slice.
func (m *Meter) byTurns(work func(*Meter)) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		defer func() {
			if why := recover(); why != nil && why != (abandoned{}) {
				panic(why)
			}
		}()
		m.handOver = func() {
			if !yield(struct{}{}) {
				panic(abandoned{})
			}
		}
		m.run(work)
	}
}

// ratioOf returns the ratio of so many pairs of costs.
func ratioOf(pairs int, measure func(pair int) [2]Cost) Ratio {
	var sides [2][]float64
	var ratios []float64
	var used, collector time.Duration
	for i := range pairs {
		costs := measure(i)
		for side, cost := range costs {
			used += cost.CPU + cost.GC
			collector += cost.GC
			sides[side] = append(sides[side], float64(cost.CPU))
		}
		ratios = append(ratios, float64(costs[1].CPU)/float64(max(1, costs[0].CPU)))
	}
	r := RatioOf(ratios)
	r.Base, r.With = time.Duration(summary(sides[0]).Center), time.Duration(summary(sides[1]).Center)
	r.GC = float64(collector) / float64(max(1, used))
	return r
}

// Confidence is the level of the interval from Low to High. [MinPairs] pairs are the fewest that
// reach it.
const Confidence = 0.9

// RatioOf returns the ratio of pairs that [Compare] did not measure, for example of waiting times.
func RatioOf(pairs []float64) Ratio {
	s := summary(pairs)
	return Ratio{Median: s.Center, Low: s.Lo, High: s.Hi}
}

func summary(values []float64) benchmath.Summary {
	sample := benchmath.NewSample(slices.Clone(values), &benchmath.DefaultThresholds)
	return benchmath.AssumeNothing.Summary(sample, Confidence)
}

// Verdict is the comparison of a figure with its bound.
type Verdict string

// The verdicts.
const (
	// Holds means that the figure is within its bound.
	Holds Verdict = "holds"
	// Broken means that the figure is beyond its bound.
	Broken Verdict = "broken"
	// Unclear means that the bound is inside the confidence interval. Measure more pairs, or on a
	// quieter machine.
	Unclear Verdict = "unclear"
)

// Verdict compares the confidence interval with the bound.
func (r Ratio) Verdict(bound float64) Verdict {
	switch {
	case r.High <= bound:
		return Holds
	case r.Low > bound:
		return Broken
	}
	return Unclear
}

// String returns "median (low to high)".
func (r Ratio) String() string {
	places := 2
	if r.Median < 0.1 {
		places = 4
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", places, r.Median, places, r.Low, places, r.High)
}
