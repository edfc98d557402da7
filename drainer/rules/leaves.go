package rules

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// VolumeView is an optional interface of a [View], for clusters with volumes. If the view does not
// implement it, a drain leaves no storage plugin on the node.
type VolumeView interface {
	// VolumePlugins yields the storage plugins of the volumes that the allocation has claimed and
	// that may be mounted on its node. It may yield a plugin twice. The allocation need not exist.
	VolumePlugins(cluster.AllocID) iter.Seq[cluster.PluginID]
}

// users maps a storage plugin to an allocation that the drain leaves on its node and that uses a
// volume of the plugin: the first by id that is not leaving for another reason, or else the first
// by id.
type users map[cluster.PluginID]cluster.AllocID

// leaves reports whether the allocation must leave its node, which drains.
func (s *Planner) leaves(a *cluster.Allocation, n *cluster.Node) bool {
	return n.Drain.Leaves(a.Stage()) && s.staysFor(a, n) == ""
}

// staysFor returns an allocation for which the drain leaves a storage plugin on the node: the
// plugin serves its volumes, and the drain leaves the allocation too. It returns "" if there is
// none.
func (s *Planner) staysFor(a *cluster.Allocation, n *cluster.Node) cluster.AllocID {
	if !n.Drain.Strategy.IgnoreSystemJobs || a.Stage() != cluster.StagePlugins {
		return ""
	}
	g := a.Job.Group(a.TaskGroup)
	if g == nil {
		return ""
	}
	for _, t := range g.Tasks {
		if t == nil || t.CSIPlugin == nil || !t.CSIPlugin.Type.Node() {
			continue
		}
		if user := s.usersOn(n)[t.CSIPlugin.ID]; user != "" {
			return user
		}
	}
	return ""
}

// usersOn returns the users on a node that drains. It caches them, because marks and completions
// change no claim and no system allocation that a drain leaves.
func (s *Planner) usersOn(n *cluster.Node) users {
	found, cached := s.users[n.ID]
	if cached {
		return found
	}
	if v, has := s.view.(VolumeView); has && n.Drain.Strategy.IgnoreSystemJobs {
		found = users{}
		for _, leaving := range [...]bool{false, true} {
			for a := range s.view.NodeAllocs(n.ID, cluster.StageSystem, leaving) {
				for plugin := range v.VolumePlugins(a.ID) {
					if found[plugin] == "" {
						found[plugin] = a.ID
					}
				}
			}
		}
	}
	if s.users == nil {
		s.users = map[cluster.NodeID]users{}
	}
	s.users[n.ID] = found
	return found
}
