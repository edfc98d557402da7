package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/driver"
)

// instance is one life of a driver's process. Package plugin/host implements it.
type instance interface {
	driver.Driver
	// Done is closed after the process has ended.
	Done() <-chan struct{}
	// Kill ends the process. Detach leaves it to the next client.
	Kill(context.Context) error
	Detach()
	// TakenOver reports whether an earlier client has started the process.
	TakenOver() bool
}

// program starts the process of a driver, or takes over the one that an earlier client has left.
type program interface {
	launch(context.Context) (instance, error)
}

// driverEvents receives what drivers do by themselves.
type driverEvents interface {
	DriverDown(name string, life client.Life)
	Fingerprint(name string, life client.Life, f driver.Fingerprint)
}

// errLifeEnded answers calls for an earlier life of a driver.
var errLifeEnded = errors.New("this life of the driver has ended")

// The wait before a stream of fingerprints is opened again.
const (
	minReopen = 5 * time.Second
	maxReopen = 2 * time.Minute
)

// drivers are the drivers of the node. The set does not change.
type drivers struct {
	all    map[string]*driverProcess
	events driverEvents
	trust  *trust
	logger *slog.Logger
}

// startTimeouts returns how long drivers may take to start a task, for those whose plugin's block says it.
func (d *drivers) startTimeouts(blocks map[string]config.Plugin) map[string]time.Duration {
	limits := map[string]time.Duration{}
	for name, process := range d.all {
		if p, is := process.program.(*pluginProgram); is && blocks[p.file].StartTimeout > 0 {
			limits[name] = blocks[p.file].StartTimeout
		}
	}
	return limits
}

// driverProcess is one driver, with its present life.
type driverProcess struct {
	name    string
	program program
	// calls holds a value for each short call in flight.
	calls chan struct{}

	mu      sync.Mutex
	life    client.Life     // the newest life, or zero; guarded by mu
	present instance        // nil while no process runs; guarded by mu
	end     func()          // ends the goroutines of the life, or nil; guarded by mu
	running *sync.WaitGroup // the goroutines of the life, or nil; guarded by mu
	rotates bool            // whether the driver writes logs itself; guarded by mu
}

// newDrivers returns the drivers that the programs run. Calls bounds the short calls in flight of each.
func newDrivers(programs map[string]program, calls int, e driverEvents, t *trust, logger *slog.Logger) *drivers {
	d := &drivers{all: make(map[string]*driverProcess, len(programs)), events: e, trust: t, logger: logger}
	for name, p := range programs {
		d.all[name] = &driverProcess{name: name, program: p, calls: make(chan struct{}, calls)}
	}
	return d
}

func (d *drivers) names() []string { return slices.Sorted(maps.Keys(d.all)) }

// launch begins the next life of a driver.
func (d *drivers) launch(ctx context.Context, name string) client.Launched {
	p := d.all[name]
	if p == nil {
		return client.Launched{Err: fmt.Errorf("the node has no driver %q", name)}
	}
	started, err := p.program.launch(ctx)
	if err != nil {
		return client.Launched{Err: err}
	}
	life := d.begin(ctx, p, started)
	return client.Launched{Life: life, Capabilities: started.Capabilities(), Reattached: started.TakenOver()}
}

// begin makes an instance the present life, and watches it.
func (d *drivers) begin(ctx context.Context, p *driverProcess, i instance) client.Life {
	ctx, end := context.WithCancel(ctx)
	running := new(sync.WaitGroup)
	p.mu.Lock()
	p.life++
	life := p.life
	p.present, p.end, p.running = i, end, running
	p.mu.Unlock()
	running.Go(func() { d.watch(ctx, p, life, i) })
	running.Go(func() { d.fingerprints(ctx, p, life, i) })
	running.Go(func() { d.listen(ctx, p, i) })
	return life
}

// watch posts the end of a life.
func (d *drivers) watch(ctx context.Context, p *driverProcess, life client.Life, i instance) {
	select {
	case <-ctx.Done():
		return
	case <-i.Done():
	}
	p.mu.Lock()
	end := p.end
	p.present = nil
	p.mu.Unlock()
	end()
	d.trust.forget(p.name)
	d.events.DriverDown(p.name, life)
}

