package telemetry

// SetMaxGrowth sets how much a witness may grow. Call it before the first entry.
func (t *Telemetry) SetMaxGrowth(n int) { t.auditor.maxGrowth = n }
