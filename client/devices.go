package client

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// devices are the node's device plugins and the devices that they have reported.
type devices struct {
	core *Core
	// all are sorted by name.
	all []*devicePlugin
}

type devicePlugin struct {
	process
	// groups are from the newest report, which may be from an earlier process of the plugin.
	groups []*cluster.DeviceGroup
	// reported: the present process has reported its devices, or an error.
	reported bool
	// ignored states which parts of the newest report the client ignores, or is empty.
	ignored string
	// unhealthyReason states why all devices of the plugin are unhealthy, or is empty.
	unhealthyReason string
}

func newDevices(c *Core, names []string, last map[string][]*cluster.DeviceGroup) *devices {
	d := &devices{core: c}
	for _, name := range pluginNames(names) {
		d.all = append(d.all, &devicePlugin{
			process: process{core: c, plugin: Plugin{DevicePlugin, name}}, groups: last[name],
			unhealthyReason: "the device plugin has not reported its devices since the client has started",
		})
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
		if p.mustLaunch() {
			p.launch(func(l Launched) { d.launched(p, l) })
		}
	}
}

// launched handles the answer to a launch.
func (d *devices) launched(p *devicePlugin, l Launched) {
	p.reported = false
	if !p.process.launched(l) {
		d.markUnhealthy(p, "the device plugin did not start: "+l.Err.Error())
	}
}

// allKnown reports whether each device plugin has reported its devices or failed to start.
func (d *devices) allKnown() bool {
	return !slices.ContainsFunc(d.all, func(p *devicePlugin) bool { return !p.known })
}

// down handles the end of a device plugin's process. Its devices stay in the list, as unhealthy.
func (d *devices) down(name string, generation Generation, why string) {
	if p := d.state(name); p != nil && p.down(generation) {
		p.reported = false
		d.markUnhealthy(p, because("the process of the device plugin has died", why))
	}
}

// report handles a report of a plugin.
func (d *devices) report(name string, generation Generation, r DeviceReport) {
	p := d.state(name)
	if p == nil || p.generation != generation {
		return
	}
	p.known, p.reported = true, true
	if r.Err != nil {
		d.markUnhealthy(p, "the device plugin does not report its devices: "+r.Err.Error())
		return
	}
	if p.unhealthyReason != "" || p.ignored != r.Ignored || !slices.EqualFunc(p.groups, r.Groups, sameGroup) {
		d.core.publisher.note()
	}
	p.groups, p.ignored, p.unhealthyReason = r.Groups, r.Ignored, ""
}

// markUnhealthy marks all devices of a plugin as unhealthy.
func (d *devices) markUnhealthy(p *devicePlugin, reason string) {
	if p.unhealthyReason != reason {
		d.core.publisher.note()
	}
	p.unhealthyReason = reason
}

// sameGroup reports whether two groups have the same content.
func sameGroup(a, b *cluster.DeviceGroup) bool {
	return a.Kind == b.Kind && maps.Equal(a.Attributes, b.Attributes) && slices.Equal(a.Devices, b.Devices)
}

