package devicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// patience is how long a call may take that should be answered at once. It only ends tests of
// plugins that hang.
const patience = 30 * time.Second

// check is one test that runs.
type check struct {
	conformance.Check
	harness Harness
}

// node returns a node with the plugin.
func (c *check) node() Node { return c.started(c.harness.New(c.T)) }

// started notes the log of a node.
func (c *check) started(n Node) Node {
	if l, is := n.(conformance.Logger); is {
		c.Cleanup(func() { c.Calls.Keep(l.Log()) })
	}
	c.Calls.Start()
	return n
}

// ok stops the test after an error.
func (c *check) ok(err error, call string) {
	c.Helper()
	if err != nil {
		c.Stopf("no error", "%s: %v (class: %s)", call, err, driver.ClassOf(err))
	}
}

// listening is an open stream of fingerprints.
type listening struct {
	began time.Time
	// reports has the reports that were not taken, up to ten of them.
	reports chan []*cluster.DeviceGroup
	// returned has the error of the stream.
	returned chan error
	cancel   context.CancelFunc
}

// listen opens a stream of fingerprints, which ends with the test.
func (c *check) listen(n Node) *listening {
	ctx, cancel := context.WithCancel(c.Context())
	l := &listening{began: time.Now(), reports: make(chan []*cluster.DeviceGroup, 10), returned: make(chan error, 1), cancel: cancel}
	p := n.Plugin()
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer := c.Calls.Begin("Fingerprint")
		reports := 0
		err := p.Fingerprints(ctx, func(groups []*cluster.DeviceGroup) {
			if reports++; reports <= mostNoted {
				c.Calls.Begin("Fingerprint, report %d", reports)(describe(groups))
			}
			select {
			case l.reports <- groups:
			default:
			}
		})
		answer(conformance.ErrorText(err))
		l.returned <- err
	}()
	c.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

// mostNoted bounds the reports of a stream that are noted.
const mostNoted = 10

// describe names the devices of a report.
func describe(groups []*cluster.DeviceGroup) string {
	var all []string
	for _, g := range groups {
		ids := []string{}
		for _, d := range g.Devices[:min(len(g.Devices), mostNoted)] {
			ids = append(ids, d.ID)
		}
		text := fmt.Sprintf("%s %q", g.Kind, ids)
		if more := len(g.Devices) - len(ids); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "no device"
	}
	return strings.Join(all, ", ")
}

// next returns the next report of a stream.
func (c *check) next(l *listening, within time.Duration) []*cluster.DeviceGroup {
	c.Helper()
	select {
	case groups := <-l.reports:
		return groups
	case err := <-l.returned:
		select {
		case groups := <-l.reports: // it came before the end
			l.returned <- err
			return groups
		default:
		}
		c.Stopf("the stream goes on until its context ends", "the stream ended by itself: %v", err)
	case <-time.After(within):
		c.Stopf(fmt.Sprintf("a fingerprint within %v", within), "no fingerprint")
	}
	return nil
}

// report returns the first report of a new stream.
func (c *check) report(n Node) (*listening, []*cluster.DeviceGroup) {
	c.Helper()
	l := c.listen(n)
	return l, c.next(l, patience)
}

// first returns the first report of a new stream, which must come at once.
func (c *check) first(n Node) (*listening, []*cluster.DeviceGroup) {
	c.Helper()
	l, groups := c.report(n)
	if late := time.Since(l.began); late > c.harness.Slack {
		c.Failf(fmt.Sprintf("the first fingerprint within %v", c.harness.Slack), "the first fingerprint came after %v", conformance.Rounded(late))
	}
	return l, groups
}

// devices returns the devices of a node that a client may use. There is at least one.
func (c *check) devices(n Node) []*cluster.DeviceGroup {
	c.Helper()
	l := c.listen(n)
	defer l.cancel()
	return c.usable(c.next(l, patience))
}

// usable returns the groups of a report that a client may use and that have devices. There is at
// least one.
func (c *check) usable(report []*cluster.DeviceGroup) []*cluster.DeviceGroup {
	c.Helper()
	groups, _ := device.Check(report) // a problem fails the rule V1 ids
	groups = slices.DeleteFunc(groups, func(g *cluster.DeviceGroup) bool { return len(g.Devices) == 0 })
	if len(groups) == 0 {
		c.Stopf(`a device, or an entry in "skips"`, "the plugin has no device")
	}
	return groups
}

// several returns the group with the most devices. There are at least two.
func (c *check) several(n Node) *cluster.DeviceGroup {
	c.Helper()
	groups := c.devices(n)
	most := groups[0]
	for _, g := range groups {
		if len(g.Devices) > len(most.Devices) {
			most = g
		}
	}
	if len(most.Devices) < 2 {
		c.Stopf(`two devices of one kind, or an entry in "skips"`, "the plugin has one device of the kind %s", most.Kind)
	}
	return most
}

// mostIDs bounds the devices that a test reserves.
const mostIDs = 50

// idsOf returns ids of devices.
func idsOf(g *cluster.DeviceGroup) []string {
	var ids []string
	for _, d := range g.Devices[:min(len(g.Devices), mostIDs)] {
		ids = append(ids, d.ID)
	}
	return ids
}

// try calls Reserve.
func (c *check) try(n Node, ids ...string) (device.Reservation, error) {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	answer := c.Calls.Begin("Reserve %q", ids)
	r, err := n.Plugin().Reserve(ctx, ids)
	if err != nil {
		answer(conformance.ErrorText(err))
		return r, err
	}
	answer(fmt.Sprintf("variables %v, mounts %v, devices %v", r.Env, r.Mounts, r.Devices))
	return r, nil
}

// reserve calls Reserve, which must succeed.
func (c *check) reserve(n Node, ids ...string) device.Reservation {
	c.Helper()
	r, err := c.try(n, ids...)
	c.ok(err, fmt.Sprintf("reserving %q", ids))
	return r
}
