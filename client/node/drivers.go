package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// driverInstance is one process of a driver. Package plugin/host implements it.
type driverInstance interface {
	instance
	driver.Driver
}

type drivers struct {
	supervised[driverInstance]
	trust *trust

	mu      sync.Mutex
	rotates map[string]bool // the drivers that write logs themselves; guarded by mu
}

func newDrivers(programs map[string]program[driverInstance], calls int, e pluginEvents, t *trust, logger *slog.Logger) *drivers {
	return &drivers{supervised: supervise(client.DriverPlugin, programs, calls, e, logger), trust: t, rotates: make(map[string]bool)}
}

// startTimeouts returns the start timeouts that the blocks of the plugins set, by driver.
func (d *drivers) startTimeouts(blocks map[string]config.Plugin) map[string]time.Duration {
	limits := map[string]time.Duration{}
	for name, process := range d.all {
		if p, is := process.program.(*driverProgram); is && blocks[p.file].StartTimeout > 0 {
			limits[name] = blocks[p.file].StartTimeout
		}
	}
	return limits
}

// launch starts the next process of a driver, and posts its events after the answer.
func (d *drivers) launch(ctx context.Context, name string, reply func(client.Launched)) {
	b, err := d.supervised.launch(ctx, name)
	if err != nil {
		reply(client.Launched{Err: err})
		return
	}
	reply(client.Launched{Generation: b.generation, Capabilities: b.present.Capabilities(), Reattached: b.present.TakenOver()})
	b.running.Go(func() { d.watch(b, func() { d.trust.forget(name) }) })
	b.running.Go(func() { d.fingerprints(b) })
	b.running.Go(func() { d.listen(b) })
}

// fingerprints posts the health of a process. While its stream is closed, the driver is unhealthy,
// and its tasks continue.
func (d *drivers) fingerprints(b *begun[driverInstance]) {
	name := b.plugin.name
	post := func(f driver.Fingerprint) {
		d.mu.Lock()
		d.rotates[name] = d.rotates[name] || f.Attributes["driver."+name+".rotates_logs"] == "1"
		d.mu.Unlock()
		d.events.Fingerprint(name, b.generation, f)
	}
	keepOpen(b.ctx, func() error {
		return b.present.Fingerprints(b.ctx, func(f driver.Fingerprint) { d.trust.filter(name, f, post) })
	}, func(err error, retryIn time.Duration) {
		d.trust.filter(name, driver.Fingerprint{Health: driver.Unhealthy, Description: fmt.Sprintf("the driver does not report its health: %v", err)}, post)
		d.logger.Warn("a driver does not report its health", "driver", name, "error", err, "retry_in", retryIn)
	})
}

// listen posts and logs the events of a driver. It opens the stream only once, because released plugins do
// not detect when a reader closes it.
func (d *drivers) listen(b *begun[driverInstance]) {
	err := b.present.Events(b.ctx, func(e driver.Event) {
		d.logger.Info("a driver reports an event of a task", "driver", b.plugin.name, "task", string(e.Task), "message", e.Message)
		d.events.DriverEvent(b.plugin.name, b.generation, e)
	})
	if b.ctx.Err() == nil {
		d.logger.Debug("the events of a driver have stopped", "driver", b.plugin.name, "error", err)
	}
}

// rotatesLogs reports whether a driver writes and rotates logs itself, by its capabilities.
func (d *drivers) rotatesLogs(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rotates[name]
}
