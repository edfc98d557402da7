package measure

import "testing"

// The units in which [Ratio.Report] reports.
const (
	UnitRatio = "ratio"
	UnitLow   = "ratio-low"
	UnitHigh  = "ratio-high"
	UnitBase  = "base-ns"
	UnitGC    = "gc-%"
)

// Report reports the ratio as the benchmark's metrics, in place of the time that the
// benchmark as a whole took.
func (r Ratio) Report(b *testing.B) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(r.Median, UnitRatio)
	b.ReportMetric(r.Low, UnitLow)
	b.ReportMetric(r.High, UnitHigh)
	b.ReportMetric(float64(r.Base), UnitBase)
	b.ReportMetric(100*r.GC, UnitGC)
}

// Count reports a count.
func Count[N int | int64 | uint64 | float64](b *testing.B, n N, unit string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(n), unit)
}
