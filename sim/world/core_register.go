package world

import (
	"cmp"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
)

// registration is the data that a client registers about its node.
type registration struct {
	node *coreNode
	// facts are the last ones that the client has published, or nil.
	facts *client.NodeFacts
	// storage: the client reports storage plugins. plugins are from its last report.
	storage bool
	plugins []*cluster.StoragePlugin
	// sending: an entry with the registration is in flight, or waits for a retry.
	sending bool
	// due: the present client has not registered yet. It receives no allocations before that. Its requests for
	// claims and its reports wait for that. client counts the clients of the node.
	due     bool
	claims  []*claimRequest
	reports []outgoing
	client  int
}

// begin makes a new client register.
func (r *registration) begin() {
	r.due, r.claims, r.reports = true, nil, nil
	r.client++
	if r.storage { // it has not probed its storage plugins yet
		r.plugins = nil
	}
}

// publish stores the facts of the node. The next step of the nodes sends them.
func (r *registration) publish(facts client.NodeFacts) { r.facts = &facts }

// publishStorage stores the storage plugins of the node, in the order of the servers' state.
func (r *registration) publishStorage(plugins []*cluster.StoragePlugin) {
	slices.SortFunc(plugins, func(a, b *cluster.StoragePlugin) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Type, b.Type))
	})
	r.storage, r.plugins = true, plugins
}

// changed returns the row with the data of the client, or nil if the row already contains it and the client has
// registered.
func (r *registration) changed(row *cluster.Node) *cluster.Node {
	devices := r.facts != nil && !slices.EqualFunc(row.Devices, r.facts.Devices, sameDevices)
	storage := r.storage && !slices.EqualFunc(row.StoragePlugins, r.plugins, samePlugin)
	version := r.node.cores.fleet.world.Truth().ClusterVersion()
	unlisted := version >= cluster.VersionOfConfirmation && r.facts != nil && !row.Unlisted.Equal(r.facts.Unlisted)
	if !devices && !storage && !unlisted && !r.due {
		return nil
	}
	n := row.Copy()
	n.Drain = nil // a registration keeps that of the row
	if unlisted {
		n.Unlisted = r.facts.Unlisted
	}
	if devices {
		n.Devices = nil
		for _, g := range r.facts.Devices {
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

// whenForgotten returns the unlisted allocations with which the client registers a node that the servers do not
// have: all that may run. The client then gets an answer with all allocations of the node.
func (r *registration) whenForgotten() (*cluster.UnlistedAllocs, error) {
	n := r.node
	machine.Forget(n.machine)
	if err := n.advance(); err != nil {
		return nil, err
	}
	n.answered, n.listed = 0, nil
	n.cores.changed(n.id)
	if r.facts == nil {
		return nil, nil
	}
	return r.facts.Unlisted, nil
}

// unlisted returns the unlisted allocations with which the client of a node registers the node again. It is
// nil for a simulated client.
func unlisted(w *World, id cluster.NodeID) (*cluster.UnlistedAllocs, error) {
	if w.clients.real == nil || w.clients.real.node(id) == nil {
		return nil, nil
	}
	if row := w.Truth().Node(id); row != nil {
		return row.Unlisted, nil
	}
	return w.clients.real.node(id).registration.whenForgotten()
}

// send registers the node until the row contains the data of the client. A node that is cut off, or
// that the servers do not have, waits for its next answer.
func (r *registration) send() {
	if r.sending || r.facts == nil && !r.storage && !r.due {
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
	by := r.client
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
		if r.due && r.client == by {
			fleet.real.requests = append(fleet.real.requests, r.claims...)
			fleet.real.outbox = append(fleet.real.outbox, r.reports...)
			r.due, r.claims, r.reports = false, nil, nil
			fleet.real.changed(id)
		}
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
