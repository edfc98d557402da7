package machine

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// served are the storage plugins that one client knows: the tasks that a driver has started or taken over.
type served struct {
	run *run
	all []*storagePlugin // in the order in which they began
}

// storagePlugin is one start of a task that is a storage plugin.
type storagePlugin struct {
	ref    client.TaskRef
	config *cluster.CSIPlugin
	// found is what the servers know about it, or nil while it has never answered. It is replaced and never
	// written to.
	found *cluster.StoragePlugin
	// failing is since when it does not answer, or zero.
	failing time.Time
	over    bool
	// disturbed makes the next probe come, or is nil if it comes anyway.
	disturbed func()
}

// begin watches a start of a task, if it is a storage plugin.
func (s *served) begin(ref client.TaskRef) {
	if s.run.node.storage == nil {
		return
	}
	config := s.run.node.storage.Plugin(ref.ID)
	if config == nil || slices.ContainsFunc(s.all, func(p *storagePlugin) bool { return p.ref.ID == ref.ID }) {
		return
	}
	p := &storagePlugin{ref: ref, config: config, failing: s.run.node.clock.now}
	s.all = append(s.all, p)
	s.probe(p)
}

// end forgets the starts of a task.
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
		s.tell(p.config.ID)
	}
}

// probe asks a plugin whether it answers, again and again. One that does not answer for its health timeout
// is restarted.
func (s *served) probe(p *storagePlugin) {
	first := s.run.once("Probe", probeLimit, func(err error) { s.probed(p, err) })
	s.run.node.storage.Probe(p.ref.ID, p.config.ID, first)
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
		s.run.core.Restart(p.ref.Alloc, p.ref.Task, false, func(error) {})
	}
	s.note(p, err)
	s.later(p, probeAgain)
}

// rest leaves out the probes that would be answered, so that a node at rest has no events: the next one
// comes when it is due after the plugin was disturbed.
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

// disturb says that a plugin may answer no more.
func (s *served) disturb(id cluster.PluginID) {
	for _, p := range s.all {
		if p.config.ID == id && p.disturbed != nil {
			p.disturbed()
		}
	}
}

// note keeps the outcome of a probe.
func (s *served) note(p *storagePlugin, err error) {
	next := &cluster.StoragePlugin{
		ID: p.config.ID, Type: p.config.Type, Alloc: p.ref.Alloc, Healthy: err == nil, HealthDescription: "healthy",
		Stages: s.run.node.storage.Stages(p.config.ID), UpdateTime: s.run.node.clock.now,
	}
	if err != nil {
		next.HealthDescription = err.Error()
	}
	if before := p.found; before != nil && before.Healthy == next.Healthy && before.HealthDescription == next.HealthDescription {
		return
	}
	p.found = next
	s.tell(p.config.ID)
}

// tell tells the core and the servers of a plugin's newest state.
func (s *served) tell(id cluster.PluginID) {
	if p := s.newest(id); p != nil {
		s.run.core.StoragePluginUp(id, volume.Plugin{Stages: p.found.Stages})
	} else {
		s.run.core.StoragePluginDown(id)
	}
	if s.run.node.storage.options.Plugins == nil {
		return
	}
	var plugins []*cluster.StoragePlugin
	for _, p := range slices.Backward(s.all) {
		if f := p.found; f != nil && !slices.ContainsFunc(plugins, func(o *cluster.StoragePlugin) bool { return o.ID == f.ID && o.Type == f.Type }) {
			plugins = append(plugins, f.Copy())
		}
	}
	s.run.node.storage.options.Plugins(plugins)
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
