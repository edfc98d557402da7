//race:skip one goroutine
package learned_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/learned"
)

// edges are the ends of all buckets but the last one, from the definition: each is 3/2 of the one before,
// without the fraction of a nanosecond.
func edges() (edges []time.Duration) {
	for edge := 100 * time.Millisecond; len(edges) < learned.Buckets-1; edge += edge / 2 {
		edges = append(edges, edge)
	}
	return edges
}

func TestHistogram_edges(t *testing.T) {
	t.Parallel()
	all := edges()
	must.Eq(t, 5*time.Hour+19*time.Minute+35*time.Second, all[len(all)-1].Truncate(time.Second))
	for i, edge := range all {
		for at, want := range map[time.Duration]int{edge - 1: i, edge: i + 1} {
			var h learned.Histogram
			h.Add(at)
			must.Eq(t, 1, h[want], must.Sprint(at))
			must.Eq(t, 1, h.Total())
			begin, end := learned.Bucket(at)
			must.True(t, begin <= at && at < end, must.Sprint(at))
			must.True(t, begin == edge || end == edge, must.Sprint(at))
		}
	}
	for at, want := range map[time.Duration]int{-time.Hour: 0, 0: 0, 1<<63 - 1: learned.Buckets - 1, -1 << 63: 0} {
		var h learned.Histogram
		h.Add(at)
		must.Eq(t, 1, h[want], must.Sprint(at))
	}
}

// A full counter halves all counters. Rare durations are forgotten in the end.
func TestHistogram_full(t *testing.T) {
	t.Parallel()
	var h learned.Histogram
	h.Add(time.Hour)
	for range 3 {
		h.Add(time.Minute)
	}
	for range 1<<16 - 1 {
		h.Add(time.Second)
	}
	must.Eq(t, 1<<16-1+4, h.Total())
	h.Add(time.Second)
	must.Eq(t, (1<<16-1)/2+1+1, h.Total(), must.Sprint("an hour is forgotten, a minute counts once"))
	must.Between(t, time.Second*2/3, h.Median(), time.Second*3/2)
}

func TestHistogram_Median(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   []time.Duration
		want time.Duration
	}{
		"empty":     {nil, 0},
		"one":       {[]time.Duration{time.Millisecond}, 50 * time.Millisecond},
		"two":       {[]time.Duration{0, 120 * time.Millisecond}, 50 * time.Millisecond},
		"three":     {[]time.Duration{0, 120 * time.Millisecond, 130 * time.Millisecond}, 112500 * time.Microsecond},
		"unbounded": {[]time.Duration{1 << 62}, (edges()[learned.Buckets-2] * 5 / 4).Truncate(time.Microsecond)},
	} {
		var h learned.Histogram
		for _, d := range c.of {
			h.Add(d)
		}
		must.Eq(t, c.want, h.Median().Truncate(time.Microsecond), must.Sprint(name))
	}
}

// Draws follow the weights: of 4 durations, 3 are below 100 ms and one is between 2/3 h and 1 h.
func TestHistogram_Draw(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var h learned.Histogram
	must.Zero(t, h.Draw(r), must.Sprint("it is empty"))
	for _, d := range []time.Duration{0, time.Millisecond, 99 * time.Millisecond, 45 * time.Minute} {
		h.Add(d)
	}
	short, sum := 0, time.Duration(0)
	const draws = 10_000
	for range draws {
		d := h.Draw(r)
		if d < 100*time.Millisecond {
			short++
			sum += d
			continue
		}
		must.Eq(t, bucket(45*time.Minute), bucket(d))
	}
	must.Between(t, draws*73/100, short, draws*77/100)
	must.Between(t, 48*time.Millisecond, sum/time.Duration(short), 52*time.Millisecond)
}

// bucket is the bucket of a duration, by a search in the list of edges.
func bucket(d time.Duration) int {
	i, found := slices.BinarySearch(edges(), d)
	if found {
		i++
	}
	return i
}

// A twin keeps all durations, sorted, until the first counter is full.
func FuzzHistogram(f *testing.F) {
	f.Add([]byte{}, uint64(1))
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255}, uint64(2))
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		var h learned.Histogram
		var twin []time.Duration
		for ; len(text) >= 8 && len(twin) < 1000; text = text[8:] {
			d := time.Duration(binary.LittleEndian.Uint64(text)) >> (text[0] % 64)
			h.Add(d)
			twin = append(twin, max(0, d))
		}
		slices.Sort(twin)
		must.Eq(t, len(twin), h.Total())
		for i, n := range h {
			must.Eq(t, count(twin, i), int(n))
		}
		drawn := h.Draw(rand.New(rand.NewPCG(seed, seed)))
		if len(twin) == 0 {
			must.Zero(t, h.Median())
			must.Zero(t, drawn)
			return
		}
		must.Eq(t, bucket(twin[(len(twin)-1)/2]), bucket(h.Median()))
		must.Positive(t, h[bucket(drawn)])
	})
}

// count is how many durations a bucket has.
func count(durations []time.Duration, at int) (count int) {
	for _, d := range durations {
		if bucket(d) == at {
			count++
		}
	}
	return count
}
