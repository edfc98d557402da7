package telemetry

import "runtime"

// SetRemembers sets how much more than at its beginning a witness may remember. It is
// called before the first entry.
func (t *Telemetry) SetRemembers(n int) { t.auditor.remembers = n }

// Settle returns when the queue is empty. The last entry of it may still be looked at.
func (t *Telemetry) Settle() {
	for len(t.auditor.queue) > 0 {
		runtime.Gosched()
	}
}
