package swarm

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// gpu is the kind of the devices of a world.
func gpu() cluster.DeviceKind {
	return cluster.DeviceKind{Vendor: scenario.DefaultVendor, Type: "gpu", Name: scenario.DefaultDeviceName}
}

// oddsOfAnotherRequest is the probability that a group with devices has two requests.
const oddsOfAnotherRequest = 0.3

// drawDevices lets groups use devices, and gives the nodes those of their allocations and perhaps some
// more.
func (m *population) drawDevices() {
	if !m.draft.equipped {
		return
	}
	d := m.draft.dice("devices")
	requested := map[cluster.GroupKey]int{}
	for j, g := range m.draft.s.EachGroup() {
		if g.Plugin || j.Type.EveryNode() || !d.odds(0.6) {
			continue
		}
		r := scenario.DeviceRequest{Name: gpu().Type, Count: one(d, 1, 1, 1, 2)}
		if d.odds(0.2) {
			r.Constraints = []scenario.DeviceConstraint{{DeviceAttribute: memory(8), Operand: ">="}}
		}
		g.Devices = []scenario.DeviceRequest{r}
		if again := m.draft.dice("devices/again/" + string(j.Key.ID) + "." + g.Name); again.odds(oddsOfAnotherRequest) {
			g.Devices = append(g.Devices, scenario.DeviceRequest{Name: gpu().Type, Count: again.between(1, 2)})
		}
		for _, one := range g.Devices {
			requested[cluster.GroupKey{Job: j.Key, Name: g.Name}] += one.Count
		}
	}
	used := map[cluster.NodeID]int{}
	for i := range m.draft.s.Allocs {
		a := &m.draft.s.Allocs[i]
		count := a.Indexes.Count
		if count == 0 {
			count = len(a.On)
		}
		for n := range count {
			used[a.On[n%len(a.On)]] += requested[a.Group]
		}
	}
	least := d.between(0, 1)
	for i := range m.draft.s.Nodes {
		for _, id := range m.draft.s.Nodes[i].IDs {
			if count := used[id] + least + d.between(0, 2); count > 0 {
				m.draft.s.Nodes[i].Devices = gpus(count)
			}
		}
	}
}

// gpus are the devices of a node.
func gpus(count int) []scenario.Devices {
	return []scenario.Devices{{Kind: gpu(), Count: count, Attributes: []scenario.DeviceAttribute{memory(16)}}}
}

// memory is an attribute of devices.
func memory(gib int64) scenario.DeviceAttribute {
	return scenario.DeviceAttribute{Name: "memory", Value: gib, Unit: "GiB"}
}
