package device

import (
	"context"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// Plugin is one process of a device plugin. All methods are safe for concurrent use. Each method
// returns when its context ends, with an error of class driver.Deadline. A Reserve may still take
// effect in the plugin after that, which does no harm. All errors have a driver.Class.
type Plugin interface {
	// Fingerprints calls report with all devices of the plugin, first at once and then at each
	// change, until the context ends or the plugin ends the stream. It never returns nil. An empty
	// list is a valid report: the plugin works and has no device. The groups are as the plugin sent
	// them, and [Check] returns the valid ones. The receiver owns them.
	Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error
	// Reserve prepares devices of one kind for a task and returns what the task needs to use them.
	// A repeated call returns the same answer. An id that the plugin does not have is an error.
	// Without ids the answer is the zero value.
	Reserve(ctx context.Context, ids []string) (Reservation, error)
	// Stats calls report with measured values of all devices, at least once in each interval, until
	// the context ends or the plugin ends the stream. It never returns nil. A plugin that does not
	// measure returns an error of class driver.Unsupported.
	Stats(ctx context.Context, interval time.Duration, report func([]GroupStats)) error
}

// Reservation is what a task needs to use its devices. The zero value means that it needs nothing.
type Reservation struct {
	Env     map[string]string
	Mounts  []driver.Mount
	Devices []driver.Device
}

// GroupStats are measured values of the devices of one kind.
type GroupStats struct {
	Kind cluster.DeviceKind
	// Devices are the values, by the id of the device.
	Devices map[string]Stats
}

// Stats are measured values of one device.
type Stats struct {
	// Time is when the values were measured, or zero if the plugin does not report it.
	Time time.Time
	// Summary is the one value that short listings show.
	Summary StatValue
	Values  StatObject
}

// StatObject is a tree of measured values by name.
type StatObject struct {
	Nested map[string]StatObject
	Values map[string]StatValue
}

// StatValue is a measured value. The fields that are not nil are its parts. A denominator is the
// largest possible value of its numerator. The zero value means that there is no value.
type StatValue struct {
	FloatNumerator, FloatDenominator *float64
	IntNumerator, IntDenominator     *int64
	Text                             *string
	Bool                             *bool
	// Unit is the unit of a number, such as "MiB", or empty.
	Unit string
	// Description states in words what was measured, or is empty.
	Description string
}

// IsZero reports whether the value is none.
func (v StatValue) IsZero() bool { return v == StatValue{} }