// reportedGroups returns the devices as the client reports them to the servers, sorted by kind. If
// several plugins have devices of one kind, it returns only the devices of the first plugin,
// because the client cannot detect whether the plugins report the same devices.
func (d *devices) reportedGroups() []*cluster.DeviceGroup {
	var all []*cluster.DeviceGroup
	for _, p := range d.all {
		for _, reported := range p.groups {
			if first, _ := d.find(reported.Kind); first != p {
				continue // problems states it
			}
			group := reported.Copy()
			for i := range group.Devices {
				if p.unhealthyReason != "" {
					group.Devices[i].Healthy, group.Devices[i].HealthDescription = false, cluster.CutText(p.unhealthyReason)
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

// problems returns what the reported devices do not show, by plugin:
// why a plugin has no devices, and what the client ignores.
func (d *devices) problems() map[string]string {
	problems := make(map[string]string)
	for _, p := range d.all {
		var all []string
		if p.unhealthyReason != "" && len(p.groups) == 0 {
			all = append(all, p.unhealthyReason)
		}
		if p.ignored != "" {
			all = append(all, p.ignored)
		}
		for _, g := range p.groups {
			if first, _ := d.find(g.Kind); first != p {
				all = append(all, fmt.Sprintf("the group %q is ignored: the %s reports the same kind", g.Kind.String(), first.plugin))
			}
		}
		if len(all) > 0 {
			problems[p.plugin.Name] = strings.Join(all, "\n")
		}
	}
	return problems
}

// find returns the plugin that has the devices of a kind, or nil.
func (d *devices) find(kind cluster.DeviceKind) (*devicePlugin, *cluster.DeviceGroup) {
	for _, p := range d.all {
		for _, g := range p.groups {
			if g.Kind == kind {
				return p, g
			}
		}
	}
	return nil, nil
}

// waitReason states which plugin must report before a task can get devices of the kind, or returns
// "". If no plugin has reported the kind yet, every plugin must report.
func (d *devices) waitReason(kind cluster.DeviceKind) string {
	owner, _ := d.find(kind)
	for _, p := range d.all {
		switch {
		case owner != nil && owner != p:
		case p.generation == 0:
			return "the " + p.plugin.String() + " is not running"
		case !p.reported:
			return "the " + p.plugin.String() + " has not reported its devices yet"
		}
	}
	return ""
}

// check returns the plugin that has the devices, or an error that states why a task cannot get them.
// The caller has checked that [devices.waitReason] is empty for the kind.
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
		case p.unhealthyReason != "":
			return nil, fmt.Errorf("the device %s is unhealthy: %s", deviceName(kind, id), p.unhealthyReason)
		case !group.Devices[at].Healthy:
			return nil, fmt.Errorf("the device %s is unhealthy: %s", deviceName(kind, id), cmp.Or(group.Devices[at].HealthDescription, "the device plugin reports no reason"))
		}
	}
	return p, nil
}

// reserve calls Reserve of the device plugins, one request after the other, and reports whether all
// requests are answered. The record of the start must be on disk before.
func (s *taskStart) reserve() (done bool) {
	assigned := devicesOf(s.t)
	if requests := len(s.t.task.Devices); len(assigned) < requests {
		s.unreserved(fmt.Errorf("the task has %d device requests, and the servers have assigned devices to %d", requests, len(assigned)))
		return false
	}
	if len(s.parts) == len(assigned) {
		return true
	}
	if s.call == callReserve {
		return false
	}
	c, d := s.t.core(), assigned[len(s.parts)]
	if reason := c.devices.waitReason(d.Kind); reason != "" {
		s.t.waits.set(cluster.WaitDevice, 0, reason)
		return false
	}
	p, err := c.devices.check(d.Kind, d.IDs)
	if err != nil {
		s.unreserved(err)
		return false
	}
	s.call = callReserve
	ref := DevicesRef{Plugin: p.plugin.Name, Generation: p.generation, Kind: d.Kind, IDs: d.IDs}
	c.options.Shell.Reserve(s.t.ref(), ref, replyPair(s, func(r device.Reservation, err error) {
		s.call = callNone
		if err == nil {
			s.t.waits.end()
			s.parts = append(s.parts, device.Part{For: d.Kind.String(), Reservation: r})
			return
		}
		if driver.ClassOf(err) == driver.Deadline {
			c.options.Logger.Warn("a device plugin does not answer; the client restarts it", "plugin", ref.Plugin, "alloc", s.t.alloc.id(), "task", s.t.task.Name)
			c.options.Shell.Abandon(p.plugin, ref.Generation)
		}
		s.unreserved(err)
	}))
	return false
}

// unreserved ends a start that cannot use its devices. A later start may get them.
func (s *taskStart) unreserved(err error) {
	s.t.event("Setup Failure", "failed to reserve devices: "+err.Error())
	s.t.over(EndNotStarted, nil)
}
