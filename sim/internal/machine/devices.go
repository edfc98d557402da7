package machine

import (
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// reopenTime is the time from the end of a plugin's stream to the start of the next stream.
const reopenTime = 5 * time.Second

// Equipment are the device plugins of a node, with their devices.
type Equipment struct {
	node *Node
	// programs are in the order of the options.
	programs []*devices.Program
	// hungUntil is the end of a hang, by plugin.
	hungUntil map[string]time.Time
}

// install installs the device plugins of the options.
func (e *Equipment) install(n *Node) {
	e.node, e.hungUntil = n, map[string]time.Time{}
	for _, p := range n.options.DevicePlugins {
		e.programs = append(e.programs, devices.Install(n.machine, n.clock, p.Name, devices.Options{
			Groups: p.Groups,
			Fault:  func(c devices.Call) scripted.Fault { return e.fault(p.Name, c) },
			Launch: func(int) scripted.Launch { return launch(n, client.Plugin{Type: client.DevicePlugin, Name: p.Name}) },
		}))
	}
}

// fault returns the fault of a call to a device plugin.
func (e *Equipment) fault(name string, c devices.Call) scripted.Fault {
	n := e.node
	if until := e.hungUntil[name]; until.After(n.clock.now) {
		return scripted.Fault{Delay: until.Sub(n.clock.now)}
	}
	if n.options.DeviceFault == nil || n.adopting {
		return scripted.Fault{}
	}
	f := n.options.DeviceFault(name, c)
	if f != (scripted.Fault{}) {
		e.troubled(name)
	}
	return f
}

// troubled reports trouble of a device plugin.
func (e *Equipment) troubled(name string) {
	e.node.options.Observer.Troubled(e.node, TroubleDevices, name)
}

// program returns the program of a device plugin, or nil.
func (e *Equipment) program(name string) *devices.Program {
	for _, p := range e.programs {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

func (e *Equipment) names() []string {
	names := make([]string, len(e.programs))
	for i, p := range e.programs {
		names[i] = p.Name()
	}
	return names
}

// Programs returns the programs of the device plugins, for judges. They do not change them.
func (e *Equipment) Programs() []*devices.Program { return e.programs }

// Rows returns the table of devices of the machine, with their owners.
func (e *Equipment) Rows() (rows []devices.Row) {
	for _, p := range e.programs {
		rows = append(rows, p.Rows()...)
	}
	return rows
}

// Kill kills the processes of a device plugin. It reports whether there was one.
func (e *Equipment) Kill(name string) bool {
	p := e.program(name)
	if p == nil || len(p.Living()) == 0 {
		return false
	}
	e.troubled(name)
	for _, generation := range p.Living() {
		generation.Kill(scripted.ByFault)
	}
	return true
}

// Hang makes the processes of a device plugin hang: calls take effect after the duration.
func (e *Equipment) Hang(name string, d time.Duration) {
	e.hungUntil[name] = e.node.clock.now.Add(d)
	e.troubled(name)
}

// Set changes the devices of a plugin.
func (e *Equipment) Set(name string, groups []*cluster.DeviceGroup) {
	e.program(name).SetGroups(groups)
	e.troubled(name)
}

// Mute ends the streams of reports of a device plugin. No stream opens for the duration.
func (e *Equipment) Mute(name string, d time.Duration) {
	e.Hang(name, d)
	for _, generation := range e.program(name).Living() {
		generation.EndStreams()
	}
}

// launchDevices kills the processes of a device plugin that an earlier client has started, and
// starts a new one.
func (r *run) launchDevices(p client.Plugin, reply func(client.Launched)) {
	program := r.node.equipment.program(p.Name)
	for _, old := range program.Living() {
		old.Kill(scripted.ByClient)
	}
	program.Launch(func(d *devices.Plugin, err error) {
		r.launched(p, d, err, reply, func(generation client.Generation) {
			reply(client.Launched{Generation: generation})
			follow(r, p.Name, d)
		})
	})
}

// follow opens a stream of a device plugin, and opens it again when it ends.
func follow(r *run, name string, d *devices.Plugin) {
	report := func(report client.DeviceReport) {
		if r.alive() && d.Alive() {
			r.node.options.Observer.DevicesReported(r.node, name, report.Groups, report.Err)
			r.core.Devices(name, client.Generation(d.Generation()), report)
		}
	}
	d.Fingerprints(func(groups []*cluster.DeviceGroup) {
		good, _ := device.Check(groups)
		report(client.DeviceReport{Groups: good})
	}, func(err error) {
		report(client.DeviceReport{Err: err})
		r.after(reopenTime, func() {
			if r.alive() && d.Alive() {
				follow(r, name, d)
			}
		})
	})
}

// Reserve requests devices from a device plugin.
func (r *run) Reserve(ref client.TaskRef, of client.DevicesRef, reply func(device.Reservation, error)) {
	if !r.begins("Reserve", cgroup(ref.Alloc, ref.Task)) {
		return
	}
	var got device.Reservation
	answer := func(err error) { r.answers("Reserve", func() { reply(got, err) }) }
	d, err := r.process(client.Plugin{Type: client.DevicePlugin, Name: of.Plugin}, of.Generation, devices.CallReserve)
	if err != nil {
		r.after(folderTime, func() { answer(err) })
		return
	}
	r.node.options.Observer.Reserves(r.node, ref, of.Kind, of.IDs)
	first := once(r, "Reserve", callTimeout, answer)
	d.(*devices.Plugin).Reserve(ref.ID, slices.Clone(of.IDs), func(reserved device.Reservation, err error) {
		got = reserved
		first(err)
	})
}

// adopt starts the device plugins, as the earlier client did.
func (e *Equipment) adopt(allocs []*cluster.Allocation) {
	if !slices.ContainsFunc(allocs, func(a *cluster.Allocation) bool { return a.Devices != nil }) {
		return
	}
	for _, p := range e.programs {
		p.Launch(func(*devices.Plugin, error) {})
	}
}

// reserve reserves the devices of a task that runs at the start of the simulation.
func (e *Equipment) reserve(id driver.TaskID, a *cluster.Allocation, task string) (files []driver.Device) {
	if a.Devices == nil {
		return nil
	}
	for _, d := range a.Devices.All {
		if d.Task != task {
			continue
		}
		for _, p := range e.programs {
			if slices.ContainsFunc(p.Groups(), func(g *cluster.DeviceGroup) bool { return g.Kind == d.Kind }) {
				p.Living()[0].Reserve(id, d.IDs, func(device.Reservation, error) {})
			}
		}
		for _, dev := range d.IDs {
			path := devices.Path(d.Kind, dev)
			files = append(files, driver.Device{TaskPath: path, HostPath: path, Permissions: "rw"})
		}
	}
	return files
}
