package volumes

import (
	"cmp"
	"iter"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Controllers is a summary of the controllers of one storage plugin.
type Controllers struct {
	// Expected is the number of controllers on all nodes. Healthy is the number of usable
	// controllers: they are healthy, and their node is ready or drains.
	Expected, Healthy int
	// Attach means that the controllers attach volumes to nodes.
	Attach bool
}

// ControllersOf returns the summary of the plugin's controllers.
func ControllersOf(v View, id cluster.PluginID) (c Controllers) {
	for n := range v.Nodes() {
		p := n.ControllerPlugin(id)
		if p == nil {
			continue
		}
		c.Expected++
		c.Attach = c.Attach || p.Attaches
		if p.Healthy && n.Status == cluster.NodeReady {
			c.Healthy++
		}
	}
	return c
}

// Plugin is one storage plugin of the cluster, as the nodes report it.
type Plugin struct {
	ID cluster.PluginID
	// Provider and Version are from the first node that reports them.
	Provider, Version string
	// Instances are the running instances of the plugin, by node.
	Instances []Instance
	// NeedsController means that volumes need a controller.
	NeedsController bool
}

// Instance is a storage plugin on one node.
type Instance struct {
	Node *cluster.Node
	*cluster.StoragePlugin
}

// Usable reports whether the instance is healthy on a node that is ready.
func (i Instance) Usable() bool { return i.Healthy && i.Node.Status == cluster.NodeReady }

// Count returns the number of instances that mount volumes, the number of usable ones among them,
// and the same numbers for controllers.
func (p *Plugin) Count() (nodes, nodesHealthy, controllers, controllersHealthy int) {
	for _, i := range p.Instances {
		if i.Type.Node() {
			nodes++
			if i.Usable() {
				nodesHealthy++
			}
		}
		if i.Type.Controller() {
			controllers++
			if i.Usable() {
				controllersHealthy++
			}
		}
	}
	return nodes, nodesHealthy, controllers, controllersHealthy
}

// Plugins returns all storage plugins that nodes report, by id.
func Plugins(nodes iter.Seq[*cluster.Node]) []*Plugin {
	byID := make(map[cluster.PluginID]*Plugin)
	var all []*Plugin
	for n := range nodes {
		for _, s := range n.StoragePlugins {
			p := byID[s.ID]
			if p == nil {
				p = &Plugin{ID: s.ID}
				byID[s.ID] = p
				all = append(all, p)
			}
			p.Provider, p.Version = cmp.Or(p.Provider, s.Provider), cmp.Or(p.Version, s.Version)
			p.NeedsController = p.NeedsController || s.NeedsController || s.Type.Controller()
			p.Instances = append(p.Instances, Instance{n, s})
		}
	}
	slices.SortFunc(all, func(a, b *Plugin) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
