package telemetry

// SetRemembers sets how much more than at its beginning a witness may remember. It is
// called before the first entry.
func (t *Telemetry) SetRemembers(n int) { t.auditor.remembers = n }
