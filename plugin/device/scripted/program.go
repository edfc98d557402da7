package scripted

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Names of calls, for [Call] and errors.
const (
	CallReserve     = "Reserve"
	CallFingerprint = "Fingerprint"
)

// Call is one call to a device plugin.
type Call struct {
	// Name is one of the names above.
	Name string
	// Generation is the number of the plugin's process, from 1.
	Generation int
	// Task is the start for which devices are reserved. It is empty for streams.
	Task driver.TaskID
	// Count is how many calls of this name the program has got, from 1.
	Count int
}

// Options describe a device plugin's program. The zero value has no devices and no faults.
type Options struct {
	// Groups are the first devices; see [Program.SetGroups].
	Groups []*cluster.DeviceGroup
	// Fault returns what happens to a call; nil is nothing. It is called once for each call.
	Fault func(Call) scripted.Fault
	// Launch returns what the launch of a generation does; nil is a success at once.
	Launch func(generation int) scripted.Launch
}

// Program is a device plugin that is installed on a machine.
type Program struct {
	machine  *scripted.Machine
	clock    scripted.Clock
	name     string
	options  Options
	groups   []*cluster.DeviceGroup
	launched int
	living   []*Plugin
	calls    map[string]int
	rows     map[key]Row
}

// key names a device.
type key struct {
	kind cluster.DeviceKind
	id   string
}

// Row is what one device is used for.
type Row struct {
	Kind cluster.DeviceKind
	ID   string
	// Owner is the start for which the device was reserved last, and At when.
	Owner driver.TaskID
	At    time.Time
}

// Path is the device file of a device on the host, and in a task.
func (r *Row) Path() string { return Path(r.Kind, r.ID) }

// Path is the device file of a device on the host, and in a task.
func Path(kind cluster.DeviceKind, id string) string { return "/dev/" + kind.String() + "/" + id }

// Install returns a device plugin's program on a machine with the clock. It has no process yet.
func Install(m *scripted.Machine, clock scripted.Clock, name string, o Options) *Program {
	p := &Program{machine: m, clock: clock, name: name, options: o, calls: map[string]int{}, rows: map[key]Row{}}
	p.SetGroups(o.Groups)
	return p
}

// Name returns the name of the plugin.
func (p *Program) Name() string { return p.name }

// Groups returns copies of the devices that the plugin has.
func (p *Program) Groups() []*cluster.DeviceGroup {
	groups := make([]*cluster.DeviceGroup, 0, len(p.groups))
	for _, g := range p.groups {
		groups = append(groups, g.Copy())
	}
	return groups
}

// SetGroups changes the devices that the plugin has. Its living processes report them.
func (p *Program) SetGroups(groups []*cluster.DeviceGroup) {
	p.groups = groups
	p.groups = p.Groups()
	for _, generation := range p.living {
		scripted.Report(generation.Instance, p.Groups())
	}
}

// find returns a device of the plugin, whether it is healthy or not.
func (p *Program) find(id string) (found key, is bool) {
	for _, g := range p.groups {
		if slices.ContainsFunc(g.Devices, func(d cluster.Device) bool { return d.ID == id }) {
			return key{g.Kind, id}, true
		}
	}
	return key{}, false
}

// Rows returns what the devices are used for, in the order of their kinds and ids. A device that
// was never reserved has no row.
func (p *Program) Rows() []Row {
	return slices.SortedFunc(maps.Values(p.rows), func(a, b Row) int { return cmp.Compare(a.Path(), b.Path()) })
}

// Launch starts a process of the plugin, whether another one lives or not. It answers with an error
// of class Gone if the process ends before the plugin has answered.
func (p *Program) Launch(reply func(*Plugin, error)) {
	d := &Plugin{program: p}
	var err error
	d.Instance, err = scripted.NewInstance(p.machine, p.name, p.launched+1, func() {
		p.living = slices.DeleteFunc(p.living, func(other *Plugin) bool { return other == d })
	})
	if err != nil {
		p.clock.After(0, func() { reply(nil, err) })
		return
	}
	p.launched++
	p.living = append(p.living, d)
	var launch scripted.Launch
	if p.options.Launch != nil {
		launch = p.options.Launch(d.Generation())
	}
	d.Begin(launch, func(err error) {
		if err != nil {
			reply(nil, err)
			return
		}
		reply(d, nil)
	})
}

// Living returns the generations of the plugin whose process runs, oldest first.
func (p *Program) Living() []*Plugin { return slices.Clone(p.living) }

// fault returns what happens to a call.
func (p *Program) fault(c Call) scripted.Fault {
	p.calls[c.Name]++
	c.Count = p.calls[c.Name]
	if p.options.Fault == nil {
		return scripted.Fault{}
	}
	return p.options.Fault(c)
}

// callError returns an error of a call with its class.
func callError(call string, class driver.Class, err error) error {
	return &driver.Error{Class: class, Call: call, Err: err}
}
