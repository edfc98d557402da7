package node

import (
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// fit returns the part of a reservation that the driver must get, or an error if a task of the
// driver cannot use its devices.
//
// If a driver supports no mounts and its tasks see the file system of the host, it gets no mounts:
// a file at the same path in the task is already there. Such a driver cannot provide a file at
// another path, and cannot limit the access of the task to a file.
func fit(r device.Reservation, name string, c driver.Capabilities) (device.Reservation, error) {
	if !c.NoMounts {
		return r, nil
	}
	if c.FSIsolation != driver.FSNone {
		if len(r.Mounts) > 0 {
			return r, fmt.Errorf("the devices of the task need the mount %s, and the driver %s has no mounts", r.Mounts[0].TaskPath, name)
		}
		return r, nil
	}
	for _, m := range r.Mounts {
		switch {
		case m.TaskPath != m.HostPath:
			return r, fmt.Errorf("the devices of the task need %s at %s, and the driver %s has no mounts: its tasks see a file at its path on the node", m.HostPath, m.TaskPath, name)
		case m.ReadOnly:
			return r, fmt.Errorf("the devices of the task need %s read-only, and the driver %s cannot keep its tasks from writing", m.HostPath, name)
		}
	}
	for _, d := range r.Devices {
		switch {
		case d.TaskPath != d.HostPath:
			return r, fmt.Errorf("the devices of the task need the device file %s at %s, and the driver %s has no mounts: its tasks see a file at its path on the node", d.HostPath, d.TaskPath, name)
		case d.Permissions != "" && !(strings.Contains(d.Permissions, "r") && strings.Contains(d.Permissions, "w")):
			return r, fmt.Errorf("the devices of the task need the device file %s with the permissions %q alone, and the driver %s cannot limit its tasks", d.HostPath, d.Permissions, name)
		}
	}
	return device.Reservation{Env: r.Env}, nil
}
