//race:skip it measures
package measure_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// spin is work that the compiler cannot remove.
func spin(n int) measure.Side {
	return func() func(*measure.Meter) {
		return func(*measure.Meter) {
			x := uint64(1)
			for range n {
				x = x*6364136223846793005 + 1
			}
			if x == 0 {
				panic("not reached")
			}
		}
	}
}

// Three times the work takes about three times the CPU time.
func TestCompare(t *testing.T) {
	r := measure.Compare(measure.MinPairs, spin(20_000_000), spin(60_000_000))
	must.Between(t, 1.5, r.Median, 6)
	must.LessEq(t, r.Median, r.Low)
	must.GreaterEq(t, r.Median, r.High)
	must.Between(t, 0, r.GC, 1)
}

// All allocations outside of pauses count.
func TestMeasure_bytes(t *testing.T) {
	var keep [][]byte
	cost := measure.Measure(func(m *measure.Meter) {
		for range 100 {
			keep = append(keep, make([]byte, 1<<16))
			m.Pause()
			keep[0] = make([]byte, 1<<24)
			m.Resume()
		}
	})
	must.Len(t, 100, keep)
	must.Less(t, 1<<24, cost.Bytes)
	must.GreaterEq(t, 100<<16, cost.Bytes)
}

// Bytes are exact. A meter counts pages. The runtime's own goroutines may allocate during one run, but
// not during each of ten.
func TestBytes(t *testing.T) {
	var keep [1000]*[16]byte
	least := uint64(math.MaxUint64)
	for range 10 {
		least = min(least, measure.Bytes(func() {
			for i := range keep {
				keep[i] = new([16]byte)
			}
		}))
	}
	must.Eq(t, 16_000, least)
	must.NotNil(t, keep[999])
}

// The time includes the collector.
func TestCPU(t *testing.T) {
	idle := measure.CPU(func() {})
	busy := measure.CPU(func() {
		spin(20_000_000)()(nil)
		runtime.GC()
	})
	must.Positive(t, busy)
	must.Less(t, busy, idle)
}

func TestRatioOf(t *testing.T) {
	must.Eq(t, measure.Ratio{Low: 1, Median: 3, High: 5}, measure.RatioOf([]float64{5, 3, 1, 2, 4}))
	must.Eq(t, measure.Ratio{Low: 2, Median: 4.5, High: 7}, measure.RatioOf([]float64{1, 2, 3, 4, 5, 6, 7, 8}))
	must.True(t, math.IsInf(measure.RatioOf([]float64{1, 2, 3, 4}).Low, -1)) // fewer than MinPairs
}

func TestRatio_Verdict(t *testing.T) {
	for _, c := range []struct {
		low, median, high, bound float64
		want                     measure.Verdict
	}{
		{1.0, 1.1, 1.2, 2, measure.Holds},
		{1.7, 1.8, 2.0, 2, measure.Holds},
		{1.2, 1.9, 2.1, 2, measure.Unclear},
		{2.0, 2.1, 2.2, 2, measure.Unclear},
		{2.1, 2.2, 2.3, 2, measure.Broken},
		{2, 2, 2, 2, measure.Holds},
	} {
		r := measure.Ratio{Low: c.low, Median: c.median, High: c.high}
		must.Eq(t, c.want, r.Verdict(c.bound), must.Sprintf("%s against %.2f", r, c.bound))
	}
}

// turns is a side of n turns that are longer than a slice. It logs each turn.
func turns(log *[]string, name string, n int) measure.Side {
	return func() func(*measure.Meter) {
		work := spin(100_000_000)()
		return func(m *measure.Meter) {
			for range n {
				work(m)
				m.Pause()
				*log = append(*log, name)
				m.Resume()
			}
		}
	}
}

// The sides of a pair alternate, and the longer side ends alone. The work has run once before.
func TestCompareSliced(t *testing.T) {
	var log []string
	r := measure.CompareSliced(3, turns(&log, "base", 2), turns(&log, "with", 4))
	withFirst := []string{"with", "base", "with", "base", "with", "with"}
	must.Eq(t, slices.Concat(
		[]string{"with", "with", "with", "with"},
		withFirst,
		[]string{"base", "with", "base", "with", "with", "with"},
		withFirst,
	), log)
	must.Between(t, 1.2, r.Median, 4)
}

// After a panic of one side the other side ends too, and the caller gets the panic.
func TestCompareSliced_failure(t *testing.T) {
	var log []string
	failing := func() func(*measure.Meter) {
		work := spin(100_000_000)()
		return func(m *measure.Meter) {
			work(m)
			m.Pause()
			panic("failed")
		}
	}
	func() {
		defer func() { must.Eq(t, "failed", recover()) }()
		measure.CompareSliced(3, failing, turns(&log, "with", 4))
	}()
	must.Eq(t, []string{"with", "with", "with", "with", "with"}, log)
}

// The zero meter may be paused.
func TestMeter_zero(*testing.T) {
	var m measure.Meter
	m.Resume()
	m.Pause()
}
