package measure_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/measure"
)

// spin is work that the compiler cannot leave out.
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

// Three times the work takes about three times the CPU.
func TestCompare(t *testing.T) {
	r := measure.Compare(measure.MinPairs, spin(20_000_000), spin(60_000_000))
	must.Between(t, 1.5, r.Median, 6)
	must.LessEq(t, r.Median, r.Low)
	must.GreaterEq(t, r.Median, r.High)
	must.Between(t, 0, r.GC, 1)
}

// What is allocated is counted, whatever the collector does meanwhile.
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

// What is profiled is the work, told apart from its pauses, once.
func TestProfile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cpu")
	ran := 0
	with := func() func(*measure.Meter) {
		work := spin(20_000_000)()
		return func(m *measure.Meter) {
			ran++
			work(m)
			m.Pause()
			m.Resume()
		}
	}
	must.NoError(t, measure.Profile(name, with))
	must.Eq(t, 1, ran)
	written, err := os.ReadFile(name)
	must.NoError(t, err)
	must.SliceNotEmpty(t, written)
	must.ErrorIs(t, measure.Profile(name, with), fs.ErrExist)
	must.Eq(t, 1, ran)
}

// Bytes are exact, where the meter's are to the page.
func TestBytes(t *testing.T) {
	var keep [1000]*[16]byte
	must.Eq(t, 16_000, measure.Bytes(func() {
		for i := range keep {
			keep[i] = new([16]byte)
		}
	}))
	must.NotNil(t, keep[999])
}

func TestRatioOf(t *testing.T) {
	must.Eq(t, measure.Ratio{Low: 2, Median: 3, High: 4}, measure.RatioOf([]float64{5, 3, 1, 2, 4}))
}

func TestRatio_Verdict(t *testing.T) {
	for _, c := range []struct {
		low, median, high, bound float64
		want                     measure.Verdict
	}{
		{1.0, 1.1, 1.2, 2, measure.Holds},
		{1.7, 1.8, 1.95, 2, measure.Unclear}, // wider than the distance from the bound
		{1.2, 1.9, 2.4, 2, measure.Unclear},
		{1.9, 2.1, 2.2, 2, measure.Unclear},
		{2.1, 2.2, 2.3, 2, measure.Broken},
		{2, 2, 2, 2, measure.Holds},
	} {
		r := measure.Ratio{Low: c.low, Median: c.median, High: c.high}
		must.Eq(t, c.want, r.Verdict(c.bound), must.Sprintf("%s against %.2f", r, c.bound))
	}
}

// turns is a side of so many turns, each longer than a slice, which says when it had them.
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

// The sides of a pair run by turns, and each is charged with its own; who has more to do goes
// on alone. Before them the work has run once.
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

// When one side fails the other does not go on, and the failure is heard of.
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

// A meter that nobody reads may be paused too.
func TestMeter_zero(t *testing.T) {
	var m measure.Meter
	m.Resume()
	m.Pause()
}
