package devicetest_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/conformance"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/devicetest"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	drivers "github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

type groups = []*cluster.DeviceGroup

// fault is what is wrong with a plugin. The functions that are nil change nothing.
type fault struct {
	// options are the faults of the double.
	options scripted.Options
	// add is a group that the plugin reports beside its lamps.
	add *cluster.DeviceGroup
	// rename returns the id that the plugin reports for its device i.
	rename func(b *broken, i int, id string) string
	// reserve changes an answer of Reserve. Count is the number of the call, from 1.
	reserve func(b *broken, count int, ids []string, r *device.Reservation, err error) error
	// fingerprints gets the number of the stream and a function that reads the double's.
	fingerprints func(ctx context.Context, count int, report func(groups), of func(context.Context, func(groups)) error) error
	stats        func(ctx context.Context, report func([]device.GroupStats)) error
	takesConfigs bool
}

// broken is the double of a device plugin with a fault.
type broken struct {
	*double
	device.Plugin
	fault *fault
	calls map[string]int
}

// brokenNode is a node with a broken plugin.
type brokenNode struct {
	*double
	fault *fault
	calls map[string]int
}

func (n brokenNode) Plugin() device.Plugin {
	return &broken{n.double, n.double.Plugin(), n.fault, n.calls}
}

// count returns the number of a call, from 1.
func (b *broken) count(call string) (count int) {
	b.loop.Do(func() {
		b.calls[call]++
		count = b.calls[call]
	})
	return count
}

// ids returns the ids of the lamps, as the plugin reports them or as the double has them.
func (b *broken) ids(renamed bool) (all []string) {
	b.loop.Do(func() {
		for _, g := range b.program.Groups() {
			for i, d := range g.Devices {
				if renamed && b.fault.rename != nil {
					d.ID = b.fault.rename(b, i, d.ID)
				}
				all = append(all, d.ID)
			}
		}
	})
	return all
}

func (b *broken) Fingerprints(ctx context.Context, report func(groups)) error {
	of := func(ctx context.Context, report func(groups)) error {
		return b.Plugin.Fingerprints(ctx, func(all groups) {
			for _, g := range all {
				for i := range g.Devices {
					if b.fault.rename != nil {
						g.Devices[i].ID = b.fault.rename(b, i, g.Devices[i].ID)
					}
				}
			}
			if b.fault.add != nil && len(all) > 0 {
				all = append(all, b.fault.add)
			}
			report(all)
		})
	}
	if b.fault.fingerprints == nil {
		return of(ctx, report)
	}
	return b.fault.fingerprints(ctx, b.count(fmt.Sprint("Fingerprints of ", b.program.Living()[0].Generation())), report, of)
}

func (b *broken) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	original := slices.Clone(ids)
	for i, id := range ids {
		if at := slices.Index(b.ids(true), id); at >= 0 {
			original[i] = b.ids(false)[at]
		}
	}
	r, err := b.Plugin.Reserve(ctx, original)
	if b.fault.reserve != nil {
		err = b.fault.reserve(b, b.count(fmt.Sprint("Reserve", ids)), ids, &r, err)
	}
	return r, err
}

func (b *broken) Stats(ctx context.Context, interval time.Duration, report func([]device.GroupStats)) error {
	if b.fault.stats == nil {
		return b.Plugin.Stats(ctx, interval, report)
	}
	return b.fault.stats(ctx, report)
}

// naming is an answer that names devices.
func naming(ids []string) device.Reservation {
	return device.Reservation{Env: map[string]string{"LAMPS": strings.Join(ids, ",")}}
}

func refused(text string) error {
	return &driver.Error{Class: driver.Fatal, Call: "Call", Err: fmt.Errorf("%s", text)}
}

// measured are the statistics of a device, until the context ends.
func measured(id string) func(context.Context, func([]device.GroupStats)) error {
	return func(ctx context.Context, report func([]device.GroupStats)) error {
		report([]device.GroupStats{{Kind: lamps()[0].Kind, Devices: map[string]device.Stats{id: {}}}})
		<-ctx.Done()
		return ctx.Err()
	}
}

// story is a broken plugin, the rules that it breaks, and words of what happened.
type story struct {
	name, fails, happened string
	fault                 fault
}

