package devicetest

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

func firstFingerprint(c *check) { c.first(c.node()) }

func emptyList(c *check) {
	if c.harness.Empty == nil {
		c.Stopf(`a config without devices in "empty", or an entry in "skips"`, "the harness has no plugin that finds no device")
	}
	if _, groups := c.first(c.started(c.harness.Empty(c.T))); slices.ContainsFunc(groups, func(g *cluster.DeviceGroup) bool { return len(g.Devices) > 0 }) {
		c.Failf("no device", "the plugin has devices: %s", describe(groups))
	}
}

// change changes the devices of the machine.
func (c *check) change(n Node) {
	c.Helper()
	if !n.Change(c.T) {
		c.Stopf(`a command in "change", or an entry in "skips"`, "the harness cannot change the devices")
	}
	c.Calls.Begin("change the devices")("ok")
}

func change(c *check) {
	n := c.node()
	l := c.listen(n)
	before, _ := device.Check(c.next(l, patience))
	c.change(n)
	within := 10 * c.harness.Unit
	end := time.After(within)
	for {
		select {
		case report := <-l.reports:
			if after, _ := device.Check(report); !reflect.DeepEqual(before, after) {
				return
			}
		case err := <-l.returned:
			c.Stopf("the stream goes on until its context ends", "the stream ended by itself: %v", err)
		case <-end:
			c.Stopf(fmt.Sprintf("a fingerprint with other devices within %v", within), "no fingerprint with other devices")
		}
	}
}

func cancelFingerprints(c *check) {
	n := c.node()
	l, before := c.first(n)
	l.cancel()
	select {
	case err := <-l.returned:
		if err == nil {
			c.Failf("the error of the context", "the stream ended without an error")
		}
	case <-time.After(c.harness.Slack):
		c.Stopf(fmt.Sprintf("the stream ends within %v of its context", c.harness.Slack), "the stream did not end")
	}
	if _, again := c.first(n); !sameDevices(before, again) {
		c.Failf("the same devices on the second stream: "+describe(before), "the second stream has %s", describe(again))
	}
}

func goodGroups(c *check) {
	n := c.node()
	if _, err := device.Check(c.next(c.listen(n), patience)); err != nil {
		for problem := range strings.SplitSeq(err.Error(), "\n") {
			c.Failf("groups that a client can use", "%s", problem)
		}
	}
}

// sameDevices reports whether two reports have the same kinds and ids. Health may differ.
func sameDevices(a, b []*cluster.DeviceGroup) bool {
	one, _ := device.Check(a)
	other, _ := device.Check(b)
	return slices.EqualFunc(one, other, func(x, y *cluster.DeviceGroup) bool {
		return x.Kind == y.Kind && slices.EqualFunc(x.Devices, y.Devices, func(d, e cluster.Device) bool { return d.ID == e.ID })
	})
}

func relaunch(c *check) {
	n := c.node()
	l, before := c.report(n)
	n.Kill(c.T)
	select {
	case err := <-l.returned:
		if driver.ClassOf(err) != driver.Gone {
			c.Failf(fmt.Sprintf("an error of class %q", driver.Gone), "the stream of the killed plugin ended: %s", conformance.ErrorText(err))
		}
	case <-time.After(patience):
		c.Stopf("the stream ends with the plugin", "the stream of the killed plugin did not end")
	}
	n.Launch(c.T)
	_, after := c.report(n)
	if !sameDevices(before, after) {
		c.Stopf("the same devices after a restart: "+describe(before), "after a restart the plugin has %s", describe(after))
	}
	for _, g := range c.usable(after) {
		c.reserve(n, g.Devices[0].ID)
	}
}

// pathsOf returns the paths of the machine in what a task gets for each device. It leaves out the
// devices that the plugin refuses now.
func (c *check) pathsOf(n Node) map[string]map[string]bool {
	c.Helper()
	all := map[string]map[string]bool{}
	for _, g := range c.devices(n) {
		for _, id := range idsOf(g) {
			r, err := c.try(n, id)
			if err != nil {
				continue
			}
			paths := map[string]bool{}
			for word := range words(r) {
				if strings.HasPrefix(word, "/") {
					paths[word] = true
				}
			}
			all[id] = paths
		}
	}
	return all
}

