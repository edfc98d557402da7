package client

import "time"

// MarkAll makes the next step of a core visit all allocations.
func MarkAll(c *Core) { c.visiting.all() }

// CountChanges counts the changes of records and reports.
func CountChanges(c *Core) (count uint64) {
	for _, a := range c.allocs {
		count += a.saves.version + a.report.version
	}
	return count
}

// Visits returns how often steps of a core have visited an allocation or a volume.
func Visits(c *Core) int { return c.visiting.count + c.volumes.Visits() }

// NotAfter limits the times of a record.
func NotAfter(r *Record, now time.Duration) (changed bool) { return r.notAfter(now) }

// Reboot removes the times of an earlier boot.
func Reboot(r *Record, bootID string, now time.Duration) { r.reboot(bootID, now) }