func brokenReports() []story {
	kind := cluster.DeviceKind{Vendor: "acme", Type: "lamp", Name: "L2"}
	call := func(name string, f drivers.Fault) scripted.Options {
		return scripted.Options{Fault: func(c scripted.Call) drivers.Fault {
			if c.Name == name {
				return f
			}
			return drivers.Fault{}
		}}
	}
	return []story{
		{"works", "", "", fault{}},
		{"reports late", "V1, V1 empty, V1 cancel", "the first fingerprint came after 2s", fault{options: call(scripted.CallFingerprint, drivers.Fault{Delay: 2 * time.Second})}},
		{"reports nothing without lamps", "V1 empty", "no fingerprint", fault{fingerprints: func(ctx context.Context, _ int, report func(groups), of func(context.Context, func(groups)) error) error {
			return of(ctx, func(g groups) {
				if len(g) > 0 {
					report(g)
				}
			})
		}}},
		{"reports once", "V1 change", "no fingerprint with other devices", fault{fingerprints: func(ctx context.Context, _ int, report func(groups), of func(context.Context, func(groups)) error) error {
			reported := false
			return of(ctx, func(g groups) {
				if !reported {
					reported = true
					report(g)
				}
			})
		}}},
		{"ends its stream after a change", "V1 change", "the stream ended by itself: Call: the devices have changed", fault{fingerprints: func(ctx context.Context, _ int, report func(groups), of func(context.Context, func(groups)) error) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			var reported, changed bool
			err := of(ctx, func(g groups) {
				if reported {
					changed = true
					cancel()
					return
				}
				reported = true
				report(g)
			})
			if changed {
				return refused("the devices have changed")
			}
			return err
		}}},
		{"has one stream", "V1 cancel", "there is a stream already", fault{fingerprints: func(ctx context.Context, count int, report func(groups), of func(context.Context, func(groups)) error) error {
			if count > 1 {
				return refused("there is a stream already")
			}
			return of(ctx, report)
		}}},
		{"does not notice the end of its stream", "V1 cancel, V3", "the stream did not end", fault{fingerprints: func(ctx context.Context, _ int, report func(groups), of func(context.Context, func(groups)) error) error {
			defer time.Sleep(time.Minute)
			return of(ctx, report)
		}}},
		{"reports an id twice", "V1 ids", "2 devices have this id", fault{add: &cluster.DeviceGroup{Kind: kind, Devices: []cluster.Device{{ID: "x"}, {ID: "x"}}}}},
		{"reports an empty id", "V1 ids", "its id is empty", fault{add: &cluster.DeviceGroup{Kind: kind, Devices: []cluster.Device{{}}}}},
		{"has no vendor", "V1 ids", "its vendor is empty", fault{add: &cluster.DeviceGroup{Kind: cluster.DeviceKind{Type: "lamp", Name: "L2"}}}},
		{"reports a group twice", "V1 ids", "the group occurs more than once, with different values", fault{add: &cluster.DeviceGroup{
			Kind: lamps()[0].Kind, Attributes: map[string]cluster.DeviceAttribute{"power": {Kind: cluster.AttributeInt, Int: 1}},
		}}},
		{"has new ids in each process", "V3", "after a restart the plugin has acme/lamp/L1", fault{rename: func(b *broken, _ int, id string) string {
			return fmt.Sprintf("%s-%d", id, b.program.Living()[0].Generation())
		}}},
		{"does not start again", "V3, V3 change", "launching the plugin: Launch: once is enough", fault{options: scripted.Options{Launch: func(generation int) drivers.Launch {
			if generation > 1 {
				return drivers.Launch{Err: "once is enough"}
			}
			return drivers.Launch{}
		}}}},
		{"counts its lamps", "V3 change", `after a change of the devices, the id "0" has the path "/dev/acme/lamp/L1/lamp-two", which the id "1" had before`, fault{
			rename: func(_ *broken, i int, _ string) string { return strconv.Itoa(i) },
		}},
		{"dies of Reserve", "V3, V6, V6 something, V7, V7 none, V7 others, V7 alone, V7 repeat, V7 several", "the device plugin's process is gone", fault{options: call(scripted.CallReserve, drivers.Fault{Action: drivers.Crash})}},
		{"measures once", "V8", "no statistics after 1 reports", fault{stats: measured("lamp-one")}},
		{"measures strangers", "V8", `the device "stranger" of the kind acme/lamp/L1`, fault{stats: measured("stranger")}},
		{"cannot measure", "V8", "the meter is broken", fault{stats: func(context.Context, func([]device.GroupStats)) error { return refused("the meter is broken") }}},
		{"takes any config", "V9", "the plugin takes a wrong config", fault{takesConfigs: true}},
	}
}

