package volume

import "time"

// saves writes the record of one volume. A newer version waits for the save in flight.
type saves struct {
	// version counts the changes of the record. saved is the newest version on disk, and tried is
	// the newest version whose save was answered.
	version, saved, tried uint64
	saving                bool
	saveFailures          int
	saveAt                time.Duration
	saveErr               error
}

// touch counts a change of the record.
func (s *saves) touch() { s.version++ }

// durable reports whether the version of the record that an attempt needs is on disk.
func (s *saves) durable(a *attempt) bool { return s.saved >= a.needs }

// save writes the newest record, or deletes it if nothing is left.
func (r *runner) save() {
	if r.saving || r.saved == r.version || !r.v.reached(r.saveAt) {
		return
	}
	r.saving = true
	flight := r.version
	taken := answer(r, func(err error) {
		r.saving, r.tried, r.saveErr = false, flight, err
		if err == nil {
			r.saved, r.saveFailures, r.saveAt = flight, 0, 0
			return
		}
		r.saveFailures++
		r.saveAt = r.v.now + r.v.backoff(r.saveFailures)
		r.v.options.Logger.Error("the record of a volume could not be saved; the volume is not mounted until it is saved", "volume", r.key.String(), "error", err)
	})
	if r.empty() {
		r.v.options.Shell.DeleteVolume(r.key, taken)
	} else {
		r.v.options.Shell.SaveVolume(r.record(), taken)
	}
}
