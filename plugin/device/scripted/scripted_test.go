package scripted_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

var toy = cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}

func groups(ids ...string) []*cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: toy}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return []*cluster.DeviceGroup{g}
}

// node is a machine with one device plugin, over a loop in the time of synctest.
type node struct {
	*testing.T
	loop    *drivers.Loop
	program *scripted.Program
	plugin  *scripted.Plugin
}

func play(t *testing.T, o scripted.Options, do func(n *node)) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{T: t, loop: drivers.NewLoop()}
		n.loop.Do(func() { n.program = scripted.Install(drivers.NewMachine(n.loop), n.loop, "toys", o) })
		n.launch()
		do(n)
	})
}

func (n *node) launch() {
	n.loop.Do(func() {
		n.program.Launch(func(p *scripted.Plugin, err error) {
			must.NoError(n, err)
			n.plugin = p
		})
	})
	synctest.Wait()
}

// reserve reserves devices and returns the answer, if it comes within a minute.
func (n *node) reserve(task driver.TaskID, ids ...string) (r device.Reservation, err error) {
	err = errors.New("no answer")
	n.loop.Do(func() {
		n.plugin.Reserve(task, ids, func(got device.Reservation, failed error) { r, err = got, failed })
		must.ErrorContains(n, err, "no answer") // not before the call returns
	})
	time.Sleep(time.Minute)
	synctest.Wait()
	return r, err
}

// A reservation names the file of each device, a repetition has the same answer, and the table
// has the newest owner.
func TestPlugin_Reserve(t *testing.T) {
	t.Parallel()
	play(t, scripted.Options{Groups: groups("d1", "d2")}, func(n *node) {
		first, err := n.reserve("a/web/1", "d2", "d1")
		must.NoError(t, err)
		must.Eq(t, device.Reservation{
			Env: map[string]string{"TOY_D1": "/dev/acme/toy/t1/d1", "TOY_D2": "/dev/acme/toy/t1/d2"},
			Devices: []driver.Device{
				{TaskPath: "/dev/acme/toy/t1/d2", HostPath: "/dev/acme/toy/t1/d2", Permissions: "rw"},
				{TaskPath: "/dev/acme/toy/t1/d1", HostPath: "/dev/acme/toy/t1/d1", Permissions: "rw"},
			},
		}, first)
		again, err := n.reserve("b/web/2", "d2", "d1")
		must.NoError(t, err)
		must.Eq(t, first, again)
		none, err := n.reserve("c/web/3")
		must.NoError(t, err)
		must.Eq(t, device.Reservation{}, none)
		_, err = n.reserve("c/web/3", "d9")
		must.ErrorContains(t, err, `unknown device "d9"`)
		rows := n.program.Rows()
		must.Len(t, 2, rows)
		must.EqOp(t, "d1", rows[0].ID)
		must.EqOp(t, "b/web/2", rows[0].Owner)
	})
}

// A stream reports the devices first, and then each change, until it is ended.
func TestPlugin_Fingerprints(t *testing.T) {
	t.Parallel()
	play(t, scripted.Options{Groups: groups("d1")}, func(n *node) {
		var reports [][]*cluster.DeviceGroup
		var ended error
		open := func() {
			n.loop.Do(func() {
				n.plugin.Fingerprints(func(g []*cluster.DeviceGroup) { reports = append(reports, g) }, func(err error) { ended = err })
			})
			synctest.Wait()
		}
		open()
		must.Eq(t, [][]*cluster.DeviceGroup{groups("d1")}, reports)
		n.loop.Do(func() {
			n.program.SetGroups(groups("d1", "d2"))
			n.program.SetGroups(nil)
		})
		synctest.Wait()
		must.Eq(t, [][]*cluster.DeviceGroup{groups("d1"), groups("d1", "d2"), {}}, reports)
		n.loop.Do(func() { n.plugin.EndStreams() })
		synctest.Wait()
		must.ErrorContains(t, ended, "has ended the stream")
		n.loop.Do(func() { n.program.SetGroups(groups("d3")) })
		synctest.Wait()
		must.Len(t, 3, reports)
		open()
		must.Eq(t, groups("d3"), reports[3])
	})
}
