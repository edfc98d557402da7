package nodeapi

import (
	"math"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
)

// Measured values of devices, in the form of the wire.
type (
	deviceGroup struct {
		Vendor, Type, Name string
		// InstanceStats are by the id of the device.
		InstanceStats map[string]deviceStats
	}
	deviceStats struct {
		Summary   *wire.StatValue
		Stats     *wire.StatObject
		Timestamp time.Time
	}
)

// deviceStatsOf are the values of the devices that the filter accepts. Without any it is nil.
func deviceStatsOf(groups []device.GroupStats, accepts func(kind cluster.DeviceKind, id string) bool) []*deviceGroup {
	var all []*deviceGroup
	for _, g := range groups {
		one := &deviceGroup{Vendor: g.Kind.Vendor, Type: g.Kind.Type, Name: g.Kind.Name, InstanceStats: make(map[string]deviceStats)}
		for id, s := range g.Devices {
			if accepts(g.Kind, id) {
				one.InstanceStats[id] = deviceStats{Summary: summaryOf(s.Summary), Stats: statObjectOf(s.Values), Timestamp: s.Time}
			}
		}
		if len(one.InstanceStats) > 0 {
			all = append(all, one)
		}
	}
	return all
}

// anyDevice accepts each device.
func anyDevice(cluster.DeviceKind, string) bool { return true }

// has accepts the devices of a task.
func (t TaskState) has(kind cluster.DeviceKind, id string) bool {
	return slices.ContainsFunc(t.Devices, func(d cluster.AssignedDevice) bool { return d.Kind == kind && slices.Contains(d.IDs, id) })
}

func summaryOf(v device.StatValue) *wire.StatValue {
	if v.IsZero() {
		return nil
	}
	return statValueOf(v)
}

func statObjectOf(o device.StatObject) *wire.StatObject {
	s := new(wire.StatObject)
	for name, nested := range o.Nested {
		if s.Nested == nil {
			s.Nested = make(map[string]*wire.StatObject, len(o.Nested))
		}
		s.Nested[name] = statObjectOf(nested)
	}
	for name, v := range o.Values {
		if s.Attributes == nil {
			s.Attributes = make(map[string]*wire.StatValue, len(o.Values))
		}
		s.Attributes[name] = statValueOf(v)
	}
	return s
}

func statValueOf(v device.StatValue) *wire.StatValue {
	return &wire.StatValue{
		FloatNumeratorVal: finite(v.FloatNumerator), FloatDenominatorVal: finite(v.FloatDenominator),
		IntNumeratorVal: v.IntNumerator, IntDenominatorVal: v.IntDenominator, StringVal: v.Text, BoolVal: v.Bool, Unit: v.Unit, Desc: v.Description,
	}
}

// finite leaves out what JSON has no number for.
func finite(v *float64) *float64 {
	if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		return nil
	}
	return v
}
