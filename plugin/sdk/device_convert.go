package sdk

import (
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

func fromGroups(groups []*cluster.DeviceGroup) []*pb.DeviceGroup {
	var all []*pb.DeviceGroup
	for _, g := range groups {
		group := &pb.DeviceGroup{
			Vendor: g.Kind.Vendor, DeviceType: g.Kind.Type, DeviceName: g.Kind.Name,
			Attributes: map[string]*structs.Attribute{},
		}
		for name, a := range g.Attributes {
			group.Attributes[name] = fromAttribute(a)
		}
		for _, d := range g.Devices {
			detected := &pb.DetectedDevice{ID: d.ID, Healthy: d.Healthy, HealthDescription: d.HealthDescription}
			if d.PCIBusID != "" {
				detected.HwLocality = &pb.DeviceLocality{PciBusId: d.PCIBusID}
			}
			group.Devices = append(group.Devices, detected)
		}
		all = append(all, group)
	}
	return all
}

func fromAttribute(a cluster.DeviceAttribute) *structs.Attribute {
	attribute := &structs.Attribute{Unit: a.Unit}
	switch a.Kind {
	case cluster.AttributeInt:
		attribute.Value = &structs.Attribute_IntVal{IntVal: a.Int}
	case cluster.AttributeFloat:
		attribute.Value = &structs.Attribute_FloatVal{FloatVal: a.Float}
	case cluster.AttributeBool:
		attribute.Value = &structs.Attribute_BoolVal{BoolVal: a.Bool}
	case cluster.AttributeText:
		attribute.Value = &structs.Attribute_StringVal{StringVal: a.Text}
	}
	return attribute
}

func fromReservation(r device.Reservation) *pb.ContainerReservation {
	c := &pb.ContainerReservation{Envs: r.Env}
	for _, m := range r.Mounts {
		c.Mounts = append(c.Mounts, &pb.Mount{TaskPath: m.TaskPath, HostPath: m.HostPath, ReadOnly: m.ReadOnly})
	}
	for _, d := range r.Devices {
		c.Devices = append(c.Devices, &pb.DeviceSpec{TaskPath: d.TaskPath, HostPath: d.HostPath, Permissions: d.Permissions})
	}
	return c
}

func fromGroupStats(groups []device.GroupStats) []*pb.DeviceGroupStats {
	var all []*pb.DeviceGroupStats
	for _, g := range groups {
		stats := &pb.DeviceGroupStats{
			Vendor: g.Kind.Vendor, Type: g.Kind.Type, Name: g.Kind.Name,
			InstanceStats: map[string]*pb.DeviceStats{},
		}
		for id, s := range g.Devices {
			stats.InstanceStats[id] = &pb.DeviceStats{Summary: fromStatValue(s.Summary), Stats: fromStatObject(s.Values), Timestamp: fromTime(s.Time)}
		}
		all = append(all, stats)
	}
	return all
}

func fromStatObject(o device.StatObject) *structs.StatObject {
	object := &structs.StatObject{Nested: map[string]*structs.StatObject{}, Attributes: map[string]*structs.StatValue{}}
	for name, nested := range o.Nested {
		object.Nested[name] = fromStatObject(nested)
	}
	for name, value := range o.Values {
		if converted := fromStatValue(value); converted != nil {
			object.Attributes[name] = converted
		}
	}
	return object
}

// fromStatValue returns nil for a value without any part.
func fromStatValue(v device.StatValue) *structs.StatValue {
	if v.IsZero() {
		return nil
	}
	value := &structs.StatValue{Unit: v.Unit, Desc: v.Description}
	if v.FloatNumerator != nil {
		value.FloatNumeratorVal = wrapperspb.Double(*v.FloatNumerator)
	}
	if v.FloatDenominator != nil {
		value.FloatDenominatorVal = wrapperspb.Double(*v.FloatDenominator)
	}
	if v.IntNumerator != nil {
		value.IntNumeratorVal = wrapperspb.Int64(*v.IntNumerator)
	}
	if v.IntDenominator != nil {
		value.IntDenominatorVal = wrapperspb.Int64(*v.IntDenominator)
	}
	if v.Text != nil {
		value.StringVal = wrapperspb.String(*v.Text)
	}
	if v.Bool != nil {
		value.BoolVal = wrapperspb.Bool(*v.Bool)
	}
	return value
}
