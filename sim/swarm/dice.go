package swarm

import (
	"math/rand/v2"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// dice draws from one stream. It computes with whole numbers, because floating point sums of products
// differ between machines.
type dice struct{ *rand.Rand }

// odds is true with the probability.
func (d dice) odds(p float64) bool { return d.Float64() < p }

// within draws a number within bounds.
func (d dice) within(b bounds) int { return d.between(b.least, b.most) }

// between draws a number from least to most.
func (d dice) between(least, most int) int {
	if most <= least {
		return least
	}
	return least + d.IntN(most-least+1)
}

// share draws a number of hundredths.
func (d dice) share(least, most int) float64 { return float64(d.between(least, most)) / 100 }

// span draws a time. Each doubling is equally likely, because short times find as much as long ones.
func (d dice) span(least, most time.Duration) time.Duration {
	doublings := 0
	for least<<(doublings+1) <= most {
		doublings++
	}
	low := least << d.between(0, doublings)
	high := min(most, 2*low)
	return round(low + time.Duration(d.Uint64N(uint64(high-low)+1)))
}

// at draws a time, all equally likely.
func (d dice) at(from, to time.Duration) time.Duration {
	if to <= from {
		return round(from)
	}
	return round(from + time.Duration(d.Uint64N(uint64(to-from)+1)))
}

// round rounds a time to a simple value, so that some events have equal times.
func round(t time.Duration) time.Duration {
	switch {
	case t < time.Second:
		return t.Truncate(time.Millisecond)
	case t < 10*time.Second:
		return t.Truncate(100 * time.Millisecond)
	}
	return t.Truncate(500 * time.Millisecond)
}

// ranging draws a range of times or one time. With one time, tasks that begin together end together.
func (d dice) ranging(least, most time.Duration) scenario.Range {
	a, b := d.span(least, most), d.span(least, most)
	if d.odds(0.7) {
		b = a
	}
	return scenario.Range{Min: min(a, b), Max: max(a, b)}
}

// one draws one of several.
func one[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

// some draws up to n items, each once and in any order.
func some[T any](d dice, n int, of []T) []T {
	drawn := make([]T, 0, min(n, len(of)))
	for _, i := range d.Perm(len(of)) {
		if len(drawn) == cap(drawn) {
			break
		}
		drawn = append(drawn, of[i])
	}
	return drawn
}
