package measure

import "testing"

// The units of [Ratio.Report]. The units of Low and High are the ratio's unit with a suffix.
const (
	UnitRatio  = "ratio"
	SuffixLow  = "-low"
	SuffixHigh = "-high"
	UnitBase   = "base-ns"
	UnitWith   = "with-ns"
	UnitGC     = "gc-%"
)

// Figure is [Compare] with the pairs of [PairsOf].
func Figure(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return Compare(PairsOf(b), base, with)
}

// FigureSliced is Figure with [CompareSliced].
func FigureSliced(b *testing.B, base, with Side) Ratio {
	b.Helper()
	return CompareSliced(PairsOf(b), base, with)
}

// Report reports the ratio as the benchmark's metrics, instead of the benchmark's own time.
func (r Ratio) Report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	r.ReportAs(b, UnitRatio)
	b.ReportMetric(float64(r.Base), UnitBase)
	b.ReportMetric(float64(r.With), UnitWith)
	b.ReportMetric(100*r.GC, UnitGC)
}

// ReportAs reports the median and the interval in a unit that ends in [UnitRatio].
func (r Ratio) ReportAs(b *testing.B, unit string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.Median, unit)
	b.ReportMetric(r.Low, unit+SuffixLow)
	b.ReportMetric(r.High, unit+SuffixHigh)
}

// Count reports a count.
func Count[N int | int64 | uint64 | float64](b *testing.B, n N, unit string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n), unit)
}
