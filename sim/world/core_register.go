package world

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// registration is the data that a client registers about its node.
type registration struct {
	node *coreNode
	// devices are the last facts that the client has published, or nil.
	devices *client.NodeFacts
	// storage: the client reports storage plugins. plugins are from its last report.
	storage bool
	plugins []*cluster.StoragePlugin
	// sending: an entry with the registration is in flight, or waits for a retry.
	sending bool
}

// publish stores the facts of the node. The next step of the nodes sends them.
func (r *registration) publish(facts client.NodeFacts) { r.devices = &facts }

// publishStorage stores the storage plugins of the node, in the order of the servers' state.
func (r *registration) publishStorage(plugins []*cluster.StoragePlugin) {
	slices.SortFunc(plugins, func(a, b *cluster.StoragePlugin) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Type, b.Type))
	})
	r.storage, r.plugins = true, plugins
}

// changed returns the row with the data of the client, or nil if the row already contains it.
func (r *registration) changed(row *cluster.Node) *cluster.Node {
	devices := r.devices != nil && !slices.EqualFunc(row.Devices, r.devices.Devices, sameDevices)
	storage := r.storage && !slices.EqualFunc(row.StoragePlugins, r.plugins, samePlugin)
	if !devices && !storage {
		return nil
	}
	n := row.Copy()
	if devices {
		n.Devices = nil
		for _, g := range r.devices.Devices {
			n.Devices = append(n.Devices, g.Copy())
		}
	}
	if storage {
		n.StoragePlugins = nil
		for _, p := range r.plugins {
			n.StoragePlugins = append(n.StoragePlugins, p.Copy())
		}
		// Also without plugins, because volumes may be mounted.
		n.VolumeAllowance, n.HoldLimit = r.node.machine.Volumes().HoldLimit(), r.node.machine.Volumes().HoldLimit()
	}
	return n
}

// send registers the node until the row contains the data of the client. A node that is cut off, or
// that the servers do not have, waits for its next answer.
func (r *registration) send() {
	if r.sending || r.devices == nil && !r.storage {
		return
	}
	fleet := r.node.cores.fleet
	w, id := fleet.world, r.node.id
	if !r.node.reachable() {
		return
	}
	n := r.changed(r.node.row)
	if n == nil {
		return
	}
	r.sending = true
	again := func() {
		w.At(w.now.Add(retryAfter), func() error {
			r.sending = false
			r.send()
			return nil
		})
	}
	taken := w.Log.propose(nil, FromClients, w.Operator.Requests.RegisterNode(n), func(a shims.Answer) {
		if o := fleet.silent[id]; o != nil && o.status.sent != nil && w.Truth().Node(id).Reachable() {
			_ = o.status.start() // the node was cut off while it registered
		}
		if a.Outcome != raftwrite.Applied {
			again()
			return
		}
		r.sending = false
		r.send()
	})
	if !taken {
		again()
	}
}

func sameDevices(a, b *cluster.DeviceGroup) bool {
	return a.Kind == b.Kind && slices.Equal(a.Devices, b.Devices)
}

func samePlugin(a, b *cluster.StoragePlugin) bool {
	return a.SameService(b) && a.Alloc == b.Alloc
}
