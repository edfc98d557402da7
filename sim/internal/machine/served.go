package machine

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// served are the storage plugins of one client: the tasks that a driver has started or taken over.
type served struct {
	run *run
	all volume.Starts[probing]
}

// storageStart is one start of a storage plugin's task.
type storageStart = volume.Start[probing]

// probing is the state of the probes of a storage plugin.
type probing struct {
	over bool
	// disturbed schedules the next probe, or is nil if it is already scheduled.
	disturbed func()
}

// begin watches a start of a task if the task is a storage plugin.
func (s *served) begin(ref client.TaskRef) {
	if s.run.node.volumes == nil {
		return
	}
	config := s.run.node.volumes.Plugin(ref.ID)
	if config == nil || s.all.Has(ref.ID) {
		return
	}
	p := &storageStart{ID: ref.ID, Alloc: ref.Alloc, Task: ref.Task, Config: *config}
	s.all.Add(p, s.run.node.clock.now)
	s.probe(p)
}

// end removes the starts of a task from the list.
func (s *served) end(ref client.TaskRef) {
	ended := s.all.Remove(ref.Alloc, ref.Task, ref.ID)
	for _, p := range ended {
		p.Shell.over = true
	}
	for _, p := range ended {
		s.report(p.Config.ID)
	}
}

// probe probes a plugin periodically. If the plugin does not answer for its health timeout, probe
// restarts it.
func (s *served) probe(p *storageStart) {
	first := once(s.run, "Probe", probeLimit, func(err error) { s.probed(p, err) })
	s.run.node.volumes.storage.Probe(p.ID, p.Config.ID, first)
}

func (s *served) probed(p *storageStart, err error) {
	if p.Shell.over || !s.run.alive() {
		return
	}
	now := s.run.node.clock.now
	found := &cluster.StoragePlugin{Type: p.Config.Type, Stages: s.run.node.volumes.storage.Stages(p.Config.ID)}
	wait, restart, changed := p.Probed(found, err, now)
	if restart {
		s.run.core.Operator().Restart(p.Alloc, p.Task, false, func(error) {})
	}
	if changed {
		s.report(p.Config.ID)
	}
	if err == nil {
		s.rest(p, now)
	} else {
		s.later(p, wait)
	}
}

// rest skips probes that would be answered, so that an idle node has no events. After the plugin is
// disturbed, the next probe runs at its regular time.
func (s *served) rest(p *storageStart, last time.Time) {
	p.Shell.disturbed = func() {
		p.Shell.disturbed = nil
		s.later(p, volume.ProbeInterval-s.run.node.clock.now.Sub(last)%volume.ProbeInterval)
	}
	for process := range s.run.node.machine.EachLiving() {
		if process.Task == p.ID {
			s.run.node.machine.NotifyEnd(process.Identity, func() { s.disturb(p.Config.ID) })
			return
		}
	}
	p.Shell.disturbed()
}

// later probes a plugin after a time.
func (s *served) later(p *storageStart, wait time.Duration) {
	s.run.after(wait, func() {
		if !p.Shell.over && s.run.alive() {
			s.probe(p)
		}
	})
}

// disturb notes that a plugin may not answer the next probe.
func (s *served) disturb(id cluster.PluginID) {
	for _, p := range s.all {
		if p.Config.ID == id && p.Shell.disturbed != nil {
			p.Shell.disturbed()
		}
	}
}

// report reports a plugin's newest state to the core and the servers.
func (s *served) report(id cluster.PluginID) {
	up, plugins := s.all.Report(id)
	if up != nil {
		s.run.core.StoragePluginUp(id, *up)
	} else {
		s.run.core.StoragePluginDown(id)
	}
	if s.run.node.volumes.options.Plugins != nil {
		s.run.node.volumes.options.Plugins(plugins)
	}
}