// fingerprints posts the health of a life. A stream that ends is opened again: the driver is unhealthy
// until then, and its tasks are not concerned.
func (d *drivers) fingerprints(ctx context.Context, p *driverProcess, life client.Life, i instance) {
	post := func(f driver.Fingerprint) {
		p.mu.Lock()
		p.rotates = p.rotates || f.Attributes["driver."+p.name+".rotates_logs"] == "1"
		p.mu.Unlock()
		d.events.Fingerprint(p.name, life, f)
	}
	wait := minReopen
	for ctx.Err() == nil {
		opened := time.Now()
		err := i.Fingerprints(ctx, func(f driver.Fingerprint) { d.trust.filter(p.name, f, post) })
		if ctx.Err() != nil {
			return
		}
		if time.Since(opened) > maxReopen {
			wait = minReopen
		}
		d.trust.filter(p.name, driver.Fingerprint{Health: driver.Unhealthy, Description: fmt.Sprintf("the driver does not report its health: %v", err)}, post)
		d.logger.Warn("a driver does not report its health", "driver", p.name, "error", err, "retry_in", wait)
		sleep(ctx, wait)
		wait = min(2*wait, maxReopen)
	}
}

// listen logs what a driver says about its tasks. The stream is opened once: released plugins do not
// notice that its reader has left.
func (d *drivers) listen(ctx context.Context, p *driverProcess, i instance) {
	err := i.Events(ctx, func(e driver.Event) {
		d.logger.Info("a driver reports on a task", "driver", p.name, "task", string(e.Task), "says", e.Message)
	})
	if ctx.Err() == nil {
		d.logger.Debug("a driver reports nothing on its tasks", "driver", p.name, "error", err)
	}
}

// rotatesLogs reports whether a driver has said that it writes and rotates logs itself.
func (d *drivers) rotatesLogs(name string) bool {
	p := d.all[name]
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rotates
}

// abandon kills the process of a life. It has no effect on a life that has ended.
func (d *drivers) abandon(ctx context.Context, name string, life client.Life) {
	i, err := d.instance("Kill", name, life)
	if err != nil {
		return
	}
	d.logger.Warn("killing a driver that does not answer", "driver", name)
	if err := i.Kill(ctx); err != nil {
		d.logger.Error("a driver could not be killed", "driver", name, "error", err)
	}
}

// instance returns the process of a life, or an error of class [driver.Gone].
func (d *drivers) instance(call, name string, life client.Life) (instance, error) {
	gone := &driver.Error{Class: driver.Gone, Call: call, Err: errLifeEnded}
	p := d.all[name]
	if p == nil {
		return nil, gone
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present == nil || p.life != life {
		return nil, gone
	}
	return p.present, nil
}

// current returns the present process of a driver, or an error of class [driver.Gone].
func (d *drivers) current(call, name string) (instance, error) {
	life := client.Life(0)
	if p := d.all[name]; p != nil {
		p.mu.Lock()
		life = p.life
		p.mu.Unlock()
	}
	return d.instance(call, name, life)
}

// enter waits for room for a short call, and returns the process and the function that leaves. Long
// calls, which wait for a task, need no room.
func (d *drivers) enter(ctx context.Context, call, name string, life client.Life) (driver.Driver, func(), error) {
	p := d.all[name]
	if p == nil {
		_, err := d.instance(call, name, life)
		return nil, nil, err
	}
	select {
	case p.calls <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, &driver.Error{Class: driver.Deadline, Call: call, Err: context.Cause(ctx)}
	}
	leave := func() { <-p.calls }
	i, err := d.instance(call, name, life)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return i, leave, nil
}

// allRun reports whether each driver has a process.
func (d *drivers) allRun() bool {
	for _, p := range d.all {
		p.mu.Lock()
		runs := p.present != nil
		p.mu.Unlock()
		if !runs {
			return false
		}
	}
	return true
}

// detach leaves all processes to the next client, and ends the goroutines.
func (d *drivers) detach() {
	for _, name := range d.names() {
		p := d.all[name]
		p.mu.Lock()
		present, end, running := p.present, p.end, p.running
		p.present = nil
		p.mu.Unlock()
		if end != nil {
			end()
			running.Wait()
		}
		if present != nil {
			present.Detach()
		}
	}
}

// sleep waits, at most until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
