package devicetest_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// double is a node with the double of a device plugin.
type double struct {
	loop    *drivers.Loop
	program *scripted.Program
	plugin  *scripted.Blocking
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
			d.plugin = scripted.NewBlocking(d.loop, p)
			launched <- err
		})
	})
	if err := <-launched; err != nil {
		t.Fatalf("launching the plugin: %v", err)
	}
}

func (d *double) Change(devicetest.T) bool {
	d.loop.Do(func() { d.program.SetGroups(lamps("lamp-one")) })
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

// failures judges one rule in virtual time and returns what happened.
func failures(t *testing.T, id string, h devicetest.Harness) (happened []string) {
	t.Helper()
	tests := slices.DeleteFunc(devicetest.Tests(h), func(one conformance.Test) bool { return one.ID != id })
	must.SliceLen(t, 1, tests)
	synctest.Test(t, func(t *testing.T) {
		conformance.Judge(t.Context(), tests, h.Skips, func(f conformance.Finding) {
			for _, failure := range f.Failures {
				happened = append(happened, failure.Happened)
			}
		})
	})
	return happened
}

// A plugin in this process can also hang and keep a stream, which one behind the host cannot.
func TestTests_findBrokenDoubles(t *testing.T) {
	t.Parallel()
	fault := func(name string, f drivers.Fault) scripted.Options {
		return scripted.Options{Fault: func(c scripted.Call) drivers.Fault {
			if c.Name == name {
				return f
			}
			return drivers.Fault{}
		}}
	}
	for _, story := range []struct {
		rule     string
		options  scripted.Options
		expected string
	}{
		{"V1", fault(scripted.CallFingerprint, drivers.Fault{Delay: 2 * time.Second}), "the first fingerprint came after 2s"},
		{"V1", fault(scripted.CallFingerprint, drivers.Fault{Action: drivers.Hang}), "no fingerprint"},
		{"V1 change", fault(scripted.CallFingerprint, drivers.Fault{Action: drivers.Fail}), "the stream ended by itself: Fingerprint: a fault of the script"},
		{"V3", scripted.Options{Launch: func(generation int) drivers.Launch {
			if generation > 1 {
				return drivers.Launch{Err: "once is enough"}
			}
			return drivers.Launch{}
		}}, "launching the plugin: Launch: once is enough"},
		{"V7 none", fault(scripted.CallReserve, drivers.Fault{Action: drivers.Hang}), "reserving []: Reserve: context deadline exceeded"},
		{"V7", fault(scripted.CallReserve, drivers.Fault{Action: drivers.Crash}), "the device plugin's process is gone"},
	} {
		t.Run(story.rule+" "+story.expected, func(t *testing.T) {
			t.Parallel()
			must.StrContains(t, failures(t, story.rule, harness(story.options))[0], story.expected)
		})
	}
	for _, story := range []struct {
		rule     string
		change   func(device.Plugin) device.Plugin
		expected string
	}{
		{"V1 cancel", func(p device.Plugin) device.Plugin { return deaf{p} }, "the stream did not end"},
		{"V7 others", func(p device.Plugin) device.Plugin { return generous{p} }, `the answer for "lamp-one" names the device "lamp-three"`},
		{"V8", func(p device.Plugin) device.Plugin { return deaf{p} }, "no statistics after 0 reports"},
	} {
		t.Run(story.rule, func(t *testing.T) {
			t.Parallel()
			h := harness(scripted.Options{})
			h.New = func(t devicetest.T) devicetest.Node {
				return changedNode{newDouble(t, scripted.Options{Groups: lamps("lamp-one", "lamp-two", "lamp-three")}), story.change}
			}
			must.StrContains(t, failures(t, story.rule, h)[0], story.expected)
		})
	}
}
