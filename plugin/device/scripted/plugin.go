package scripted

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// Plugin is one generation of a device plugin's process: the calls of [device.Plugin], with
// replies.
type Plugin struct {
	*scripted.Instance
	program *Program
}

// Program returns the plugin's program.
func (d *Plugin) Program() *Program { return d.program }

// fault returns the function that returns the fault of a call.
func (d *Plugin) fault(c Call) func() scripted.Fault {
	c.Generation = d.Generation()
	return func() scripted.Fault { return d.program.fault(c) }
}

// Reserve is [device.Plugin.Reserve] for a start of a task. The plugin notes the start as the owner
// of its devices when the call comes, also if the call fails: it may take effect later.
func (d *Plugin) Reserve(task driver.TaskID, ids []string, reply func(device.Reservation, error)) {
	p := d.program
	if d.Alive() {
		for _, id := range ids {
			if found, is := p.find(id); is {
				p.rows[found] = Row{Kind: found.kind, ID: id, Owner: task, At: p.clock.Now()}
			}
		}
	}
	fail := func(err error) { reply(device.Reservation{}, err) }
	d.Call(CallReserve, d.fault(Call{Name: CallReserve, Task: task}), fail, func(answer func(func())) {
		r, err := p.reservation(ids)
		answer(func() { reply(r, err) })
	})
}

// reservation is what a task needs to use devices: a file of each, and a variable with its path.
func (p *Program) reservation(ids []string) (device.Reservation, error) {
	var r device.Reservation
	for _, id := range ids {
		found, is := p.find(id)
		if !is {
			return device.Reservation{}, callError(CallReserve, driver.Fatal, fmt.Errorf("unknown device %q", id))
		}
		if r.Env == nil {
			r.Env = map[string]string{}
		}
		path := Path(found.kind, id)
		r.Env[variable(found.kind.Type+"_"+id)] = path
		r.Devices = append(r.Devices, driver.Device{TaskPath: path, HostPath: path, Permissions: "rw"})
	}
	return r, nil
}

// variable is the name of a variable.
func variable(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToUpper(text))
}

// Fingerprints is [device.Plugin.Fingerprints]. The function that it returns ends the stream; then
// ended is not called.
func (d *Plugin) Fingerprints(report func([]*cluster.DeviceGroup), ended func(error)) (cancel func()) {
	return scripted.Open(d.Instance, CallFingerprint, d.fault(Call{Name: CallFingerprint}), report, ended, func(s *scripted.Stream) {
		groups := d.program.Groups()
		s.Send(func() { report(groups) })
	})
}

// EndStreams ends the streams of fingerprints with an error. The plugin works otherwise.
func (d *Plugin) EndStreams() {
	err := callError(CallFingerprint, driver.Fatal, errors.New("the device plugin has ended the stream"))
	scripted.End[[]*cluster.DeviceGroup](d.Instance, err)
}
