package rawexec

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/client/process"
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
	before, last, err := d.measure(t)
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
		now, at, err := d.measure(t)
		if err != nil {
			return err
		}
		usage := driver.Usage{Time: at, RSS: now.RSS}
		if elapsed := at.Sub(last); elapsed > 0 && now.CPU > before.CPU { // less: a process has ended
			usage.CPUPercent = 100 * float64(now.CPU-before.CPU) / float64(elapsed)
		}
		report(usage)
		before, last = now, at
	}
}

// measure adds up what the processes of a task have used.
func (d *Driver) measure(t *task) (process.Usage, time.Time, error) {
	pids, err := d.pids(t)
	if err != nil {
		return process.Usage{}, time.Time{}, err
	}
	var sum process.Usage
	for _, pid := range pids {
		switch u, err := process.UsageOf(pid); {
		case errors.Is(err, process.ErrGone):
		case err != nil:
			return process.Usage{}, time.Time{}, err
		default:
			sum.CPU += u.CPU
			sum.RSS += u.RSS
		}
	}
	return sum, time.Now(), nil
}

// pids returns the processes of a task.
func (d *Driver) pids(t *task) ([]int, error) {
	r, err := d.read(t)
	if err != nil {
		return nil, err
	}
	g, err := d.group(r.Cgroup)
	if err != nil {
		return nil, err
	}
	if g != nil {
		return g.PIDs()
	}
	below, err := process.Descendants(r.Shim.PID)
	var pids []int
	for _, id := range below {
		pids = append(pids, id.PID)
	}
	return pids, err
}
