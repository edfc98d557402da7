package wire

import (
	"cmp"
	"strconv"
)

// DeviceGroupStats are measured values of devices of one kind.
type DeviceGroupStats struct {
	Vendor, Type, Name string
	// InstanceStats are by the id of the device.
	InstanceStats map[string]*DeviceStats
}

// DeviceStats are measured values of one device.
type DeviceStats struct {
	// Summary is the one value to show where there is place for one, or nil.
	Summary   *StatValue
	Stats     *StatObject
	Timestamp Time
}

// StatObject is a tree of measured values by name.
type StatObject struct {
	Nested     map[string]*StatObject
	Attributes map[string]*StatValue
}

// StatValue is a measured value. Nil parts are missing. A denominator is the largest possible value of its
// numerator.
type StatValue struct {
	FloatNumeratorVal   *float64 `json:",omitempty"`
	FloatDenominatorVal *float64 `json:",omitempty"`
	IntNumeratorVal     *int64   `json:",omitempty"`
	IntDenominatorVal   *int64   `json:",omitempty"`
	StringVal           *string  `json:",omitempty"`
	BoolVal             *bool    `json:",omitempty"`
	// Unit is the unit of a number, such as "MiB". Desc says in words what was measured.
	Unit string `json:",omitempty"`
	Desc string `json:",omitempty"`
}

// String returns the value with its unit, such as "3/8 GiB", or a dash.
func (v *StatValue) String() string {
	if v == nil {
		return "-"
	}
	number := func(n, of string) string {
		if of != "" {
			n += "/" + of
		}
		if v.Unit != "" {
			n += " " + v.Unit
		}
		return n
	}
	switch {
	case v.BoolVal != nil:
		return strconv.FormatBool(*v.BoolVal)
	case v.StringVal != nil:
		return cmp.Or(*v.StringVal, "-")
	case v.IntNumeratorVal != nil:
		return number(intText(v.IntNumeratorVal), intText(v.IntDenominatorVal))
	case v.FloatNumeratorVal != nil:
		return number(floatText(v.FloatNumeratorVal), floatText(v.FloatDenominatorVal))
	}
	return "-"
}

func intText(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func floatText(n *float64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatFloat(*n, 'f', 2, 64)
}
