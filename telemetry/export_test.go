package telemetry

import "runtime"

// SetRemembers sets how much more than at its start a witness may remember. Call it before the
// first entry.
func (t *Telemetry) SetRemembers(n int) { t.auditor.remembers = n }

// Settle returns when the queue is empty. The witness may still judge its last entry.
func (t *Telemetry) Settle() {
	for len(t.auditor.queue) > 0 {
		runtime.Gosched()
	}
}
