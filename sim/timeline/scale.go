package timeline

import (
	"math/bits"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// scale maps times from zero to end to columns from zero to width. It is linear except in its
// breaks, which stand for long times without events.
type scale struct {
	end   time.Duration // above zero, a little after the last shown time
	width int           // above zero
	// breaks are in order. Each is columns wide.
	breaks  []span
	columns int
}

// span is an interval of time.
type span struct{ from, to time.Duration }

// The bounds of breaks.
const (
	maxBreaks = 6
	minBreak  = time.Minute
)

// newScale returns a scale for events at these times. It adds a break, columns wide, for a
// time without events that is at least [minBreak] and a third of the remaining time.
func newScale(end time.Duration, width int, times []time.Duration, columns int) scale {
	s := scale{end: max(1, end), width: max(1, width), columns: columns}
	times = append(slices.Clone(times), s.end)
	slices.Sort(times)
	var gaps []span
	last := time.Duration(0)
	for _, at := range times {
		if at = min(at, s.end); at-last >= minBreak {
			gaps = append(gaps, span{last, at})
		}
		last = max(last, at)
	}
	slices.SortStableFunc(gaps, func(a, b span) int { return int(min(1, max(-1, (b.to-b.from)-(a.to-a.from)))) })
	left := s.end
	for _, g := range gaps {
		if length := g.to - g.from; length < left/3 || length == left || len(s.breaks) == maxBreaks || (len(s.breaks)+1)*columns*2 > s.width {
			break
		}
		left -= g.to - g.from
		s.breaks = append(s.breaks, g)
	}
	// A margin stays visible on both sides of a break, and at the end of the line.
	for i, b := range s.breaks {
		margin := min(left/32, (b.to-b.from)/4)
		s.breaks[i] = span{b.from + margin, b.to - margin}
	}
	if margin := left/32 + 1; s.end+margin > s.end {
		s.end += margin
	}
	slices.SortFunc(s.breaks, func(a, b span) int { return int(min(1, max(-1, a.from-b.from))) })
	return s
}

// x returns the place of a time, from zero to width. A later time never has a smaller place.
func (s scale) x(at time.Duration) int {
	at = min(max(at, 0), s.end)
	shown, all, before := at, s.end, 0 // before: columns of breaks
	for _, b := range s.breaks {
		all -= b.to - b.from
		switch {
		case at >= b.to:
			shown -= b.to - b.from
			before += s.columns
		case at > b.from:
			shown -= at - b.from
			before += scaled(at-b.from, b.to-b.from, s.columns)
		}
	}
	return before + scaled(shown, all, s.width-len(s.breaks)*s.columns)
}

// scaled returns columns*part/all. part must be at most all, and all must be above zero.
func scaled(part, all time.Duration, columns int) int {
	high, low := bits.Mul64(uint64(part), uint64(columns))
	x, _ := bits.Div64(high, low, uint64(all)) // at most columns, so high < all
	return int(x)
}

// column returns the column of a time, from zero to width-1.
func (s scale) column(at time.Duration) int { return min(s.x(at), s.width-1) }

// ticks returns round times from zero on, at least gap columns apart and not in a break.
func (s scale) ticks(gap int) []time.Duration {
	ticks := []time.Duration{0}
	step := s.step(gap)
	if step == 0 {
		return ticks
	}
	for at := step; at > 0 && at <= s.end; at += step { // at > 0: it may overflow
		if i := slices.IndexFunc(s.breaks, func(b span) bool { return b.from < at && at < b.to }); i >= 0 {
			at += (s.breaks[i].to - at) / step * step // there are no ticks in a break
			continue
		}
		if s.x(at)-s.x(ticks[len(ticks)-1]) >= gap {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

// step returns the smallest round duration that is at least gap columns wide, or zero if there is
// none.
func (s scale) step(gap int) time.Duration {
	steps := [...]time.Duration{
		1, 2, 5, 10, 20, 50, 100, 200, 500, // ms
		1_000, 2_000, 5_000, 10_000, 15_000, 30_000, // seconds
		60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, // minutes
		3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, // hours
	}
	all := s.end
	for _, b := range s.breaks {
		all -= b.to - b.from
	}
	fits := func(step time.Duration) bool {
		return scaled(min(step, all), all, s.width-len(s.breaks)*s.columns) >= gap
	}
	for _, step := range steps {
		if step *= time.Millisecond; fits(step) {
			return step
		}
	}
	for step := 24 * time.Hour; step > 0 && step <= s.end; step *= 2 {
		if fits(step) {
			return step
		}
	}
	return 0
}

// rounded formats a duration rounded to three or four digits.
func rounded(d time.Duration) string {
	switch {
	case d < time.Second:
		d = d.Round(time.Millisecond)
	case d < time.Minute:
		d = d.Round(100 * time.Millisecond)
	case d < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	return scenario.DurationText(d)
}
