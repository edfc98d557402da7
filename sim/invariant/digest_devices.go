package invariant

import (
	"maps"
	"math"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// The methods of this file add devices.

func (d digest) kind(k cluster.DeviceKind) digest {
	return text(text(text(d, k.Vendor), k.Type), k.Name)
}

func (d digest) devices(groups []*cluster.DeviceGroup) digest {
	d = d.int(len(groups))
	for _, g := range groups {
		if g == nil {
			d = d.number(19)
			continue
		}
		d = d.kind(g.Kind).int(len(g.Attributes))
		for _, name := range slices.Sorted(maps.Keys(g.Attributes)) {
			a := g.Attributes[name]
			d = text(d, name).number(uint64(a.Kind)).number(uint64(a.Int)).number(math.Float64bits(a.Float)).bool(a.Bool)
			d = text(text(d, a.Text), a.Unit)
		}
		d = d.int(len(g.Devices))
		for _, one := range g.Devices {
			d = text(text(text(d, one.ID).bool(one.Healthy), one.HealthDescription), one.PCIBusID)
		}
	}
	return d
}

func (d digest) requests(list []cluster.DeviceRequest) digest {
	d = d.int(len(list))
	for _, r := range list {
		d = text(d, r.Name).int(r.Count).constraints(r.Constraints).int(len(r.Affinities))
		for _, a := range r.Affinities {
			d = d.constraints([]cluster.Constraint{a.Constraint}).int(a.Weight)
		}
	}
	return d
}

func (d digest) assigned(a *cluster.AssignedDevices) digest {
	if a == nil {
		return d
	}
	d = d.int(len(a.All))
	for _, one := range a.All {
		d = text(d, one.Task).kind(one.Kind).int(len(one.IDs))
		for _, id := range one.IDs {
			d = text(d, id)
		}
	}
	return d
}
