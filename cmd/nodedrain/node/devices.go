package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// device names one device of a node.
type device struct{ vendor, kind, name, id string }

// ownerTable lists the devices of a node with the allocations that have them.
func ownerTable(n *wire.Node, allocs []*wire.Allocation, verbose bool) *cli.Table {
	owners := map[device]string{}
	for _, a := range allocs {
		if a.AllocatedResources == nil || !holdsDevices(a) {
			continue
		}
		for _, t := range a.AllocatedResources.Tasks {
			if t == nil {
				continue
			}
			for _, d := range t.Devices {
				if d == nil {
					continue
				}
				for _, id := range d.DeviceIDs {
					owners[device{d.Vendor, d.Type, d.Name, id}] = cli.ShortID(a.ID, verbose)
				}
			}
		}
	}
	t := cli.NewTable("Device", "ID", "Healthy", "Allocation", "Description")
	for _, g := range n.NodeResources.Devices {
		if g == nil {
			continue
		}
		for _, d := range g.Instances {
			if d == nil {
				continue
			}
			owner := owners[device{g.Vendor, g.Type, g.Name, d.ID}]
			t.Row(alloc.KindText(g.Vendor, g.Type, g.Name), d.ID, fmt.Sprint(d.Healthy), cmp.Or(owner, "-"), cmp.Or(d.HealthDescription, "-"))
		}
	}
	return t
}

// deviceProblemTable says by device plugin why it has no devices, or which parts of its report the
// client ignores. It returns nil if there is no problem.
func deviceProblemTable(n *wire.Node) *cli.Table {
	problems := cluster.DeviceProblems(n.Attributes)
	if len(problems) == 0 {
		return nil
	}
	t := cli.NewTable("Plugin", "Problem")
	for _, plugin := range slices.Sorted(maps.Keys(problems)) {
		t.Row(cmp.Or(plugin, "-"), problems[plugin])
	}
	return t
}

// holdsDevices reports whether the allocation has not ended, so that its devices are in use.
func holdsDevices(a *wire.Allocation) bool {
	switch cluster.ClientStatus(a.ClientStatus) {
	case cluster.ClientComplete, cluster.ClientFailed, cluster.ClientLost:
		return false
	}
	return true
}
