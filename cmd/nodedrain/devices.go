package main

import (
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

func kindText(vendor, kind, name string) string {
	return cluster.DeviceKind{Vendor: vendor, Type: kind, Name: name}.String()
}

// assignedTable lists the devices of an allocation by task, or returns nil if it has none.
func assignedTable(a *wire.Allocation) *table {
	if a.AllocatedResources == nil {
		return nil
	}
	var t *table
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
				t = newTable("Task", "Device", "IDs")
			}
			t.row(name, kindText(d.Vendor, d.Type, d.Name), strings.Join(d.DeviceIDs, ", "))
		}
	}
	return t
}
