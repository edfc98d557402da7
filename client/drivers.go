package client

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/driver"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// drivers starts the node's drivers again when they die, and publishes their health.
type drivers struct {
	core *Core
	// all are in the order of their names.
	all []*driverState
	// unpublished: the servers do not know the newest health. publishAt is when it may be published.
	unpublished bool
	publishAt   time.Duration
	// published: the servers were told once. The first time waits for all drivers until firstBy, so
	// that a new node is complete at once.
	published bool
	firstBy   time.Duration
	// foreign: the servers belong to another cluster than the allocations.
	foreign bool
}

// firstPublish bounds the wait for the first fingerprints of all drivers.
const firstPublish = 10 * time.Second

// driverState is the core's knowledge of one driver.
type driverState struct {
	name string
	// life is the present life of the process, or zero.
	life         Life
	capabilities driver.Capabilities
	reattached   bool
	upSince      time.Duration
	launching    bool
	known        bool // its health is known, for the first time
	launchAt     time.Duration
	failures     int
	info         cluster.DriverInfo
}

func newDrivers(c *Core, names []string) *drivers {
	d := &drivers{core: c}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		d.all = append(d.all, &driverState{name: name, info: cluster.DriverInfo{HealthDescription: "the driver has not started yet"}})
	}
	d.unpublished = true
	return d
}

// state returns a driver, or nil if the node does not have it.
func (d *drivers) state(name string) *driverState {
	for _, s := range d.all {
		if s.name == name {
			return s
		}
	}
	return nil
}

// life returns the present life of a driver's process, or zero.
func (d *drivers) life(name string) Life {
	if s := d.state(name); s != nil {
		return s.life
	}
	return 0
}

func (d *drivers) step() {
	for _, s := range d.all {
		if s.life == 0 && !s.launching && d.core.reached(s.launchAt) {
			s.launching = true
			d.core.options.Shell.Launch(s.name, reply(d.core, func(l Launched) { d.launched(s, l) }))
		}
	}
	if d.firstBy == 0 {
		d.firstBy = d.core.now.Boot + firstPublish
	}
	if !d.published && !d.allKnown() && !d.core.reached(d.firstBy) {
		return
	}
	if d.unpublished && d.core.reached(d.publishAt) {
		d.unpublished, d.published = false, true
		d.publishAt = d.core.now.Boot + d.core.options.PublishInterval
		infos := make(map[string]*cluster.DriverInfo, len(d.all))
		for _, s := range d.all {
			infos[s.name] = s.info.Copy()
			if d.foreign {
				infos[s.name].Healthy, infos[s.name].HealthDescription = false, foreignServers
			}
		}
		d.core.options.Shell.Publish(infos)
	}
}

// foreignServers is why the drivers of a node are unhealthy that would ignore what is placed on it.
const foreignServers = "the servers belong to another cluster than the data directory of the client, which ignores them"

// setForeign notes whether the servers belong to another cluster.
func (d *drivers) setForeign(foreign bool) {
	d.unpublished = d.unpublished || foreign != d.foreign
	d.foreign = foreign
}

// allKnown reports whether each driver has told its health or failed to start.
func (d *drivers) allKnown() bool {
	return !slices.ContainsFunc(d.all, func(s *driverState) bool { return !s.known })
}

// launched takes in the answer to a launch.
func (d *drivers) launched(s *driverState, l Launched) {
	s.launching = false
	if l.Err != nil {
		s.known = true
		s.failures++
		wait := backoff(s.failures, d.core.options.MinRelaunch, d.core.options.MaxRelaunch)
		s.launchAt = d.core.now.Boot + wait
		d.core.options.Logger.Error("a driver did not start", "driver", s.name, "error", l.Err, "retry_in", wait)
		d.setInfo(s, cluster.DriverInfo{HealthDescription: "the driver did not start: " + l.Err.Error()})
		return
	}
	s.life, s.reattached, s.capabilities, s.upSince = l.Life, l.Reattached, l.Capabilities, d.core.now.Boot
	d.core.options.Logger.Info("a driver has started", "driver", s.name, "life", uint64(l.Life))
}

// down takes in the end of a driver's process.
func (d *drivers) down(name string, life Life) {
	s := d.state(name)
	if s == nil || s.life != life || life == 0 {
		return
	}
	s.life = 0
	if d.core.now.Boot-s.upSince >= d.core.options.MaxRelaunch {
		s.failures = 0
	}
	wait := time.Duration(0)
	if s.failures > 0 {
		wait = backoff(s.failures, d.core.options.MinRelaunch, d.core.options.MaxRelaunch)
	}
	s.failures++
	s.launchAt = d.core.now.Boot + wait
	d.core.options.Logger.Warn("a driver has died; its tasks are not concerned", "driver", name, "life", uint64(life), "restart_in", wait)
	d.setInfo(s, cluster.DriverInfo{Detected: s.info.Detected, Attributes: s.info.Attributes, HealthDescription: "the driver's process has died"})
}

// fingerprint takes in a driver's report on itself.
func (d *drivers) fingerprint(name string, life Life, f driver.Fingerprint) {
	s := d.state(name)
	if s == nil || s.life != life {
		return
	}
	s.known = true
	d.setInfo(s, cluster.DriverInfo{
		Attributes: f.Attributes, Detected: f.Health != driver.Undetected, Healthy: f.Health == driver.Healthy, HealthDescription: f.Description,
	})
}

func (d *drivers) setInfo(s *driverState, info cluster.DriverInfo) {
	if s.info.Detected == info.Detected && s.info.Healthy == info.Healthy && s.info.HealthDescription == info.HealthDescription &&
		maps.Equal(s.info.Attributes, info.Attributes) {
		return
	}
	info.UpdateTime = d.core.now.Wall
	s.info = info
	d.unpublished = true
}

// reply returns a function that queues an answer for the next step.
func reply[T any](c *Core, take func(T)) func(T) {
	return func(answer T) { c.inbox.post(func() { take(answer) }) }
}

// reply2 is reply for an answer with an error.
func reply2[T any](c *Core, take func(T, error)) func(T, error) {
	return func(answer T, err error) { c.inbox.post(func() { take(answer, err) }) }
}
