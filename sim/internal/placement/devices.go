package placement

import (
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// judgeDevices checks the devices of a new allocation against its tasks, its node, and the other
// allocations there.
func (p *plan) judgeDevices(a *cluster.Allocation) {
	var has []cluster.AssignedDevice
	if a.Devices != nil {
		has = a.Devices.All
	}
	p.judgeRequests(a, has)
	n := p.after.Node(a.NodeID)
	for i, d := range has {
		if len(d.IDs) > 0 && n == nil {
			continue // judgeNode reports it
		}
		for k, id := range d.IDs {
			if !hasHealthy(n, d.Kind, id) {
				p.report(WrongDevices, a, "%s %s is not a healthy device of the node", d.Kind, id)
			}
			if slices.Contains(d.IDs[:k], id) || hasDevice(has[:i], d.Kind, id) {
				p.report(GivenTwice, a, "it has %s %s twice", d.Kind, id)
			}
			for other := range p.after.WorkView().LiveAllocsByNode(a.NodeID) {
				if other.ID != a.ID && other.Devices != nil && hasDevice(other.Devices.All, d.Kind, id) {
					p.report(GivenTwice, a, "allocation %s has %s %s too", other.ID, d.Kind, id)
				}
			}
		}
	}
}

// judgeRequests checks that the devices match the requests of the group's tasks, in their order. It
// does not judge constraints.
func (p *plan) judgeRequests(a *cluster.Allocation, has []cluster.AssignedDevice) {
	s := p.groups[a.TaskGroup]
	if s == nil {
		return // judgeRow reports it
	}
	for _, t := range s.group.Tasks {
		for _, r := range t.Devices {
			if len(has) == 0 {
				p.report(WrongDevices, a, "task %s has no %s", t.Name, r.Name)
				return
			}
			d := has[0]
			has = has[1:]
			if d.Task != t.Name || len(d.IDs) != r.Count || !named(r.Name, d.Kind) {
				p.report(WrongDevices, a, "task %s requests %d %s, and task %s has %d %s", t.Name, r.Count, r.Name, d.Task, len(d.IDs), d.Kind)
			}
		}
	}
	if len(has) > 0 {
		p.report(WrongDevices, a, "no task requests its %s", has[0].Kind)
	}
}

// named reports whether a request with the name may get devices of the kind.
func named(name string, k cluster.DeviceKind) bool {
	switch parts := strings.SplitN(name, "/", 3); len(parts) {
	case 1:
		return k.Type == parts[0]
	case 2:
		return k.Vendor == parts[0] && k.Type == parts[1]
	default:
		return k.Vendor == parts[0] && k.Type == parts[1] && k.Name == parts[2]
	}
}

func hasHealthy(n *cluster.Node, k cluster.DeviceKind, id string) bool {
	for _, g := range n.Devices {
		if g.Kind == k && slices.ContainsFunc(g.Devices, func(d cluster.Device) bool { return d.ID == id && d.Healthy }) {
			return true
		}
	}
	return false
}

func hasDevice(all []cluster.AssignedDevice, k cluster.DeviceKind, id string) bool {
	return slices.ContainsFunc(all, func(d cluster.AssignedDevice) bool { return d.Kind == k && slices.Contains(d.IDs, id) })
}
