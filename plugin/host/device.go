package host

import (
	"context"
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	pb "github.com/seed-f9cf0b39/nodedrain/plugin/proto/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/proto/structs"
)

// devices is the device plugin in a process. It is part of an [Instance].
type devices struct {
	calls
	client pb.DevicePluginClient
}

var _ device.Plugin = (*devices)(nil)

// reserve is the name of the call that prepares devices.
const reserve = "Reserve"

// Fingerprints implements device.Plugin. It reports the first devices at once. Then it reports the
// newest devices, at most once in each interval of the options.
func (d *devices) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	return open(ctx, &d.calls, d.client.Fingerprint, "Fingerprint", &pb.FingerprintRequest{}, func(receive func() (*pb.FingerprintResponse, error)) error {
		return newest(d.options.FingerprintInterval, receive, func(answer *pb.FingerprintResponse) { report(fromGroups(answer.GetDeviceGroup())) })
	})
}

// Reserve implements device.Plugin. The answer does not contain the ids of its devices.
func (d *devices) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	answer, err := invoke(ctx, &d.calls, d.client.Reserve, reserve, &pb.ReserveRequest{DeviceIds: ids})
	if err != nil {
		return device.Reservation{}, err
	}
	return fromReservation(answer.GetContainerRes()), nil
}

// Stats implements device.Plugin.
func (d *devices) Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	request := &pb.StatsRequest{CollectionInterval: durationpb.New(interval)}
	return open(ctx, &d.calls, d.client.Stats, "Stats", request, each(func(s *pb.StatsResponse) { report(fromGroupStats(s.GetGroups())) }))
}

// fromGroups converts the groups without checks: package device checks them. It only removes
// control characters from texts for people.
func fromGroups(groups []*pb.DeviceGroup) []*cluster.DeviceGroup {
	all := make([]*cluster.DeviceGroup, 0, len(groups))
	for _, g := range groups {
		group := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: g.GetVendor(), Type: g.GetDeviceType(), Name: g.GetDeviceName()}}
		for name, a := range g.GetAttributes() {
			if group.Attributes == nil {
				group.Attributes = map[string]cluster.DeviceAttribute{}
			}
			group.Attributes[name] = fromDeviceAttribute(a)
		}
		for _, d := range g.GetDevices() {
			group.Devices = append(group.Devices, cluster.Device{
				ID: d.GetID(), Healthy: d.GetHealthy(), HealthDescription: plain(d.GetHealthDescription()), PCIBusID: d.GetHwLocality().GetPciBusId(),
			})
		}
		all = append(all, group)
	}
	return all
}

// fromDeviceAttribute returns an attribute with its type. An attribute without a value is an empty
// text.
func fromDeviceAttribute(a *structs.Attribute) cluster.DeviceAttribute {
	attribute := cluster.DeviceAttribute{Unit: plain(a.GetUnit())}
	switch v := a.GetValue().(type) {
	case *structs.Attribute_FloatVal:
		attribute.Kind, attribute.Float = cluster.AttributeFloat, v.FloatVal
	case *structs.Attribute_IntVal:
		attribute.Kind, attribute.Int = cluster.AttributeInt, v.IntVal
	case *structs.Attribute_BoolVal:
		attribute.Kind, attribute.Bool = cluster.AttributeBool, v.BoolVal
	case *structs.Attribute_StringVal:
		attribute.Text = plain(v.StringVal)
	}
	return attribute
}

func fromReservation(c *pb.ContainerReservation) device.Reservation {
	r := device.Reservation{Env: c.GetEnvs()}
	for _, m := range c.GetMounts() {
		r.Mounts = append(r.Mounts, driver.Mount{TaskPath: m.GetTaskPath(), HostPath: m.GetHostPath(), ReadOnly: m.GetReadOnly()})
	}
	for _, d := range c.GetDevices() {
		r.Devices = append(r.Devices, driver.Device{TaskPath: d.GetTaskPath(), HostPath: d.GetHostPath(), Permissions: d.GetPermissions()})
	}
	return r
}

func fromGroupStats(groups []*pb.DeviceGroupStats) []device.GroupStats {
	all := make([]device.GroupStats, 0, len(groups))
	for _, g := range groups {
		stats := device.GroupStats{
			Kind:    cluster.DeviceKind{Vendor: g.GetVendor(), Type: g.GetType(), Name: g.GetName()},
			Devices: map[string]device.Stats{},
		}
		for id, s := range g.GetInstanceStats() {
			stats.Devices[id] = device.Stats{
				Time: fromTime(s.GetTimestamp()), Summary: fromStatValue(s.GetSummary()), Values: fromStatObject(s.GetStats(), maxStatDepth),
			}
		}
		all = append(all, stats)
	}
	return all
}

// maxStatDepth is the largest depth of a tree of values. Deeper values are left out.
const maxStatDepth = 16

func fromStatObject(o *structs.StatObject, depth int) device.StatObject {
	var object device.StatObject
	if len(o.GetNested()) > 0 && depth > 1 {
		object.Nested = map[string]device.StatObject{}
		for name, nested := range o.GetNested() {
			object.Nested[name] = fromStatObject(nested, depth-1)
		}
	}
	for name, value := range o.GetAttributes() {
		if object.Values == nil {
			object.Values = map[string]device.StatValue{}
		}
		object.Values[name] = fromStatValue(value)
	}
	return object
}

func fromStatValue(v *structs.StatValue) device.StatValue {
	value := device.StatValue{
		FloatNumerator: number(v.GetFloatNumeratorVal()), FloatDenominator: number(v.GetFloatDenominatorVal()),
		Unit: plain(v.GetUnit()), Description: plain(v.GetDesc()),
	}
	if n := v.GetIntNumeratorVal(); n != nil {
		value.IntNumerator = &n.Value
	}
	if n := v.GetIntDenominatorVal(); n != nil {
		value.IntDenominator = &n.Value
	}
	if s := v.GetStringVal(); s != nil {
		text := plain(s.GetValue())
		value.Text = &text
	}
	if b := v.GetBoolVal(); b != nil {
		value.Bool = &b.Value
	}
	return value
}

// number returns a value, or nil if the value is missing or not a number.
func number(v *wrapperspb.DoubleValue) *float64 {
	if v == nil || math.IsNaN(v.GetValue()) || math.IsInf(v.GetValue(), 0) {
		return nil
	}
	return &v.Value
}
