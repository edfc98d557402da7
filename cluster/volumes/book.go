package volumes

import (
	"fmt"
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// View is one consistent state of volumes.
type View interface {
	// Volume returns the volume, or nil.
	Volume(cluster.VolumeKey) *cluster.Volume
	// ClaimsOfVolume yields the claims of the volume, claims that write first. The volume need not
	// exist.
	ClaimsOfVolume(cluster.VolumeKey) iter.Seq[*cluster.VolumeClaim]
	// ClaimsOnNode yields the claims of allocations on the node. The node need not exist.
	ClaimsOnNode(cluster.NodeID) iter.Seq[*cluster.VolumeClaim]
	// Nodes yields all nodes.
	Nodes() iter.Seq[*cluster.Node]
}

// Book checks the placements of plans one after the other. Each check takes the placements that
// were added before into account. A Book belongs to one goroutine.
type Book struct {
	view View
	// byVolume and onNode are the claims that were added.
	byVolume map[cluster.VolumeKey][]*cluster.VolumeClaim
	onNode   map[cluster.NodeID][]*cluster.VolumeClaim
	// controllers is a cache of [ControllersOf].
	controllers map[cluster.PluginID]Controllers
}

// NewBook returns a book for the state. The view must not change while the book is used.
func NewBook(v View) *Book { return &Book{view: v} }

// Unclaimable returns why an allocation with this name cannot use the volumes of its group on any
// node, or the empty string.
func (b *Book) Unclaimable(ns cluster.Namespace, g *cluster.TaskGroup, allocName string) string {
	for i, r := range g.Volumes {
		k := keyOf(ns, r, allocName)
		for _, o := range g.Volumes[:i] { // registration refuses such jobs, but an old state may contain one
			if keyOf(ns, o, allocName) == k {
				return fmt.Sprintf("requests %q and %q are both volume %s: an allocation has one claim of a volume", o.Name, r.Name, k)
			}
		}
		if why := b.unclaimable(k, r); why != "" {
			return why
		}
	}
	return ""
}

// Unfit returns why the storage plugins of the node cannot serve the volumes of an allocation with
// this name, or the empty string. It ignores volumes that do not exist.
func (b *Book) Unfit(ns cluster.Namespace, g *cluster.TaskGroup, allocName string, n *cluster.Node) string {
	for _, r := range g.Volumes {
		if v := b.view.Volume(keyOf(ns, r, allocName)); v != nil {
			if why := b.unfit(v, n); why != "" {
				return why
			}
		}
	}
	return ""
}

// Refusal returns why an allocation with this name may not use the volumes of its group on the
// node, or the empty string.
func (b *Book) Refusal(ns cluster.Namespace, g *cluster.TaskGroup, allocName string, n *cluster.Node) string {
	if len(g.Volumes) == 0 {
		return ""
	}
	if why := b.Unclaimable(ns, g, allocName); why != "" {
		return why
	}
	if why := b.Unfit(ns, g, allocName, n); why != "" {
		return why
	}
	return b.full(ns, g, allocName, n)
}

// Add adds the claims of a placed allocation.
func (b *Book) Add(a *cluster.Allocation, g *cluster.TaskGroup) {
	if len(g.Volumes) == 0 {
		return
	}
	if b.byVolume == nil {
		b.byVolume = make(map[cluster.VolumeKey][]*cluster.VolumeClaim)
		b.onNode = make(map[cluster.NodeID][]*cluster.VolumeClaim)
	}
	for _, r := range g.Volumes {
		c := newClaim(a, r)
		b.byVolume[c.Volume] = append(b.byVolume[c.Volume], c)
		b.onNode[c.Node] = append(b.onNode[c.Node], c)
	}
}

// Claims returns the claims of a new allocation on the node. The node exists, and the caller has
// checked [Book.Refusal].
func (b *Book) Claims(a *cluster.Allocation, g *cluster.TaskGroup, n *cluster.Node) []*cluster.VolumeClaim {
	var claims []*cluster.VolumeClaim
	for _, r := range g.Volumes {
		c := newClaim(a, r)
		if v := b.view.Volume(c.Volume); v != nil {
			c.Controller = b.controllersOf(v.Plugin).Attach
			if p := n.NodePlugin(v.Plugin); p != nil {
				c.ExternalNodeID = p.NodeID
			}
		}
		claims = append(claims, c)
	}
	return claims
}

func newClaim(a *cluster.Allocation, r cluster.VolumeRequest) *cluster.VolumeClaim {
	return &cluster.VolumeClaim{
		Volume: keyOf(a.Namespace, r, a.Name), Alloc: a.ID, Node: a.NodeID, Mode: r.Mode(), Capability: r.Capability,
	}
}

func keyOf(ns cluster.Namespace, r cluster.VolumeRequest, allocName string) cluster.VolumeKey {
	return cluster.VolumeKey{Namespace: ns, ID: r.VolumeOf(allocName)}
}

// unclaimable returns why the request has no free claim of the volume, or the empty string.
func (b *Book) unclaimable(k cluster.VolumeKey, r cluster.VolumeRequest) string {
	v := b.view.Volume(k)
	switch {
	case v == nil:
		return fmt.Sprintf("volume %s does not exist", k)
	case !v.Allows(r.Capability):
		return fmt.Sprintf("volume %s does not allow %s", k, r.Capability)
	}
	// The claims of a volume have the same mode, and claims that write come first. So the first
	// claim decides.
	for _, c := range b.byVolume[k] {
		if why := conflict(c, r); why != "" {
			return why
		}
	}
	for c := range b.view.ClaimsOfVolume(k) {
		return conflict(c, r)
	}
	return ""
}

// conflict returns why the request and a claim of its volume exclude each other, or the empty string.
func conflict(c *cluster.VolumeClaim, r cluster.VolumeRequest) string {
	access := r.Capability.Access
	if c.Capability == r.Capability && !access.SingleNode() && !(access.SingleWriter() && c.Writes() && !r.ReadOnly) {
		return ""
	}
	return fmt.Sprintf("volume %s is claimed by allocation %s on node %s (%s, %s)", c.Volume, c.Alloc, c.Node, c.Capability.Access, c.State)
}

// unfit is Unfit for one volume.
func (b *Book) unfit(v *cluster.Volume, n *cluster.Node) string {
	p := n.NodePlugin(v.Plugin)
	switch {
	case p == nil:
		return fmt.Sprintf("storage plugin %s does not run on the node", v.Plugin)
	case !p.Healthy:
		return fmt.Sprintf("storage plugin %s is unhealthy on the node", v.Plugin)
	case !v.ReachableFrom(p.Topology):
		return fmt.Sprintf("volume %s cannot be reached from the node", v.Key())
	}
	if c := b.controllersOf(v.Plugin); (p.NeedsController || c.Expected > 0) && c.Healthy == 0 {
		return fmt.Sprintf("storage plugin %s has no healthy controller", v.Plugin)
	}
	return ""
}

// full returns why the node cannot use the volumes now, or the empty string. The reason is that a
// controller is detaching one of them, or that a plugin has reached its largest number of volumes.
// A volume counts once on a node.
func (b *Book) full(ns cluster.Namespace, g *cluster.TaskGroup, allocName string, n *cluster.Node) string {
	var on map[cluster.PluginID]map[cluster.VolumeKey]bool
	for _, r := range g.Volumes {
		k := keyOf(ns, r, allocName)
		for c := range b.view.ClaimsOnNode(n.ID) {
			if c.Volume == k && !c.State.OnNode() {
				return fmt.Sprintf("volume %s is being detached from the node", k)
			}
		}
		id := b.view.Volume(k).Plugin
		p := n.NodePlugin(id)
		if p.MaxVolumes <= 0 {
			continue
		}
		if on == nil {
			on = b.volumesOn(n.ID)
		}
		if on[id] == nil {
			on[id] = make(map[cluster.VolumeKey]bool)
		}
		on[id][k] = true
		if int64(len(on[id])) > p.MaxVolumes {
			return fmt.Sprintf("storage plugin %s takes at most %d volumes on the node", id, p.MaxVolumes)
		}
	}
	return ""
}

func (b *Book) volumesOn(n cluster.NodeID) map[cluster.PluginID]map[cluster.VolumeKey]bool {
	on := make(map[cluster.PluginID]map[cluster.VolumeKey]bool)
	count := func(c *cluster.VolumeClaim) {
		v := b.view.Volume(c.Volume)
		if v == nil {
			return
		}
		if on[v.Plugin] == nil {
			on[v.Plugin] = make(map[cluster.VolumeKey]bool)
		}
		on[v.Plugin][c.Volume] = true
	}
	for c := range b.view.ClaimsOnNode(n) {
		count(c)
	}
	for _, c := range b.onNode[n] {
		count(c)
	}
	return on
}

// controllersOf is ControllersOf with a cache, because it reads every node.
func (b *Book) controllersOf(id cluster.PluginID) Controllers {
	c, exists := b.controllers[id]
	if !exists {
		c = ControllersOf(b.view, id)
		if b.controllers == nil {
			b.controllers = make(map[cluster.PluginID]Controllers)
		}
		b.controllers[id] = c
	}
	return c
}
