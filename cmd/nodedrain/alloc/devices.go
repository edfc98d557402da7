package alloc

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// KindText returns the name of a kind of devices.
func KindText(vendor, kind, name string) string {
	return cluster.DeviceKind{Vendor: vendor, Type: kind, Name: name}.String()
}

// AssignedTable lists the devices of an allocation by task, or returns nil if it has none.
func AssignedTable(a *wire.Allocation) *cli.Table {
	if a.AllocatedResources == nil {
		return nil
	}
	var t *cli.Table
	for _, name := range taskNames(a) {
		has := a.AllocatedResources.Tasks[name]
		if has == nil {
			continue
		}
		for _, d := range has.Devices {
			if d == nil {
				continue
			}
			if t == nil {
				t = cli.NewTable("Task", "Device", "IDs")
			}
			t.Row(name, KindText(d.Vendor, d.Type, d.Name), strings.Join(d.DeviceIDs, ", "))
		}
	}
	return t
}
