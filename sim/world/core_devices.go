package world

import (
	"errors"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/machine"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// equipment contains the devices of a node with a real client.
type equipment struct {
	node *coreNode
	// has are the devices of the machine without faults.
	has []*cluster.DeviceGroup
	// changes are the active changes by faults, in the order of their start.
	changes []*deviceChange
}

// deviceChange is a change of devices by a fault.
type deviceChange struct {
	by scenario.FaultName
	// kind and id name the device, if the fault changes one.
	kind cluster.DeviceKind
	id   string
}

// plugins are the device plugins of the machine: one for each kind, with its name.
func (e *equipment) plugins() (all []machine.DevicePlugin) {
	for _, g := range e.has {
		all = append(all, machine.DevicePlugin{Name: g.Kind.String(), Groups: []*cluster.DeviceGroup{g}})
	}
	return all
}

// now returns the present devices of one kind.
func (e *equipment) now(g *cluster.DeviceGroup) *cluster.DeviceGroup {
	g = g.Copy()
	renamed := false
	for _, c := range e.changes {
		is := func(d cluster.Device) bool { return c.kind == g.Kind && c.id == d.ID }
		switch c.by {
		case scenario.DeviceSick:
			if at := slices.IndexFunc(g.Devices, is); at >= 0 {
				g.Devices[at].Healthy, g.Devices[at].HealthDescription = false, "it does not answer"
			}
		case scenario.DeviceVanish:
			g.Devices = slices.DeleteFunc(g.Devices, is)
		case scenario.DeviceRename:
			renamed = true
		}
	}
	for i := range g.Devices {
		if renamed {
			g.Devices[i].ID = "other-" + g.Devices[i].ID
		}
	}
	return g
}

// changed passes the present devices to the plugins.
func (e *equipment) changed() error {
	e.node.notify(DevicesChange)
	return e.node.disturb(func() {
		for _, g := range e.has {
			e.node.machine.Devices().Set(g.Kind.String(), []*cluster.DeviceGroup{e.now(g)})
		}
	})
}

// fault is an opportunity of the faults of device plugins.
func (e *equipment) fault(name string, c devices.Call) scripted.Fault {
	n := e.node
	w := n.cores.fleet.world
	if len(w.Faults.armed) == 0 {
		return scripted.Fault{}
	}
	if c.Name == devices.CallReserve {
		if _, strikes := w.Faults.strike(scenario.DeviceFail, n.target()); strikes {
			return scripted.Fault{Action: scripted.Fail, Err: &driver.Error{Class: driver.Recoverable, Call: c.Name, Err: errBusy}}
		}
	}
	return n.pluginFault(plugin{
		hangs: scenario.DeviceHang, crashes: scenario.DeviceCrash, stream: "device/", dies: DevicePluginDies,
		hang: func(d time.Duration) { n.machine.Devices().Hang(name, d) },
		kill: func() { n.machine.Devices().Kill(name) },
	})
}

// errBusy is the error of device/fail.
var errBusy = errors.New("the device is busy")

// changeDevices changes the devices of the fault's node, or of a random node with devices, for the
// fault's delay.
func (f *fleet) changeDevices(by *fault) error {
	w := f.world
	var nodes []*coreNode
	for _, n := range f.real.nodes {
		if len(n.equipment.has) > 0 && (by.On == "" || by.On == string(n.id)) {
			nodes = append(nodes, n)
		}
	}
	if len(nodes) == 0 || !w.Faults.drawStrike(by, target{}) {
		return nil
	}
	draws := w.chance.stream("fault/" + string(by.Name))
	e := &nodes[draws.IntN(len(nodes))].equipment
	lasts := w.Faults.recordStrike(by, e.node.target())
	if by.Name == scenario.DeviceMute {
		w.Faults.undoAfter(lasts, func() error { return e.each(func(name string) { e.node.machine.Devices().Hang(name, 0) }) })
		return e.each(func(name string) { e.node.machine.Devices().Mute(name, lasts) })
	}
	group := e.has[draws.IntN(len(e.has))]
	c := &deviceChange{by: by.Name, kind: group.Kind, id: group.Devices[draws.IntN(len(group.Devices))].ID}
	e.changes = append(e.changes, c)
	w.Faults.undoAfter(lasts, func() error {
		e.changes = slices.DeleteFunc(e.changes, func(other *deviceChange) bool { return other == c })
		return e.changed()
	})
	return e.changed()
}

// each calls do for each plugin of the node.
func (e *equipment) each(do func(name string)) error {
	return e.node.disturb(func() {
		for _, g := range e.has {
			do(g.Kind.String())
		}
	})
}
