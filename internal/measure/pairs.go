package measure

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// Side makes ready one run of one side of a pair, and returns the work that is
// measured. What work leaves behind is garbage when the next is made ready; by turns, when
// the next pair is.
type Side func() (work func(*Meter))

// Ratio is the CPU of some work as a multiple of the baseline's.
type Ratio struct {
	// Median is the median of the pairs' ratios, Low and High are those below and
	// above it: half of the pairs lie between them. The extremes are left out, since one
	// pair that a neighbour of the machine struck does not move the median either.
	Median float64 `json:"median"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	// Base and With are the medians of the two sides without the collector, GC is the
	// collector's share of all that was used, from 0 to 1: see [Cost]. All are zero where it
	// is not CPU that was compared.
	Base time.Duration `json:"base_ns,omitempty"`
	With time.Duration `json:"with_ns,omitempty"`
	GC   float64       `json:"gc,omitempty"`
}

// Compare measures the baseline and the work in turn, so many times: see [PairsOf].
// Which of them comes first changes from pair to pair; in the first it is the work, so
// that a baseline can repeat what it did.
func Compare(pairs int, base, with Side) Ratio {
	var h heap
	return ratioOf(pairs, func(i int) [2]Cost { return h.oneByOne(i, base, with) })
}

// CompareSliced is Compare of work that takes seconds, in which a machine changes its mind:
// the sides of a pair run by turns, a slice of their CPU at a time, which end where the work
// pauses; who has more to do goes on alone. Both are made ready before either runs, so they
// share nothing that they write to. The work is run once before, so that a baseline can
// repeat what it did.
func CompareSliced(pairs int, base, with Side) Ratio {
	var h heap
	h.collect()
	(&Meter{heap: &h}).measure(with())
	return ratioOf(pairs, func(i int) [2]Cost { return h.byTurns(i, base, with) })
}

// slice is how much CPU a side uses before it is the other's turn.
const slice = 50 * time.Millisecond

// order is which side comes first in a pair, and which second.
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

// byTurns measures a pair by turns.
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

// abandoned is what work that is in a pause ends with when the other side has failed.
type abandoned struct{}

// byTurns runs work until it is over, and yields whenever it is the other side's turn.
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

// ratioOf returns the ratio of so many pairs of what the baseline and the work took.
func ratioOf(pairs int, measure func(pair int) [2]Cost) Ratio {
	var sides [2][]time.Duration
	var ratios []float64
	var used, collector time.Duration
	for i := range pairs {
		costs := measure(i)
		for side, cost := range costs {
			used += cost.CPU + cost.GC
			collector += cost.GC
			sides[side] = append(sides[side], cost.CPU)
		}
		ratios = append(ratios, float64(costs[1].CPU)/float64(max(1, costs[0].CPU)))
	}
	r := RatioOf(ratios)
	r.Base, r.With, r.GC = median(sides[0]), median(sides[1]), float64(collector)/float64(max(1, used))
	return r
}

// RatioOf returns the ratio of pairs that were not measured by [Compare]: of times that
// were waited, say. There are [MinPairs] or more, and an odd number of them.
func RatioOf(pairs []float64) Ratio {
	sorted := slices.Sorted(slices.Values(pairs))
	middle := len(sorted) / 2
	return Ratio{Median: sorted[middle], Low: sorted[middle-1], High: sorted[middle+1]}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// Verdict is what a figure says of its bound.
type Verdict string

// The verdicts.
const (
	// Holds: the figure is within its bound.
	Holds Verdict = "holds"
	// Broken: it is not.
	Broken Verdict = "broken"
	// Unclear: the pairs spread too wide to tell; measure on a quieter machine.
	Unclear Verdict = "unclear"
)

// Verdict says whether the ratio is at most the bound. It is unclear if the pairs
// around the median spread wider than the median's distance from the bound.
func (r Ratio) Verdict(bound float64) Verdict {
	switch margin := bound - r.Median; {
	case r.High-r.Low > math.Abs(margin):
		return Unclear
	case margin < 0:
		return Broken
	}
	return Holds
}

// String returns the ratio as it is read.
func (r Ratio) String() string {
	places := 2
	if r.Median < 0.1 {
		places = 4
	}
	return fmt.Sprintf("%.*f (%.*f to %.*f)", places, r.Median, places, r.Low, places, r.High)
}
