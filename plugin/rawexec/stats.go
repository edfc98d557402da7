package rawexec

import (
	"context"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Stats reports the sum of all processes of a task.
func (d *Driver) Stats(ctx context.Context, id driver.TaskID, interval time.Duration, report func(driver.Usage)) error {
	t, err := d.find(id)
	if err != nil {
		return err
	}
	const least = 100 * time.Millisecond
	tick := time.NewTicker(max(interval, least))
	defer tick.Stop()
	r, err := d.read(t)
	if err != nil {
		return err
	}
	before, last, err := d.machine.measure(r)
	if err != nil {
		return err
	}
	report(driver.Usage{Time: last, RSS: before.RSS})
	for {
		select {
		case <-t.done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now, at, err := d.machine.measure(r)
		if err != nil {
			return err
		}
		usage := driver.Usage{Time: at, RSS: now.RSS}
		if elapsed := at.Sub(last); elapsed > 0 && now.CPU > before.CPU { // the sum is lower if a process has ended
			usage.CPUPercent = 100 * float64(now.CPU-before.CPU) / float64(elapsed)
		}
		report(usage)
		before, last = now, at
	}
}
