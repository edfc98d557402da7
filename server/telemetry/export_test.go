package telemetry

import "runtime"

// SetMaxGrowth sets how much a witness may grow. Call it before the first entry.
func (t *Telemetry) SetMaxGrowth(n int) { t.auditor.maxGrowth = n }

// Settle returns when the queue is empty. The witness may still judge its last entry.
func (t *Telemetry) Settle() {
	for len(t.auditor.queue) > 0 {
		runtime.Gosched()
	}
}
