package cluster

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// DriverInfo is the last fingerprint of one task driver of a node.
type DriverInfo struct {
	// Attributes are facts about the driver, such as driver.raw_exec.version, or nil.
	Attributes map[string]string `codec:",omitempty"`
	// Detected means that the driver can work on the node, Healthy that it can start tasks now.
	Detected bool
	Healthy  bool
	// HealthDescription is the reason of Healthy, in words.
	HealthDescription string
	// UpdateTime is when the client noticed the last change.
	UpdateTime time.Time
}

// Bounds on the drivers of a node.
const (
	MaxDrivers          = 64
	MaxDriverAttributes = 256
	// MaxDriverBytes bounds all attributes and descriptions of a node's drivers together.
	MaxDriverBytes = 256 << 10
)

// Copy returns a copy that shares nothing with d.
func (d *DriverInfo) Copy() *DriverInfo {
	if d == nil {
		return nil
	}
	c := *d
	c.Attributes = maps.Clone(d.Attributes)
	return &c
}

// HasDriver reports whether the node can start tasks of the driver now. A node that does not report
// its drivers can start tasks of every driver. Other nodes do not have the empty driver.
func (n *Node) HasDriver(name string) bool {
	if !n.ReportsDrivers {
		return true
	}
	d := n.Drivers[name]
	return d != nil && d.Detected && d.Healthy
}

// CheckDrivers returns what is wrong with the node's drivers and its longest kill timeout, or nil.
func (n *Node) CheckDrivers() error {
	if n.MaxKillTimeout < 0 {
		return fmt.Errorf("MaxKillTimeout is %s and must be >= 0", n.MaxKillTimeout)
	}
	if len(n.Drivers) > MaxDrivers {
		return fmt.Errorf("a node has at most %d drivers but found %d", MaxDrivers, len(n.Drivers))
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(n.Drivers)) {
		d := n.Drivers[name]
		if err := CheckID(name); err != nil {
			return fmt.Errorf("invalid driver name %q: %w", name, err)
		}
		if d == nil {
			return fmt.Errorf("driver %q is missing", name)
		}
		if len(d.Attributes) > MaxDriverAttributes {
			return fmt.Errorf("driver %q has at most %d attributes but found %d", name, MaxDriverAttributes, len(d.Attributes))
		}
		size += len(d.HealthDescription) + mapBytes(d.Attributes)
	}
	if size > MaxDriverBytes {
		return errors.New("attributes and descriptions of the drivers are too large")
	}
	return nil
}

// NeededVersion is the lowest cluster version that has all fields of the node. A nil node needs the
// first.
func (n *Node) NeededVersion() Version {
	switch {
	case n == nil:
	case n.Network != nil:
		return VersionOfPorts
	case len(n.Cores) > 0:
		return VersionOfLimits
	case !n.AwaySince.IsZero() || n.Unlisted != nil:
		return VersionOfConfirmation
	case len(n.StoragePlugins) > 0 || n.VolumeAllowance != 0 || n.HoldLimit != 0:
		return VersionOfVolumes
	case len(n.Devices) > 0:
		return VersionOfDevices
	case n.ReportsDrivers || len(n.Drivers) > 0 || n.MaxKillTimeout != 0:
		return VersionOfDrivers
	}
	return MinVersion
}

// At returns the node without the fields that a cluster version does not have. It returns
// the node itself if it has none.
func (n *Node) At(v Version) *Node {
	if n.NeededVersion() <= v {
		return n
	}
	c := n.Copy()
	if v < VersionOfPorts {
		c.Network = nil
	}
	if v < VersionOfLimits {
		c.Cores = nil
	}
	if v < VersionOfConfirmation {
		c.AwaySince, c.Unlisted = time.Time{}, nil
	}
	if v < VersionOfDevices {
		c.Devices = nil
	}
	if v < VersionOfVolumes {
		c.StoragePlugins, c.VolumeAllowance, c.HoldLimit = nil, 0, 0
	}
	return c
}
