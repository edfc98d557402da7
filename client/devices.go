package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// devices are the node's device plugins and the devices that they have told.
type devices struct {
	core *Core
	// all are in the order of their names.
	all []*devicePlugin
}

// devicePlugin is the core's knowledge of one device plugin.
type devicePlugin struct {
	process
	// told are the groups of the newest report, also one of an earlier life.
	told []*cluster.DeviceGroup
	// reported: the present life has told its devices, or that it cannot.
	reported bool
	// trouble says why no device of the plugin is healthy, or is empty.
	trouble string
}

func newDevices(c *Core, names []string) *devices {
	d := &devices{core: c}
	for _, name := range pluginNames(names) {
		d.all = append(d.all, &devicePlugin{process: process{core: c, plugin: Plugin{DevicePlugin, name}}})
	}
	return d
}

// state returns a device plugin, or nil if the node does not have it.
func (d *devices) state(name string) *devicePlugin {
	for _, p := range d.all {
		if p.plugin.Name == name {
			return p
		}
	}
	return nil
}

func (d *devices) step() {
	for _, p := range d.all {
		p.step(func(l Launched) {
			p.reported = false
			if !p.launched(l) {
				d.fail(p, "the device plugin did not start: "+l.Err.Error())
			}
		})
	}
}

// allKnown reports whether each device plugin has told its devices or failed to start.
func (d *devices) allKnown() bool {
	return !slices.ContainsFunc(d.all, func(p *devicePlugin) bool { return !p.known })
}

// down takes in the end of a device plugin's process. Its devices stay, and are unhealthy.
func (d *devices) down(name string, life Life) {
	if p := d.state(name); p != nil && p.down(life) {
		p.reported = false
		d.fail(p, "the process of the device plugin has died")
	}
}

// report takes in the devices of a plugin, or the error with which it stopped telling them.
func (d *devices) report(name string, life Life, groups []*cluster.DeviceGroup, err error) {
	p := d.state(name)
	if p == nil || p.life != life {
		return
	}
	p.known, p.reported = true, true
	if err != nil {
		d.fail(p, "the device plugin does not report its devices: "+err.Error())
		return
	}
	if p.trouble != "" || !slices.EqualFunc(p.told, groups, sameGroup) {
		d.core.publisher.note()
	}
	p.told, p.trouble = groups, ""
}

// fail makes the devices of a plugin unhealthy.
func (d *devices) fail(p *devicePlugin, trouble string) {
	if p.trouble != trouble && len(p.told) > 0 {
		d.core.publisher.note()
	}
	p.trouble = trouble
}

// sameGroup reports whether two groups are the same for the servers.
func sameGroup(a, b *cluster.DeviceGroup) bool {
	return a.Kind == b.Kind && maps.Equal(a.Attributes, b.Attributes) && slices.Equal(a.Devices, b.Devices)
}

// groups are the devices as the servers are told, in the order of their kinds. If several plugins have
// devices of one kind, those of the first plugin count: nothing says whether the others are the same.
func (d *devices) groups() []*cluster.DeviceGroup {
	var all []*cluster.DeviceGroup
	for _, p := range d.all {
		for _, told := range p.told {
			if first, _ := d.find(told.Kind); first != p {
				d.core.options.Logger.Error("two device plugins have devices of one kind: those of the second one are not used", "kind", told.Kind.String(), "plugin", p.plugin.Name)
				continue
			}
			group := told.Copy()
			for i := range group.Devices {
				if p.trouble != "" {
					group.Devices[i].Healthy, group.Devices[i].HealthDescription = false, cluster.CutText(p.trouble)
				}
			}
			all = append(all, group)
		}
	}
	slices.SortFunc(all, func(a, b *cluster.DeviceGroup) int {
		return cmp.Or(strings.Compare(a.Kind.Vendor, b.Kind.Vendor), strings.Compare(a.Kind.Type, b.Kind.Type), strings.Compare(a.Kind.Name, b.Kind.Name))
	})
	return all
}

// find returns the plugin that has the devices of a kind, or nil.
func (d *devices) find(kind cluster.DeviceKind) (*devicePlugin, *cluster.DeviceGroup) {
	for _, p := range d.all {
		for _, g := range p.told {
			if g.Kind == kind {
				return p, g
			}
		}
	}
	return nil, nil
}

// away says which plugin must tell its devices before devices of the kind can be given, or returns
// nothing. That of an unknown kind may be any.
func (d *devices) away(kind cluster.DeviceKind) string {
	owner, _ := d.find(kind)
	for _, p := range d.all {
		switch {
		case owner != nil && owner != p:
		case p.life == 0:
			return "the " + p.plugin.String() + " is not running"
		case !p.reported:
			return "the " + p.plugin.String() + " has not reported its devices yet"
		}
	}
	return ""
}

// check says why devices of one kind cannot be given to a task, or returns the plugin that has them.
// No plugin is [devices.away] for the kind.
func (d *devices) check(kind cluster.DeviceKind, ids []string) (*devicePlugin, error) {
	p, group := d.find(kind)
	if p == nil {
		return nil, fmt.Errorf("the node has no device %s: no device plugin has this kind", deviceName(kind, ids[0]))
	}
	for _, id := range ids {
		at := slices.IndexFunc(group.Devices, func(dev cluster.Device) bool { return dev.ID == id })
		switch {
		case at < 0:
			return nil, fmt.Errorf("the node has no device %s", deviceName(kind, id))
		case p.trouble != "":
			return nil, fmt.Errorf("the device %s is unhealthy: %s", deviceName(kind, id), p.trouble)
		case !group.Devices[at].Healthy:
			return nil, fmt.Errorf("the device %s is unhealthy: %s", deviceName(kind, id), cmp.Or(group.Devices[at].HealthDescription, "the device plugin does not say why"))
		}
	}
	return p, nil
}
