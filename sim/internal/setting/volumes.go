package setting

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Volumes returns the volumes of a declaration.
func Volumes(v scenario.Volume) (all []*cluster.Volume) {
	for _, id := range v.IDs() {
		all = append(all, &cluster.Volume{
			Namespace: cluster.DefaultNamespace, ID: id, Name: string(id), ExternalID: "ext-" + string(id), Plugin: v.Plugin,
			Capabilities: []cluster.VolumeCapability{capability(&v)},
		})
	}
	return all
}

func capability(v *scenario.Volume) cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: v.AccessMode(), Attachment: cluster.AttachFileSystem}
}

// DeclaredVolume returns the volume that the scenario declares, or nil.
func DeclaredVolume(s *scenario.Scenario, id cluster.VolumeID) *cluster.Volume {
	for _, d := range s.Volumes {
		for _, v := range Volumes(d) {
			if v.ID == id {
				return v
			}
		}
	}
	return nil
}

// volumeRequests returns the volume requests of a group. A volume that the scenario no longer
// declares is requested in the default mode.
func volumeRequests(s *scenario.Scenario, g scenario.Group) (requests []cluster.VolumeRequest) {
	for _, u := range g.Volumes {
		v := s.VolumeNamed(u)
		if v == nil {
			v = &scenario.Volume{}
		}
		requests = append(requests, cluster.VolumeRequest{
			Name: string(u.Name), Type: cluster.VolumeCSI, Source: u.Name, ReadOnly: u.ReadOnly, PerAlloc: u.PerAlloc, Capability: capability(v),
		})
	}
	return requests
}

// csiPlugin returns the storage plugin that a task of the group runs, or nil.
func csiPlugin(g scenario.Group) *cluster.CSIPlugin {
	if g.Serves.Plugin == "" {
		return nil
	}
	return &cluster.CSIPlugin{ID: g.Serves.Plugin, Type: g.Serves.PluginType()}
}

// Storage is what the programs of one storage plugin can do.
type Storage struct {
	// Stages: its node plugins stage volumes.
	Stages bool
	// Controllers: it has controllers, which attach volumes to nodes.
	Controllers bool
}

// StorageOf returns what the programs of a storage plugin of the scenario can do.
func StorageOf(s *scenario.Scenario, id cluster.PluginID) Storage {
	can := Storage{Stages: true}
	for _, g := range s.EachGroup() {
		if g.Serves.Plugin == id {
			can.Stages = can.Stages && !g.Serves.Unstaged
			can.Controllers = can.Controllers || g.Serves.PluginType().Controller()
		}
	}
	return can
}

// Report is what a node reports of a storage plugin that runs in the allocation.
func (c Storage) Report(p *cluster.CSIPlugin, alloc cluster.AllocID, node cluster.NodeID, healthy bool, at time.Time) *cluster.StoragePlugin {
	r := &cluster.StoragePlugin{ID: p.ID, Type: p.Type, Alloc: alloc, Healthy: healthy, HealthDescription: "healthy", UpdateTime: at}
	if !healthy {
		r.HealthDescription = "it does not answer"
	}
	if p.Type.Node() {
		r.NodeID, r.Stages, r.NeedsController = "ext-"+string(node), c.Stages, c.Controllers
	}
	r.Attaches = p.Type.Controller()
	return r
}

// HoldLimit is how long the clients of the scenario hold storage plugins.
func HoldLimit(s *scenario.Scenario) time.Duration {
	return cmp.Or(s.Cluster.Hold, client.DefaultHoldLimit)
}

// Provide makes nodes report the storage plugins that run on them at the beginning. Of two plugins
// with the same id and type a node reports the first.
func Provide(s *scenario.Scenario, nodes []*cluster.Node, allocs []*cluster.Allocation, now time.Time) {
	for _, a := range allocs {
		group := a.Job.Group(a.TaskGroup)
		if group == nil || a.ClientStatus != cluster.ClientRunning {
			continue
		}
		at := slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.ID == a.NodeID })
		for _, task := range group.Tasks {
			p := task.CSIPlugin
			same := func(o *cluster.StoragePlugin) bool { return o.ID == p.ID && o.Type == p.Type }
			if p != nil && at >= 0 && !slices.ContainsFunc(nodes[at].StoragePlugins, same) {
				nodes[at].StoragePlugins = append(nodes[at].StoragePlugins, StorageOf(s, p.ID).Report(p, a.ID, a.NodeID, true, now))
				nodes[at].VolumeAllowance, nodes[at].HoldLimit = HoldLimit(s), HoldLimit(s)
			}
		}
	}
}