// sameMeaning compares paths and nothing else: a variable may have a number that changes.
func sameMeaning(c *check) {
	n := c.node()
	before := c.pathsOf(n)
	n.Kill(c.T)
	c.change(n)
	n.Launch(c.T)
	after := c.pathsOf(n)
	for _, id := range slices.Sorted(maps.Keys(after)) {
		if before[id] == nil {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(before)) {
			for _, path := range slices.Sorted(maps.Keys(after[id])) {
				if other != id && before[other][path] && !before[id][path] {
					c.Stopf("the id means the same device", "after a change of the devices, the id %q has the path %q, which the id %q had before", id, path, other)
				}
			}
		}
	}
}

func validReservation(c *check) {
	n := c.node()
	for _, g := range c.devices(n) {
		for _, id := range idsOf(g) {
			c.valid(id, c.reserve(n, id))
		}
	}
}

// valid demands that a task can have a reservation.
func (c *check) valid(of string, r device.Reservation) {
	c.Helper()
	if _, err := device.Merge([]device.Part{{For: of, Reservation: r}}); err != nil {
		c.Failf("a reservation that a task can have", "%v", err)
	}
}

func unknownID(c *check) {
	n := c.node()
	groups := c.devices(n)
	known := groups[0].Devices[0].ID
	for _, ids := range [][]string{{"no-such-device"}, {known, "no-such-device"}} {
		_, err := c.try(n, ids...)
		switch class := driver.ClassOf(err); {
		case err == nil:
			c.Failf("an error", "Reserve takes the ids %q, of which one is unknown", ids)
		case class != driver.Fatal && class != driver.Recoverable:
			c.Stopf("an error of the plugin", "reserving %q: %v (class: %s)", ids, err, class)
		}
	}
	c.reserve(n, known)
}

func reserveNothing(c *check) {
	n := c.node()
	if r := c.reserve(n); !empty(r) {
		c.Failf("an empty answer", "Reserve without ids returns variables %v, mounts %v, devices %v", r.Env, r.Mounts, r.Devices)
	}
}

// words returns the parts of a reservation that may name a device, cut at what separates ids in
// lists and paths.
func words(r device.Reservation) map[string]bool {
	all := map[string]bool{}
	add := func(text string) {
		all[text] = true
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:=/", r) }) {
			all[word] = true
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(",;:=", r) }) {
			all[word] = true // an id may be a path
		}
	}
	for _, value := range r.Env {
		add(value)
	}
	for _, m := range r.Mounts {
		add(m.HostPath)
		add(m.TaskPath)
	}
	for _, d := range r.Devices {
		add(d.HostPath)
		add(d.TaskPath)
	}
	return all
}

// leastName is the length at which an id is no accident. A shorter one may be a number of something.
const leastName = 8

func onlyTheReserved(c *check) {
	n := c.node()
	ids := idsOf(c.several(n))
	for _, own := range ids {
		named := words(c.reserve(n, own))
		for _, other := range ids {
			if other != own && named[other] && (!named[own] || len(other) >= leastName) {
				c.Stopf("an answer for "+own, "the answer for %q names the device %q", own, other)
			}
		}
	}
}

func givesSomething(c *check) {
	n := c.node()
	for _, g := range c.devices(n) {
		for _, d := range g.Devices[:min(len(g.Devices), mostIDs)] {
			if !d.Healthy {
				continue
			}
			if empty(c.reserve(n, d.ID)) {
				c.Stopf("a variable, a mount or a device file", "Reserve of %q returns nothing", d.ID)
			}
		}
	}
}

// empty reports whether a task gets nothing.
func empty(r device.Reservation) bool {
	return len(r.Env) == 0 && len(r.Mounts) == 0 && len(r.Devices) == 0
}