func brokenReservations() []story {
	// one changes the answers for one device.
	one := func(change func(*device.Reservation)) fault {
		return fault{reserve: func(_ *broken, _ int, ids []string, r *device.Reservation, err error) error {
			if err == nil && len(ids) == 1 {
				change(r)
			}
			return err
		}}
	}
	return []story{
		{"gives a relative path", "V6", `the path "lib" is not absolute`, one(func(r *device.Reservation) { r.Mounts = []driver.Mount{{TaskPath: "lib", HostPath: "/usr/lib"}} })},
		{"gives unknown permissions", "V6", `the permissions "all" have letters other than "rwm"`, one(func(r *device.Reservation) { r.Devices[0].Permissions = "all" })},
		{"gives a variable without a name", "V6", `the variable "A=B"`, one(func(r *device.Reservation) { r.Env["A=B"] = "c" })},
		{"gives nothing", "V6 something", `Reserve of "lamp-one" returns nothing`, one(func(r *device.Reservation) { *r = device.Reservation{} })},
		{"takes any id", "V7", "Reserve takes the ids", fault{reserve: func(_ *broken, _ int, ids []string, r *device.Reservation, err error) error {
			if err != nil {
				*r = naming(ids)
			}
			return nil
		}}},
		{"checks the first id only", "V7", `Reserve takes the ids ["lamp-one" "no-such-device"]`, fault{reserve: func(_ *broken, _ int, ids []string, r *device.Reservation, err error) error {
			if err != nil && len(ids) > 1 {
				*r = naming(ids)
				return nil
			}
			return err
		}}},
		{"refuses to reserve nothing", "V7 none", "there is nothing to reserve", fault{reserve: func(_ *broken, _ int, ids []string, _ *device.Reservation, err error) error {
			if len(ids) == 0 {
				return refused("there is nothing to reserve")
			}
			return err
		}}},
		{"gives all with short ids", "V7 alone", `the answers for "one" and "three" are the same, and name all devices`, fault{
			rename: func(_ *broken, _ int, id string) string { return strings.TrimPrefix(id, "lamp-") },
			reserve: func(b *broken, _ int, ids []string, r *device.Reservation, err error) error {
				if err == nil && len(ids) > 0 {
					*r = naming(b.ids(true))
				}
				return err
			},
		}},
		{"gives all", "V7 others, V7 alone", `the answer for "lamp-one" names the device "lamp-three"`, fault{reserve: func(b *broken, _ int, ids []string, r *device.Reservation, err error) error {
			if err == nil && len(ids) > 0 {
				*r = naming(b.ids(true))
			}
			return err
		}}},
		{"gives another one", "V7 others", `the answer for "lamp-one" names the device "lamp-two"`, fault{reserve: func(b *broken, _ int, ids []string, r *device.Reservation, err error) error {
			if all := b.ids(true); err == nil && len(ids) == 1 {
				*r = naming([]string{all[(slices.Index(all, ids[0])+1)%len(all)]})
			}
			return err
		}}},
		{"has owners", "V7 repeat", "the lamp is in use", fault{reserve: func(_ *broken, count int, _ []string, _ *device.Reservation, err error) error {
			if err == nil && count > 1 {
				return refused("the lamp is in use")
			}
			return err
		}}},
		{"counts its calls", "V7 repeat", "is another one", fault{reserve: func(_ *broken, count int, _ []string, r *device.Reservation, err error) error {
			if r.Env != nil {
				r.Env["TIME"] = strconv.Itoa(count)
			}
			return err
		}}},
		{"reserves one at a time", "V7 several", "one lamp at a time", fault{reserve: func(_ *broken, _ int, ids []string, _ *device.Reservation, err error) error {
			if len(ids) > 1 && err == nil {
				return refused("one lamp at a time")
			}
			return err
		}}},
		{"gives one path", "V7 several", `the path "/dev/lamp" of the task different device files`, fault{reserve: func(_ *broken, _ int, _ []string, r *device.Reservation, err error) error {
			for i := range r.Devices {
				r.Devices[i].TaskPath = "/dev/lamp"
			}
			return err
		}}},
	}
}

// harness returns the harness of a broken plugin.
func (f *fault) harness() devicetest.Harness {
	h := harness(f.options)
	of := func(found groups) func(devicetest.T) devicetest.Node {
		return func(t devicetest.T) devicetest.Node {
			o := f.options
			o.Groups = found
			return brokenNode{newDouble(t, o), f, map[string]int{}}
		}
	}
	h.New, h.Empty = of(lamps("lamp-one", "lamp-two", "lamp-three")), of(nil)
	if f.takesConfigs {
		h.Wrong = func(devicetest.T) error { return nil }
	}
	return h
}

// A check that cannot fail is a defect. Each broken plugin fails the rules that are named, and no
// others. Each rule has at least one plugin that breaks it.
func TestTests_findBrokenPlugins(t *testing.T) {
	t.Parallel()
	broken := map[string]bool{}
	for _, s := range slices.Concat(brokenReports(), brokenReservations()) {
		var fails, happened []string
		synctest.Test(t, func(t *testing.T) {
			conformance.Judge(t.Context(), devicetest.Tests(s.fault.harness()), nil, func(f conformance.Finding) {
				if len(f.Failures) > 0 {
					fails = append(fails, f.Rule.ID)
					broken[f.Rule.ID] = true
				}
				for _, failure := range f.Failures {
					happened = append(happened, f.Rule.ID+": "+failure.Happened)
				}
			})
			time.Sleep(time.Hour) // goroutines of slow plugins end in this time
		})
		text := strings.Join(happened, "\n")
		test.EqOp(t, s.fails, strings.Join(fails, ", "), test.Sprintf("a plugin that %s:\n%s", s.name, text))
		test.StrContains(t, text, s.happened)
	}
	for _, rule := range devicetest.Tests(devicetest.Harness{}) {
		must.True(t, broken[rule.ID], must.Sprintf("no broken plugin fails %s", rule.ID))
	}
}
