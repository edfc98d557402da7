package volume

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

const (
	// ProbeInterval is the time between two probes of a storage plugin that answers. probeAgain is
	// the time between two probes of a plugin that does not answer.
	ProbeInterval = 30 * time.Second
	probeAgain    = time.Second
)

// Starts is the list of the storage plugins that run on the node as tasks, in the order of their
// starts. It does no I/O. The caller guards it and its elements. P is what the shell keeps for each
// start.
type Starts[P any] []*Start[P]

// Start is one start of a storage plugin's task.
type Start[P any] struct {
	ID     driver.TaskID
	Alloc  cluster.AllocID
	Task   string
	Config cluster.CSIPlugin
	Shell  P
	// failing is since when the plugin has not answered, or zero.
	failing time.Time
	// last is the plugin as it is registered with the servers, or nil before its first answer. It
	// is replaced and never changed.
	last *cluster.StoragePlugin
}

// Has reports whether the list contains a start.
func (s Starts[P]) Has(id driver.TaskID) bool {
	return slices.ContainsFunc(s, func(p *Start[P]) bool { return p.ID == id })
}

// Add adds a start. It sets the start's first failure to now, so the health timeout also limits the
// time until the first answer.
func (s *Starts[P]) Add(p *Start[P], now time.Time) {
	p.failing = now
	*s = append(*s, p)
}

// Remove removes the starts of a task and returns them. An empty id means all starts.
func (s *Starts[P]) Remove(alloc cluster.AllocID, task string, id driver.TaskID) (removed []*Start[P]) {
	*s = slices.DeleteFunc(*s, func(p *Start[P]) bool {
		is := p.Alloc == alloc && p.Task == task && (id == "" || p.ID == id)
		if is {
			removed = append(removed, p)
		}
		return is
	})
	return removed
}

// Newest returns the newest healthy plugin with a role, or nil.
func (s Starts[P]) Newest(id cluster.PluginID, role func(cluster.PluginType) bool) *Start[P] {
	for _, p := range slices.Backward(s) {
		if p.Config.ID == id && role(p.Config.Type) && p.Healthy() != nil {
			return p
		}
	}
	return nil
}

// Report returns the plugin that mounts volumes, or nil if none is healthy, and all plugins for the
// servers.
func (s Starts[P]) Report(id cluster.PluginID) (up *Plugin, all []*cluster.StoragePlugin) {
	for _, p := range slices.Backward(s) { // the newest start of a plugin first
		if f := p.last; f != nil && !slices.ContainsFunc(all, func(o *cluster.StoragePlugin) bool { return o.ID == f.ID && o.Type == f.Type }) {
			all = append(all, f.Copy())
		}
	}
	if p := s.Newest(id, cluster.PluginType.Node); p != nil {
		up = &Plugin{Stages: p.last.Stages}
	}
	return up, all
}

// Healthy returns the plugin's description of itself, or nil if its last probe failed.
func (p *Start[P]) Healthy() *cluster.StoragePlugin {
	if p.last == nil || !p.last.Healthy {
		return nil
	}
	return p.last
}

// Limit is the longest time without an answer after which the plugin is restarted.
func (p *Start[P]) Limit() time.Duration {
	return cmp.Or(p.Config.HealthTimeout, cluster.DefaultPluginHealthTimeout)
}

// Probed records the result of a probe. It returns the time until the next probe, whether to
// restart the plugin, and whether its state has changed. A plugin is restarted if it does not
// answer for its health timeout since its start or since the first failed probe. After a failure
// the next answer may be from a new process of the plugin.
func (p *Start[P]) Probed(found *cluster.StoragePlugin, err error, now time.Time) (wait time.Duration, restart, changed bool) {
	wait = ProbeInterval
	if err == nil {
		p.failing = time.Time{}
	} else {
		wait = probeAgain
		if p.failing.IsZero() {
			p.failing = now
		}
		if restart = now.Sub(p.failing) >= p.Limit(); restart {
			p.failing = now
		}
		found = &cluster.StoragePlugin{Type: p.Config.Type}
		if p.last != nil {
			found = p.last
		}
	}
	next := found.Copy()
	next.ID, next.Alloc, next.Healthy, next.HealthDescription = p.Config.ID, p.Alloc, err == nil, "healthy"
	if err != nil {
		next.HealthDescription = cluster.CutText(err.Error())
	}
	changed = p.last == nil || p.last.Healthy != next.Healthy || p.last.HealthDescription != next.HealthDescription
	if changed {
		next.UpdateTime = now
		p.last = next
	}
	return wait, restart, changed
}