// oneEach finds what the rule "V7 others" does not: short ids, which the answers name anyway.
// Devices may share all that they have, so equal answers alone are no mistake.
func oneEach(c *check) {
	n := c.node()
	ids := idsOf(c.several(n))
	one, other := c.reserve(n, ids[0]), c.reserve(n, ids[1])
	named := words(one)
	if equal(one, other) && !slices.ContainsFunc(ids, func(id string) bool { return !named[id] }) {
		c.Stopf("an answer for one device", "the answers for %q and %q are the same, and name all devices", ids[0], ids[1])
	}
}

func reserveAgain(c *check) {
	n := c.node()
	id := c.devices(n)[0].Devices[0].ID
	one := c.reserve(n, id)
	for range 2 {
		if again := c.reserve(n, id); !equal(one, again) {
			c.Stopf("the same answer each time", "a later answer for %q is another one: %v and %v", id, one, again)
		}
	}
}

// equal reports whether a task sees no difference between two reservations.
func equal(a, b device.Reservation) bool {
	one, oneErr := device.Merge([]device.Part{{Reservation: a}})
	other, otherErr := device.Merge([]device.Part{{Reservation: b}})
	if oneErr != nil || otherErr != nil {
		return reflect.DeepEqual(a, b)
	}
	return reflect.DeepEqual(one, other)
}

func reserveSeveral(c *check) {
	n := c.node()
	g := c.several(n)
	ids := idsOf(g)
	c.reserve(n, ids[:2]...)
	c.valid(g.Kind.String(), c.reserve(n, ids...))
}

func statistics(c *check) {
	n := c.node()
	known := map[cluster.DeviceKind]map[string]bool{}
	for _, g := range c.devices(n) {
		known[g.Kind] = map[string]bool{}
		for _, d := range g.Devices {
			known[g.Kind][d.ID] = true
		}
	}
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	reports, returned := make(chan []device.GroupStats, 10), make(chan error, 1)
	p := n.Plugin()
	go func() {
		answer := c.Calls.Begin("Stats, interval %v", c.harness.Unit)
		err := p.Stats(ctx, c.harness.Unit, func(groups []device.GroupStats) {
			select {
			case reports <- groups:
			default:
			}
		})
		answer(conformance.ErrorText(err))
		returned <- err
	}()
	for i := range 3 {
		within := c.harness.Slack
		if i > 0 {
			within += c.harness.Unit
		}
		select {
		case groups := <-reports:
			c.strangers(groups, known)
		case err := <-returned:
			if i == 0 && driver.ClassOf(err) == driver.Unsupported {
				return
			}
			c.Stopf("statistics until the context ends", "the stream of statistics ended: %s", conformance.ErrorText(err))
		case <-time.After(within):
			c.Stopf(fmt.Sprintf("statistics within %v", within), "no statistics after %d reports", i)
		}
	}
	cancel()
	select {
	case <-returned:
	case <-time.After(c.harness.Slack):
		c.Stopf(fmt.Sprintf("the stream ends within %v of its context", c.harness.Slack), "the stream of statistics did not end")
	}
}

// strangers notes statistics of devices that the plugin does not have.
func (c *check) strangers(groups []device.GroupStats, known map[cluster.DeviceKind]map[string]bool) {
	c.Helper()
	for _, g := range groups {
		for id := range g.Devices {
			if !known[g.Kind][id] {
				c.Stopf("statistics of devices of the fingerprint", "there are statistics of the device %q of the kind %s, which the plugin does not have", id, g.Kind)
			}
		}
	}
}

func wrongConfig(c *check) {
	if c.harness.Wrong == nil {
		c.Stopf(`a config that the plugin must refuse in "wrong", or an entry in "skips"`, "the harness has no wrong config")
	}
	err := c.harness.Wrong(c.T)
	c.Calls.Begin("launch with a wrong config")(conformance.ErrorText(err))
	if err == nil {
		c.Failf("an error of SetConfig", "the plugin takes a wrong config")
	}
}
