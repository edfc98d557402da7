package swarm

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// equipped counts the placements with devices.
func (o *Observer) equipped(a shims.Applied, places []*cluster.Allocation) {
	for _, placed := range places {
		if placed.Devices == nil {
			continue
		}
		o.count(DeviceGiven, draining(a.After) > 0)
		lost := false
		for other := range a.Before.AllocsByNode(placed.NodeID) {
			lost = lost || other.ClientStatus == cluster.ClientLost && other.Devices != nil && slices.ContainsFunc(other.Devices.All, func(d cluster.AssignedDevice) bool {
				return has(placed.Devices, d)
			})
		}
		o.count(DeviceOfLost, lost)
	}
}

// has reports whether one of the devices is in the list.
func has(all *cluster.AssignedDevices, one cluster.AssignedDevice) bool {
	return slices.ContainsFunc(all.All, func(d cluster.AssignedDevice) bool {
		return d.Kind == one.Kind && slices.ContainsFunc(d.IDs, func(id string) bool { return slices.Contains(one.IDs, id) })
	})
}

// loses reports whether a node that registers again has a device less, or an unhealthy one more, which an
// allocation has.
func loses(a shims.Applied, id cluster.NodeID) bool {
	before, after := a.Before.Node(id), a.After.Node(id)
	if before == nil || after == nil || len(before.Devices) == 0 {
		return false
	}
	for alloc := range a.After.LiveAllocsByNode(id) {
		if alloc.Devices == nil {
			continue
		}
		for _, d := range alloc.Devices.All {
			for _, one := range d.IDs {
				if gives(before, d.Kind, one) && !gives(after, d.Kind, one) {
					return true
				}
			}
		}
	}
	return false
}

// gives reports whether a node has a device, and it is healthy.
func gives(n *cluster.Node, kind cluster.DeviceKind, id string) bool {
	g := n.DeviceGroup(kind)
	if g == nil {
		return false
	}
	d := g.Device(id)
	return d != nil && d.Healthy
}
