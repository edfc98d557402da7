package client

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// drivers are the node's drivers and their health.
type drivers struct {
	core *Core
	// all are sorted by name.
	all []*driverState
	// foreign: the servers and the allocations belong to different clusters.
	foreign bool
}

type driverState struct {
	process
	name         string
	capabilities driver.Capabilities
	info         cluster.DriverInfo
	starts       starts
}

func newDrivers(c *Core, names []string) *drivers {
	d := &drivers{core: c}
	for _, name := range pluginNames(names) {
		d.all = append(d.all, &driverState{
			process: process{core: c, plugin: Plugin{DriverPlugin, name}}, name: name,
			info:   cluster.DriverInfo{HealthDescription: "the driver has not started yet"},
			starts: starts{most: c.options.MaxStarts},
		})
	}
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

// generation returns the number of a driver's present process, or zero.
func (d *drivers) generation(name string) Generation {
	if s := d.state(name); s != nil {
		return s.generation
	}
	return 0
}

func (d *drivers) step() {
	for _, s := range d.all {
		if s.mustLaunch() {
			s.launch(func(l Launched) { d.launched(s, l) })
		}
	}
}

// sendStarts sends the starts whose turn has come to their drivers.
func (d *drivers) sendStarts() {
	for _, s := range d.all {
		s.starts.step()
	}
}

// infos returns the drivers as the client reports them to the servers.
func (d *drivers) infos() map[string]*cluster.DriverInfo {
	infos := make(map[string]*cluster.DriverInfo, len(d.all))
	for _, s := range d.all {
		infos[s.name] = s.info.Copy()
		if d.foreign {
			infos[s.name].Healthy, infos[s.name].HealthDescription = false, foreignServers
		}
	}
	return infos
}

// foreignServers is the reported reason for unhealthy drivers while the client ignores the servers.
const foreignServers = "the client ignores the servers, because they belong to another cluster than its data directory"

// setForeign notes whether the servers belong to another cluster.
func (d *drivers) setForeign(foreign bool) {
	if foreign != d.foreign {
		d.core.publisher.note()
	}
	d.foreign = foreign
}

// launched handles the answer to a launch.
func (d *drivers) launched(s *driverState, l Launched) {
	if s.launched(l) {
		s.capabilities = l.Capabilities
		return
	}
	d.setInfo(s, cluster.DriverInfo{HealthDescription: "the driver did not start: " + l.Err.Error()})
}

// down handles the end of a driver's process.
func (d *drivers) down(name string, generation Generation, why string) {
	if s := d.state(name); s != nil && s.down(generation) {
		text := because("the driver's process has died", why)
		d.setInfo(s, cluster.DriverInfo{Detected: s.info.Detected, Attributes: s.info.Attributes, HealthDescription: text})
	}
}

// fingerprint handles the health and the attributes that a driver reports.
func (d *drivers) fingerprint(name string, generation Generation, f driver.Fingerprint) {
	s := d.state(name)
	if s == nil || s.generation != generation {
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
	d.core.publisher.note()
}

// allKnown reports whether each driver has reported its health or failed to start.
func (d *drivers) allKnown() bool {
	return !slices.ContainsFunc(d.all, func(s *driverState) bool { return !s.known })
}

// driverEvent is the type of a task's event that its driver has reported.
const driverEvent = "Driver"

// A task keeps the last maxDriverEvents events of its driver, so that they leave room for the events
// of the client. In each driverEventTime it takes as many, because each costs a record and a report.
const (
	maxDriverEvents = 3
	driverEventTime = 10 * time.Second
)

// driverEvents counts the events that the driver has reported for the present start of a task.
type driverEvents struct {
	since time.Duration
	taken int
}

// event handles a message of a driver about a start of a task.
func (d *drivers) event(name string, generation Generation, e driver.Event) {
	s := d.state(name)
	if s == nil || s.generation != generation || e.Message == "" || e.Task == "" {
		return
	}
	for _, a := range d.core.allocs {
		for _, t := range a.tasks {
			if t.rec.ID == e.Task && t.task.Driver == name && t.rec.Phase != PhaseDead {
				t.start.reported(e.Message)
				if processes := e.Annotations[driver.WaitsFor]; processes != "" && t.rec.Phase == PhaseRunning {
					t.start.remains(processes)
					a.visits.mark()
				}
				return
			}
		}
	}
}

// reported adds a message of the driver to the events of the task.
func (s *taskStart) reported(message string) {
	now, n := s.t.core().now.Boot, &s.driverEvents
	if n.taken == 0 || now >= n.since+driverEventTime {
		*n = driverEvents{since: now}
	}
	if n.taken == maxDriverEvents {
		return // the client's log has the message
	}
	n.taken++
	s.t.keepDriverEvents(maxDriverEvents - 1)
	s.t.event(driverEvent, cluster.CutText(message))
}

// keepDriverEvents removes the oldest events of the driver, until at most count are left.
func (t *taskRunner) keepDriverEvents(count int) {
	var kept []cluster.TaskEvent
	for _, e := range slices.Backward(t.rec.State.Events) {
		if e.Type == driverEvent {
			if count == 0 {
				continue
			}
			count--
		}
		kept = append(kept, e)
	}
	slices.Reverse(kept)
	t.rec.State.Events = kept
}
