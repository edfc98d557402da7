package setting

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// DeviceGroups returns the devices of a declared node, in the order of their kinds. Each call
// returns new values.
func DeviceGroups(declared []scenario.Devices) []*cluster.DeviceGroup {
	var groups []*cluster.DeviceGroup
	for _, d := range declared {
		g := &cluster.DeviceGroup{Kind: d.Kind}
		for i := range d.Count {
			g.Devices = append(g.Devices, cluster.Device{ID: d.ID(i), Healthy: true})
		}
		slices.SortFunc(g.Devices, func(a, b cluster.Device) int { return cmp.Compare(a.ID, b.ID) })
		for _, a := range d.Attributes {
			if g.Attributes == nil {
				g.Attributes = map[string]cluster.DeviceAttribute{}
			}
			g.Attributes[a.Name] = cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: a.Value, Unit: a.Unit}
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b *cluster.DeviceGroup) int { return a.Kind.Order(b.Kind) })
	return groups
}

// deviceRequests returns the device requests of a task.
func deviceRequests(declared []scenario.DeviceRequest) (requests []cluster.DeviceRequest) {
	for _, d := range declared {
		r := cluster.DeviceRequest{Name: d.Name, Count: d.Count}
		for _, c := range d.Constraints {
			r.Constraints = append(r.Constraints, cluster.Constraint{
				LTarget: "${device.attr." + c.Name + "}", Operand: c.Operand, RTarget: fmt.Sprintf("%d %s", c.Value, c.Unit),
			})
		}
		requests = append(requests, r)
	}
	return requests
}

// Equip assigns devices, ports and cores to the allocations that exist at the beginning. Ended allocations get none.
// It returns an error if a node has too few.
func Equip(nodes []*cluster.Node, allocs []*cluster.Allocation) error {
	used, ports, cores := map[cluster.NodeID]cluster.DevicesInUse{}, map[cluster.NodeID]cluster.PortsInUse{}, map[cluster.NodeID]cluster.CoresInUse{}
	for _, a := range allocs {
		group := a.Job.Group(a.TaskGroup)
		if group == nil || a.ClientTerminal() || !group.RequestsDevices() && !group.RequestsPorts() && group.Cores() == 0 {
			continue
		}
		at := slices.IndexFunc(nodes, func(n *cluster.Node) bool { return n.ID == a.NodeID })
		if at < 0 {
			continue // it is on a node that the servers do not have
		}
		if used[a.NodeID] == nil {
			used[a.NodeID], ports[a.NodeID], cores[a.NodeID] = cluster.DevicesInUse{}, cluster.PortsInUse{}, cluster.CoresInUse{}
		}
		if !giveOut(nodes[at], a, group, ports[a.NodeID]) {
			return fmt.Errorf("allocation %s: %s does not have its ports, or others have them", a.Name, a.NodeID)
		}
		var ok bool
		if a.Cores, ok = feasible.AssignCores(group, nodes[at], cores[a.NodeID]); !ok {
			return fmt.Errorf("allocation %s: %s has too few cores", a.Name, a.NodeID)
		}
		cores[a.NodeID].Add(a)
		if !group.RequestsDevices() {
			continue
		}
		assigned, ok := feasible.Of(a.Job).Group(group).Devices().Assign(nodes[at], used[a.NodeID])
		if !ok {
			return fmt.Errorf("allocation %s: %s does not have its devices, or others have them", a.Name, a.NodeID)
		}
		a.Devices = assigned.Devices
		used[a.NodeID].Add(a.Devices)
	}
	return nil
}
