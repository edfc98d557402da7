package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// served are the storage plugins of one client: the tasks that a driver has started or taken over.
type served struct {
	run *run
	all []*storagePlugin // in the order of their starts
}

// storagePlugin is one start of a storage plugin's task.
type storagePlugin struct {
	ref    client.TaskRef
	config *cluster.CSIPlugin
	// found is the plugin as it is registered with the servers, or nil before its first answer. It
	// is replaced and never changed.
	found *cluster.StoragePlugin
	// failing is since when the plugin has not answered, or zero.
	failing time.Time
	over    bool
	// disturbed schedules the next probe, or is nil if it is already scheduled.
	disturbed func()
}

// begin watches a start of a task if the task is a storage plugin.
func (s *served) begin(ref client.TaskRef) {
	if s.run.node.volumes == nil {
		return
	}
	config := s.run.node.volumes.Plugin(ref.ID)
	if config == nil || slices.ContainsFunc(s.all, func(p *storagePlugin) bool { return p.ref.ID == ref.ID }) {
		return
	}
	p := &storagePlugin{ref: ref, config: config, failing: s.run.node.clock.now}
	s.all = append(s.all, p)
	s.probe(p)
}

// end removes the starts of a task from the list.
func (s *served) end(ref client.TaskRef) {
	var ended []*storagePlugin
	s.all = slices.DeleteFunc(s.all, func(p *storagePlugin) bool {
		p.over = p.ref.Alloc == ref.Alloc && p.ref.Task == ref.Task && (ref.ID == "" || p.ref.ID == ref.ID)
		if p.over {
			ended = append(ended, p)
		}
		return p.over
	})
	for _, p := range ended {
		s.report(p.config.ID)
	}
}

// probe probes a plugin periodically. If the plugin does not answer for its health timeout, probe
// restarts it.
func (s *served) probe(p *storagePlugin) {
	first := s.run.once("Probe", probeLimit, func(err error) { s.probed(p, err) })
	s.run.node.volumes.storage.Probe(p.ref.ID, p.config.ID, first)
}

func (s *served) probed(p *storagePlugin, err error) {
	if p.over || !s.run.alive() {
		return
	}
	now := s.run.node.clock.now
	if err == nil {
		p.failing = time.Time{}
		s.note(p, nil)
		s.rest(p, now)
		return
	}
	if p.failing.IsZero() {
		p.failing = now
	}
	if now.Sub(p.failing) >= cmp.Or(p.config.HealthTimeout, cluster.DefaultPluginHealthTimeout) {
		p.failing = now
		s.run.core.Operator().Restart(p.ref.Alloc, p.ref.Task, false, func(error) {})
	}
	s.note(p, err)
	s.later(p, probeAgain)
}

// rest skips probes that would be answered, so that an idle node has no events. After the plugin is
// disturbed, the next probe runs at its regular time.
func (s *served) rest(p *storagePlugin, last time.Time) {
	p.disturbed = func() {
		p.disturbed = nil
		s.later(p, probeInterval-s.run.node.clock.now.Sub(last)%probeInterval)
	}
	for process := range s.run.node.machine.EachLiving() {
		if process.Task == p.ref.ID {
			s.run.node.machine.NotifyEnd(process.Identity, func() { s.disturb(p.config.ID) })
			return
		}
	}
	p.disturbed()
}

// later probes a plugin after a time.
func (s *served) later(p *storagePlugin, wait time.Duration) {
	s.run.after(wait, func() {
		if !p.over && s.run.alive() {
			s.probe(p)
		}
	})
}

// disturb notes that a plugin may not answer the next probe.
func (s *served) disturb(id cluster.PluginID) {
	for _, p := range s.all {
		if p.config.ID == id && p.disturbed != nil {
			p.disturbed()
		}
	}
}

// note stores the result of a probe.
func (s *served) note(p *storagePlugin, err error) {
	next := &cluster.StoragePlugin{
		ID: p.config.ID, Type: p.config.Type, Alloc: p.ref.Alloc, Healthy: err == nil, HealthDescription: "healthy",
		Stages: s.run.node.volumes.storage.Stages(p.config.ID), UpdateTime: s.run.node.clock.now,
	}
	if err != nil {
		next.HealthDescription = err.Error()
	}
	if before := p.found; before != nil && before.Healthy == next.Healthy && before.HealthDescription == next.HealthDescription {
		return
	}
	p.found = next
	s.report(p.config.ID)
}

// report reports a plugin's newest state to the core and the servers.
func (s *served) report(id cluster.PluginID) {
	if p := s.newest(id); p != nil {
		s.run.core.StoragePluginUp(id, volume.Plugin{Stages: p.found.Stages})
	} else {
		s.run.core.StoragePluginDown(id)
	}
	if s.run.node.volumes.options.Plugins == nil {
		return
	}
	var plugins []*cluster.StoragePlugin
	for _, p := range slices.Backward(s.all) {
		if f := p.found; f != nil && !slices.ContainsFunc(plugins, func(o *cluster.StoragePlugin) bool { return o.ID == f.ID && o.Type == f.Type }) {
			plugins = append(plugins, f.Copy())
		}
	}
	s.run.node.volumes.options.Plugins(plugins)
}

// newest returns the newest healthy plugin that mounts volumes, or nil.
func (s *served) newest(id cluster.PluginID) *storagePlugin {
	for _, p := range slices.Backward(s.all) {
		if p.config.ID == id && p.config.Type.Node() && p.found != nil && p.found.Healthy {
			return p
		}
	}
	return nil
}
