package drawing

import (
	"math/bits"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Scale maps times from zero to end to columns from zero to width. It is linear except in its
// breaks, which stand for long times without events.
type Scale struct {
	End   time.Duration // above zero, a little after the last shown time
	Width int           // above zero
	// Breaks are in order. Each is columns wide.
	Breaks  []Span
	columns int
}

// Span is an interval of time.
type Span struct{ From, To time.Duration }

// The bounds of breaks.
const (
	maxBreaks = 6
	minBreak  = time.Minute
)

// NewScale returns a scale for events at these times. It adds a break, columns wide, for a
// time without events that is at least [minBreak] and a third of the remaining time.
func NewScale(end time.Duration, width int, times []time.Duration, columns int) Scale {
	s := Scale{End: max(1, end), Width: max(1, width), columns: columns}
	times = append(slices.Clone(times), s.End)
	slices.Sort(times)
	var gaps []Span
	last := time.Duration(0)
	for _, at := range times {
		if at = min(at, s.End); at-last >= minBreak {
			gaps = append(gaps, Span{last, at})
		}
		last = max(last, at)
	}
	slices.SortStableFunc(gaps, func(a, b Span) int { return int(min(1, max(-1, (b.To-b.From)-(a.To-a.From)))) })
	left := s.End
	for _, g := range gaps {
		if length := g.To - g.From; length < left/3 || length == left || len(s.Breaks) == maxBreaks || (len(s.Breaks)+1)*columns*2 > s.Width {
			break
		}
		left -= g.To - g.From
		s.Breaks = append(s.Breaks, g)
	}
	// A margin stays visible on both sides of a break, and at the end of the line.
	for i, b := range s.Breaks {
		margin := min(left/32, (b.To-b.From)/4)
		s.Breaks[i] = Span{b.From + margin, b.To - margin}
	}
	if margin := left/32 + 1; s.End+margin > s.End {
		s.End += margin
	}
	slices.SortFunc(s.Breaks, func(a, b Span) int { return int(min(1, max(-1, a.From-b.From))) })
	return s
}

// X returns the place of a time, from zero to width. A later time never has a smaller place.
func (s Scale) X(at time.Duration) int {
	at = min(max(at, 0), s.End)
	shown, all, before := at, s.End, 0 // before: columns of breaks
	for _, b := range s.Breaks {
		all -= b.To - b.From
		switch {
		case at >= b.To:
			shown -= b.To - b.From
			before += s.columns
		case at > b.From:
			shown -= at - b.From
			before += scaled(at-b.From, b.To-b.From, s.columns)
		}
	}
	return before + scaled(shown, all, s.Width-len(s.Breaks)*s.columns)
}

// scaled returns columns*part/all. part must be at most all, and all must be above zero.
func scaled(part, all time.Duration, columns int) int {
	high, low := bits.Mul64(uint64(part), uint64(columns))
	x, _ := bits.Div64(high, low, uint64(all)) // at most columns, so high < all
	return int(x)
}

// Column returns the column of a time, from zero to width-1.
func (s Scale) Column(at time.Duration) int { return min(s.X(at), s.Width-1) }

// Ticks returns round times from zero on, at least gap columns apart and not in a break.
func (s Scale) Ticks(gap int) []time.Duration {
	ticks := []time.Duration{0}
	step := s.step(gap)
	if step == 0 {
		return ticks
	}
	for at := step; at > 0 && at <= s.End; at += step { // at > 0: it may overflow
		if i := slices.IndexFunc(s.Breaks, func(b Span) bool { return b.From < at && at < b.To }); i >= 0 {
			at += (s.Breaks[i].To - at) / step * step // there are no ticks in a break
			continue
		}
		if s.X(at)-s.X(ticks[len(ticks)-1]) >= gap {
			ticks = append(ticks, at)
		}
	}
	return ticks
}

// step returns the smallest round duration that is at least gap columns wide, or zero if there is
// none.
func (s Scale) step(gap int) time.Duration {
	steps := [...]time.Duration{
		1, 2, 5, 10, 20, 50, 100, 200, 500, // ms
		1_000, 2_000, 5_000, 10_000, 15_000, 30_000, // seconds
		60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, // minutes
		3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, // hours
	}
	all := s.End
	for _, b := range s.Breaks {
		all -= b.To - b.From
	}
	fits := func(step time.Duration) bool {
		return scaled(min(step, all), all, s.Width-len(s.Breaks)*s.columns) >= gap
	}
	for _, step := range steps {
		if step *= time.Millisecond; fits(step) {
			return step
		}
	}
	for step := 24 * time.Hour; step > 0 && step <= s.End; step *= 2 {
		if fits(step) {
			return step
		}
	}
	return 0
}

// Rounded formats a duration rounded to three or four digits.
func Rounded(d time.Duration) string {
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
