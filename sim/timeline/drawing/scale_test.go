package drawing_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

// The place of a time never decreases for later times, all places are on the line, and ticks
// keep their distance.
func TestScale_keepsOrder(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	broken := 0
	for range 2000 {
		end := time.Duration(rng.Int64N(1 << (1 + rng.IntN(62))))
		times := make([]time.Duration, rng.IntN(8))
		for i := range times {
			times[i] = time.Duration(rng.Int64N(int64(end) + 1))
		}
		width := 1 + rng.IntN(1000)
		s := drawing.NewScale(end, width, times, 3)
		broken += len(s.Breaks)
		probes := slices.Concat(times, []time.Duration{-1, 0, end / 3, end / 2, end, 1<<63 - 1})
		slices.Sort(probes)
		last := 0
		for _, at := range probes {
			x := s.X(at)
			must.Between(t, last, x, width)
			must.Between(t, 0, s.Column(at), width-1)
			last = x
		}
		gap := 1 + rng.IntN(80)
		ticks := s.Ticks(gap)
		must.Zero(t, ticks[0])
		for i, at := range ticks[1:] {
			must.GreaterEq(t, gap, s.X(at)-s.X(ticks[i]))
			for _, b := range s.Breaks {
				must.False(t, b.From < at && at < b.To, must.Sprint("a tick in a break"))
			}
		}
	}
	must.Greater(t, 1000, broken)
}

// A minute of events, an hour of waiting, and a minute of events give two minutes and a break.
func TestScale_breaks(t *testing.T) {
	t.Parallel()
	var times []time.Duration
	for at := range 7 {
		times = append(times, time.Duration(at)*10*time.Second, time.Hour+time.Duration(at)*10*time.Second)
	}
	s := drawing.NewScale(time.Hour+time.Minute, 100, times, 4)
	must.SliceLen(t, 1, s.Breaks)
	must.Between(t, 40, s.X(time.Minute), 50)
	must.Between(t, 48, s.X(time.Hour), 58)
	must.Between(t, 90, s.X(time.Hour+time.Minute), 100)

	unbroken := drawing.NewScale(time.Hour, 100, []time.Duration{0, 15 * time.Minute, 30 * time.Minute, 45 * time.Minute}, 4)
	must.SliceEmpty(t, unbroken.Breaks)
	short := drawing.NewScale(time.Minute, 100, []time.Duration{0, time.Second, time.Minute}, 4)
	must.SliceEmpty(t, short.Breaks, must.Sprint("a minute has no break"))
}

func TestRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                           "0s",
		1500 * time.Microsecond:     "2ms",
		41_260 * time.Millisecond:   "41.3s",
		2 * time.Minute:             "2m",
		90*time.Second + 400*1e6:    "1m30s",
		10 * time.Second:            "10s",
		time.Hour:                   "1h",
		time.Hour + 30*time.Minute:  "1h30m",
		time.Hour + 10*time.Second:  "1h",
		20*time.Hour + 20*time.Hour: "40h",
	} {
		must.Eq(t, want, drawing.Rounded(d))
	}
}
