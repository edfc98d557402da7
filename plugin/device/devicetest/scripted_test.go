package devicetest_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// double is a node with the double of a device plugin.
type double struct {
	loop    *drivers.Loop
	program *scripted.Program
	plugin  *blockingPlugin
}

var _ devicetest.Node = (*double)(nil)

func newDouble(t devicetest.T, o scripted.Options) *double {
	d := &double{loop: drivers.NewLoop()}
	d.loop.Do(func() { d.program = scripted.Install(drivers.NewMachine(d.loop), d.loop, "double", o) })
	d.Launch(t)
	return d
}

func (d *double) Plugin() device.Plugin { return d.plugin }

func (d *double) Kill(devicetest.T) {
	d.loop.Do(func() {
		for _, generation := range d.program.Living() {
			generation.Kill(drivers.ByFault)
		}
	})
}

func (d *double) Launch(t devicetest.T) {
	launched := make(chan error, 1)
	d.loop.Do(func() {
		d.program.Launch(func(p *scripted.Plugin, err error) {
			d.plugin = &blockingPlugin{loop: d.loop, plugin: p}
			launched <- err
		})
	})
	if err := <-launched; err != nil {
		t.Fatalf("launching the plugin: %v", err)
	}
}

func (d *double) Change(devicetest.T) bool {
	d.loop.Do(func() { d.program.SetGroups(lamps("lamp-two", "lamp-three")) })
	return true
}

func lamps(ids ...string) []*cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L1"}}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return []*cluster.DeviceGroup{g}
}

// harness is that of the double, in the time of testing/synctest.
func harness(o scripted.Options) devicetest.Harness {
	o.Groups = lamps("lamp-one", "lamp-two", "lamp-three")
	return devicetest.Harness{
		New:    func(t devicetest.T) devicetest.Node { return newDouble(t, o) },
		Empty:  func(t devicetest.T) devicetest.Node { return newDouble(t, scripted.Options{}) },
		Wrong:  func(devicetest.T) error { return errors.New("the double takes no config") },
		Around: synctest.Test,
		Strict: true,
	}
}

// The double passes the suite.
func TestRun_overTheDouble(t *testing.T) {
	t.Parallel()
	devicetest.Run(t, harness(scripted.Options{}))
}
