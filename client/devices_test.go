package client_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// waiting returns what a task waits for, from the reports to the servers.
func (n *node) waiting(id cluster.AllocID, name string) string {
	state := n.servers[id].TaskStates.State(name)
	if state == nil || state.Waiting == nil {
		return ""
	}
	return string(state.Waiting.For) + ": " + state.Waiting.Detail
}

// reportedDevices describes the devices that the client has published.
func (n *node) reportedDevices() (words []string) {
	if len(n.published) == 0 {
		return nil
	}
	for _, g := range n.published[len(n.published)-1].Devices {
		for _, d := range g.Devices {
			word := g.Kind.String() + "/" + d.ID
			if !d.Healthy {
				word += " " + d.HealthDescription
			}
			words = append(words, word)
		}
	}
	return words
}

// V4, V7: the client reserves a task's devices at each start, and not when a client or a driver
// takes the task over.
func TestLedger_reservesAtEachStart(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.scripts["web"] = script{runs: []ending{{after: time.Minute, code: 1}, {}}}
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(30 * time.Second)
	must.EqOp(t, "d1 1", n.devices.reserved())
	restarts(n, 10*time.Second)
	n.killDriver()
	n.run(10 * time.Second)
	must.EqOp(t, "d1 1", n.devices.reserved())
	n.run(time.Minute)
	must.EqOp(t, "d1 2", n.devices.reserved())
	n.restart("a", "web", false)
	n.run(time.Minute)
	must.EqOp(t, "d1 3", n.devices.reserved())
	must.Len(t, 1, n.live("web"))
}

// V5: the device's owner stops slowly and cannot be killed at once. The waiting task names the
// allocation that holds the device, and starts when the owner's start is removed.
func TestLedger_waitsForTheOwner(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.scripts["old"] = script{ignores: true, undying: time.Minute}
	n.place(withDevices(allocation("a", mainTask("old")), "old", "d1"))
	n.run(time.Minute)
	n.stop("a")
	n.place(withDevices(allocation("b", mainTask("new")), "new", "d1"))
	n.run(time.Minute)
	must.EqOp(t, "device: the device acme/toy/t1/d1 is held by task old of allocation a", n.waiting("b", "new"))
	must.EqOp(t, "waiting for devices", n.servers["b"].ClientDescription)
	must.StrContains(t, n.waiting("a", "old"), "process 4711 (dd) in state D")
	must.EqOp(t, cluster.ClientRunning, n.status("a"))
	reaches(n, "a", cluster.ClientComplete, time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
	must.EqOp(t, "", n.waiting("b", "new"))
}

// V4: the servers assign one device to two tasks. The second task waits, also after a restart of
// the client, and never gets the device.
func TestLedger_doubleGrant(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("b", mainTask("first")), "first", "d1"))
	n.run(time.Minute)
	n.place(withDevices(allocation("a", mainTask("second")), "second", "d2", "d1")) // its id is the lower one
	n.run(time.Minute)
	restarts(n, time.Minute)
	must.Len(t, 1, n.live(""))
	must.Len(t, 1, n.live("first"))
	must.StrContains(t, n.waiting("a", "second"), "acme/toy/t1/d1 is held by task first of allocation b")
	must.EqOp(t, "d1 1", n.devices.reserved())
}

// The disk fails when the owner ends. In the records on the disk it still has the device, so
// after a crash the next client would find two owners. The next start therefore waits until the end
// is on the disk.
func TestLedger_releaseIsOnTheDisk(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.place(withDevices(allocation("a", mainTask("old")), "old", "d1"))
	n.run(time.Minute)
	n.place(withDevices(allocation("b", mainTask("new")), "new", "d1"))
	n.run(time.Minute)
	n.brokenDisk = true
	ends(n, "a", time.Minute)
	must.StrContains(t, n.waiting("b", "new"), "is held by task old of allocation a")
	must.Len(t, 0, n.live(""))
	must.SliceEmpty(t, n.discarded, must.Sprint("only a full disk is freed"))
	n.brokenDisk = false
	n.run(time.Minute)
	must.Len(t, 1, n.live("new"))
}

// V2, V7: a start with an unknown or unhealthy device fails, the restart policy applies, and the
// event names the device. A running task keeps its device.
func TestDevices_missingAndUnhealthy(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Minute)
	n.devices.ids = []cluster.Device{{ID: "d2", HealthDescription: "too hot"}}
	n.post()
	n.place(withDevices(allocation("b", mainTask("gone")), "gone", "d9"))
	n.place(withDevices(allocation("c", mainTask("hot")), "hot", "d2"))
	n.run(10 * time.Second)
	must.Eq(t, []string{"acme/toy/t1/d2 too hot"}, n.reportedDevices())
	must.StrContains(t, n.messages("b", "gone"), "failed to reserve devices: the node has no device acme/toy/t1/d9")
	must.StrContains(t, n.messages("c", "hot"), "failed to reserve devices: the device acme/toy/t1/d2 is unhealthy: too hot")
	must.EqOp(t, cluster.ClientPending, n.status("b"))
	n.devices.ids[0].Healthy = true
	n.post()
	reaches(n, "b", cluster.ClientFailed, 5*time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("c"))
	must.Len(t, 1, n.live("web"), must.Sprint("its device has vanished"))
	must.EqOp(t, uint64(0), n.servers["a"].TaskStates.State("web").Restarts)
}

// V1: a plugin without devices reports an empty list, so the first publication does not wait for
// ten seconds.
func TestDevices_empty(t *testing.T) {
	n := newNode(t)
	n.install()
	n.run(time.Second)
	must.SliceLen(t, 1, n.published)
	must.SliceEmpty(t, n.reportedDevices())
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(5 * time.Second)
	must.StrContains(t, n.messages("a", "web"), "the node has no device acme/toy/t1/d1: no device plugin has this kind")
}

// V3: the plugin dies. Its devices are unhealthy until the next process reports them with the same
// ids. A task with a device continues to run, and a task that needs a device waits.
func TestDevices_pluginDies(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Minute)
	n.devices.process.launchError = errors.New("exec format error")
	n.killDevicePlugin(n.devices.process.generation)
	n.place(withDevices(allocation("b", mainTask("next")), "next", "d2"))
	n.run(10 * time.Second)
	must.Eq(t, []string{
		"acme/toy/t1/d1 the device plugin did not start: exec format error", "acme/toy/t1/d2 the device plugin did not start: exec format error",
	}, n.reportedDevices())
	must.EqOp(t, "device: the device plugin toys is not running", n.waiting("b", "next"))
	n.devices.process.launchError = nil
	n.run(5 * time.Minute)
	must.Eq(t, []string{"acme/toy/t1/d1", "acme/toy/t1/d2"}, n.reportedDevices())
	must.Len(t, 1, n.live("next"))
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, "d1 1, d2 1", n.devices.reserved())
}

// A stream of devices ends with an error, and a plugin reports nothing at all.
func TestDevices_pluginReportsNothing(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.run(time.Minute)
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Err: errors.New("the stream has ended")})
	n.run(10 * time.Second)
	must.Eq(t, []string{"acme/toy/t1/d1 the device plugin does not report its devices: the stream has ended"}, n.reportedDevices())
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Second)
	must.StrContains(t, n.messages("a", "web"), "is unhealthy: the device plugin does not report its devices")
	n.devices.mute = true
	restarts(n, time.Minute)
	must.EqOp(t, "device: the device plugin toys has not reported its devices yet", n.waiting("a", "web"))
	n.post()
	n.run(time.Second)
	must.Len(t, 1, n.live("web"))
}

// oneDevice are the parts of a report with one device of one kind with one attribute.
type oneDevice struct {
	Kind      cluster.DeviceKind
	Attribute cluster.DeviceAttribute
	Device    cluster.Device
	Ignored   string
}

func (d oneDevice) groups() []*cluster.DeviceGroup {
	return []*cluster.DeviceGroup{{Kind: d.Kind, Attributes: map[string]cluster.DeviceAttribute{"memory": d.Attribute}, Devices: []cluster.Device{d.Device}}}
}

// fieldsIn returns the fields of a struct and of the structs in it, by name.
func fieldsIn(of reflect.Value, name string) (fields []reflect.Value, names []string) {
	if of.Kind() != reflect.Struct {
		return []reflect.Value{of}, []string{name}
	}
	for i := range of.NumField() {
		inner, innerNames := fieldsIn(of.Field(i), name+"."+of.Type().Field(i).Name)
		fields, names = append(fields, inner...), append(names, innerNames...)
	}
	return fields, names
}

// alter changes the value of a field.
func alter(t *testing.T, field reflect.Value) {
	switch field.Kind() {
	case reflect.String:
		field.SetString(field.String() + "2")
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Float64:
		field.SetFloat(field.Float() + 1)
	case reflect.Uint8:
		field.SetUint(field.Uint() + 1)
	default:
		t.Fatalf("no change of a %s is defined", field.Kind())
	}
}

// A change of each field of a report is published: the test finds the fields by reflection. The same report
// again is not. Bug: the servers kept the old value of an attribute, and placed by it.
func TestDevices_eachChangeIsPublished(t *testing.T) {
	base := oneDevice{
		Kind: toy, Attribute: cluster.DeviceAttribute{Kind: cluster.AttributeInt, Int: 8, Unit: "GiB"}, Device: cluster.Device{ID: "d1", Healthy: true},
	}
	_, names := fieldsIn(reflect.ValueOf(base), "")
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.install()
			n.run(time.Minute)
			post := func(d oneDevice) {
				n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Groups: d.groups(), Ignored: d.Ignored})
				n.run(time.Minute)
			}
			post(base)
			published := len(n.published)
			post(base)
			must.Len(t, published, n.published)
			changed := base
			fields, _ := fieldsIn(reflect.ValueOf(&changed).Elem(), "")
			alter(t, fields[i])
			post(changed)
			must.Len(t, published+1, n.published)
			must.Eq(t, changed.groups(), n.published[published].Devices)
			must.EqOp(t, changed.Ignored, n.published[published].DeviceProblems["toys"])
		})
	}
}

// An error of a device plugin is a report: a start that needs a device of it fails, whether the error comes before
// or after the first devices, and before or after the placement. Bug: no test had an error as the first report.
func TestDevices_errorIsAReport(t *testing.T) {
	for _, events := range [][]string{
		{"error", "place"}, {"place", "error"}, {"devices", "error", "place"}, {"devices", "place", "error"},
		{"error", "devices", "error", "place"}, {"death", "error", "place"}, {"place", "death", "error"}, {"error", "death", "error", "place"},
	} {
		t.Run(fmt.Sprint(events), func(t *testing.T) {
			n := newNode(t)
			n.devices.mute = true
			n.devices.last = []*cluster.DeviceGroup{{Kind: toy, Devices: []cluster.Device{{ID: "d1", Healthy: true}}}}
			n.install("d1")
			n.scripts["web"] = script{}
			placed := false
			for _, event := range events {
				n.run(time.Second)
				if placed && !slices.Contains(events, "devices") {
					must.StrContains(t, n.waiting("a", "web"), "the device plugin toys")
				}
				switch event {
				case "place":
					n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
					placed = true
				case "devices":
					n.post()
				case "death":
					n.killDevicePlugin(n.devices.process.generation)
				case "error":
					n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Err: errors.New("broken")})
				}
			}
			n.run(time.Second)
			if slices.Equal(events, []string{"devices", "place", "error"}) {
				must.Len(t, 1, n.live("web")) // it has started
				return
			}
			must.StrContains(t, n.messages("a", "web"), "the device plugin does not report its devices: broken")
			reaches(n, "a", cluster.ClientFailed, 10*time.Minute)
		})
	}
}

// problems returns the problems of devices that the client has published last.
func deviceProblems(n *node) map[string]string { return n.published[len(n.published)-1].DeviceProblems }

// An operator sees why a plugin has no devices, and which parts of its report the client ignores.
func TestDevices_problems(t *testing.T) {
	n := newNode(t)
	n.devices.process.launchError = errors.New("no NVML")
	n.devices.process.down = true
	n.install()
	n.run(20 * time.Second)
	must.Eq(t, map[string]string{"toys": "the device plugin did not start: no NVML"}, deviceProblems(n))
	n.devices.process.launchError = nil
	n.run(5 * time.Minute)
	must.MapEmpty(t, deviceProblems(n))
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Ignored: "the device x is ignored"})
	n.run(10 * time.Second)
	must.Eq(t, map[string]string{"toys": "the device x is ignored"}, deviceProblems(n))
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Err: errors.New("broken")})
	n.run(10 * time.Second)
	must.Eq(t, map[string]string{"toys": "the device plugin does not report its devices: broken\nthe device x is ignored"}, deviceProblems(n))
	n.post()
	n.run(10 * time.Second)
	must.MapEmpty(t, deviceProblems(n))
}

// The client restarts, and the device plugin with it. The devices do not vanish meanwhile: they are
// unhealthy until the plugin reports. A task keeps its device, and a task that needs one waits.
func TestDevices_clientRestarts(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Minute)
	n.devices.last = n.devices.groups()
	n.devices.mute = true
	n.crash()
	n.answer()
	const unknown = "the device plugin has not reported its devices since the client has started"
	must.Eq(t, []string{unknown, unknown}, []string{n.core.Facts().Devices[0].Devices[0].HealthDescription, n.core.Facts().Devices[0].Devices[1].HealthDescription})
	n.place(withDevices(allocation("b", mainTask("next")), "next", "d2"))
	n.run(time.Minute)
	must.Eq(t, []string{"acme/toy/t1/d1 " + unknown, "acme/toy/t1/d2 " + unknown}, n.reportedDevices())
	must.EqOp(t, "device: the device plugin toys has not reported its devices yet", n.waiting("b", "next"))
	must.MapEmpty(t, deviceProblems(n))
	n.post()
	n.run(10 * time.Second)
	must.Eq(t, []string{"acme/toy/t1/d1", "acme/toy/t1/d2"}, n.reportedDevices())
	must.Len(t, 1, n.live("web"))
	must.Len(t, 1, n.live("next"))
	must.EqOp(t, "d1 1, d2 1", n.devices.reserved())
}

// V7: a reservation fails, or its plugin dies or hangs. The start fails, the restart policy
// applies, and the client restarts a plugin that hangs.
func TestDevices_reservationFails(t *testing.T) {
	for name, test := range map[string]struct {
		script deviceScript
		output string
		deaths bool
	}{
		"error": {deviceScript{errors: []error{errors.New("unknown device")}}, "failed to reserve devices: unknown device", false},
		"dies":  {deviceScript{dies: true}, "failed to reserve devices: Reserve: the plugin is gone", true},
		"hangs": {deviceScript{hangs: true}, "failed to reserve devices: Reserve: no answer", true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.install("d1")
			n.devices.scripts["web"] = test.script
			n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
			n.run(40 * time.Second)
			must.StrContains(t, n.messages("a", "web"), test.output)
			must.EqOp(t, test.deaths, n.devices.process.launches > 0)
			n.devices.scripts["web"] = deviceScript{}
			n.run(2 * time.Minute)
			must.Len(t, 1, n.live("web"))
			must.EqOp(t, uint64(1), n.servers["a"].TaskStates.State("web").Restarts)
			ends(n, "a", time.Minute)
		})
	}
}

// A task is stopped while its devices are being reserved. It never starts.
func TestDevices_stoppedWhileReserving(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.devices.scripts["web"] = deviceScript{hangs: true}
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Second)
	ends(n, "a", time.Second)
	n.run(time.Minute)
	must.MapEmpty(t, n.tasks)
}

// The record of an allocation is damaged, and a process of it runs, so the client does not have its
// devices. No task gets a device until the process has ended, or the servers send the allocation
// with its devices.
func TestLedger_orphan(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.scripts["old"] = script{undying: 10 * time.Minute, ignores: true}
	n.place(withDevices(allocation("a", mainTask("old")), "old", "d1"))
	n.run(time.Minute)
	n.disk["a"] = client.OrphanRecord("a", []string{"old"}, n.bootID)
	placed := n.allocs
	n.allocs = nil // the servers no longer have it
	n.crash()
	n.place(withDevices(allocation("b", mainTask("other")), "other", "d2"))
	n.run(time.Minute)
	must.StrContains(t, n.waiting("b", "other"), "acme/toy/t1/d2 is held by task old of allocation a")
	n.allocs = append(n.allocs, placed...)
	n.index++
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live("other"))
	must.Len(t, 1, n.live("old"))
}

// After a restart of the machine all devices are free, and all tasks start again.
func TestLedger_reboot(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Minute)
	n.reboot()
	n.answer()
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, "d1 2", n.devices.reserved())
}

// A newer version of an allocation does not change the devices of the running allocation.
func TestLedger_devicesOfARunStay(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("a", mainTask("web")), "web", "d1"))
	n.run(time.Minute)
	n.index++
	changed := n.allocs[0].Copy()
	changed.AllocModifyIndex = n.index
	changed.Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "web", Kind: toy, IDs: []string{"d2"}}}}
	n.core.Servers(client.Changes{ClusterID: "cluster-1", Index: n.index, Allocs: []*cluster.Allocation{changed}})
	n.restart("a", "web", false)
	n.run(time.Minute)
	must.EqOp(t, "d1 2", n.devices.reserved())
}

// A newer version of a plugin renames the kind of a device that a task has. For the servers the
// device is free. For the client it still has its owner, because Reserve gets ids but no kinds.
func TestLedger_renamedKind(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	n.place(withDevices(allocation("a", mainTask("old")), "old", "d1"))
	n.run(time.Minute)
	renamed := toy
	renamed.Name = "t1-pro"
	groups := func() []*cluster.DeviceGroup {
		return []*cluster.DeviceGroup{{Kind: renamed, Devices: []cluster.Device{{ID: "d1", Healthy: true}, {ID: "d2", Healthy: true}}}}
	}
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Groups: groups()})
	for id, device := range map[cluster.AllocID]string{"b": "d1", "c": "d2"} {
		a := withDevices(allocation(id, mainTask("new"+device)), "new"+device, device)
		a.Devices.All[0].Kind = renamed
		n.place(a)
	}
	n.run(time.Minute)
	must.EqOp(t, "device: the device acme/toy/t1/d1 is held by task old of allocation a", n.waiting("b", "newd1"))
	must.Len(t, 1, n.live("newd2"))
	// The old kind still exists, and the device is now in another kind of the same plugin.
	n.core.Devices("toys", n.devices.process.generation, client.DeviceReport{Groups: append(groups(), &cluster.DeviceGroup{Kind: toy})})
	n.run(time.Minute)
	must.EqOp(t, "device: the device acme/toy/t1/d1 is held by task old of allocation a", n.waiting("b", "newd1"))
	must.Len(t, 0, n.live("newd1"))
	leaves(n, "a", time.Minute)
	must.Len(t, 1, n.live("newd1"))
}

// A task with two requests for devices of one kind reserves them one after the other, at each start, and
// has the devices of both. Bug: no test had such a task, and one that lost a request never started.
func TestDevices_twoRequests(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2", "d3")
	n.place(withDevices(withDevices(allocation("a", mainTask("web")), "web", "d1"), "web", "d2", "d3"))
	n.run(time.Minute)
	must.Len(t, 1, n.live("web"))
	must.EqOp(t, "d1 1, d2 1, d3 1", n.devices.reserved())
	restarts(n, 10*time.Second)
	n.killDriver()
	n.run(10 * time.Second)
	must.EqOp(t, "d1 1, d2 1, d3 1", n.devices.reserved())
	n.restart("a", "web", false)
	n.run(time.Minute)
	must.EqOp(t, "d1 2, d2 2, d3 2", n.devices.reserved())
	must.Eq(t, []string{"d1", "d2", "d3"}, n.live("web")[0].devices)
	ends(n, "a", time.Minute)
	must.SliceEmpty(t, n.devices.ownedBy("a"))
}

// A task waits for the owner of each of its devices, for each kind of request, and another task waits for
// each of them. The owner of one of them stops slowly.
func TestLedger_twoRequests(t *testing.T) {
	for name, held := range map[string]string{"of the first request": "d1", "of the second request": "d2", "the last one": "d3"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.install("d1", "d2", "d3")
			n.scripts["old"] = script{ignores: true, undying: time.Minute}
			n.place(withDevices(allocation("a", mainTask("old")), "old", held))
			n.run(time.Minute)
			n.stop("a")
			n.place(withDevices(withDevices(allocation("b", mainTask("new")), "new", "d1"), "new", "d2", "d3"))
			n.run(time.Minute)
			must.StrContains(t, n.waiting("b", "new"), "acme/toy/t1/"+held+" is held by task old of allocation a")
			reaches(n, "a", cluster.ClientComplete, time.Minute)
			must.EqOp(t, cluster.ClientRunning, n.status("b"))

			n.place(withDevices(allocation("c", mainTask("last")), "last", held))
			n.run(time.Minute)
			must.StrContains(t, n.waiting("c", "last"), "acme/toy/t1/"+held+" is held by task new of allocation b")
			leaves(n, "b", time.Minute)
			must.Len(t, 1, n.live("last"))
		})
	}
}

// The reservation of the second request fails, hangs, or ends with its plugin. A later start has the
// devices of both requests.
func TestDevices_secondReservationFails(t *testing.T) {
	for name, s := range map[string]deviceScript{
		"fails": {errors: []error{nil, errors.New("no power")}}, "dies": {errors: []error{nil}, dies: true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t)
			n.install("d1", "d2")
			n.devices.scripts["web"] = s
			n.place(withDevices(withDevices(allocation("a", mainTask("web")), "web", "d1"), "web", "d2"))
			n.run(time.Minute)
			must.Len(t, 1, n.live("web"))
			must.EqOp(t, "d1 2, d2 2", n.devices.reserved())
		})
	}
}

// The servers assign devices to the first of two requests only. The task must not run without the second.
func TestDevices_halfAssigned(t *testing.T) {
	n := newNode(t)
	n.install("d1", "d2")
	a := withDevices(withDevices(allocation("a", mainTask("web")), "web", "d1"), "web", "d2")
	a.Devices.All = a.Devices.All[:1]
	n.place(a)
	n.run(5 * time.Second)
	must.Len(t, 0, n.live(""))
	must.StrContains(t, n.messages("a", "web"), "the task has 2 device requests, and the servers have assigned devices to 1")
}

// The servers place a task without its device. The task must not run without the device.
func TestDevices_notAssigned(t *testing.T) {
	n := newNode(t)
	n.install("d1")
	a := allocation("a", mainTask("web"))
	a.Job.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "toy", Count: 1}}
	n.place(a)
	n.run(5 * time.Second)
	must.Len(t, 0, n.live(""))
	must.StrContains(t, n.messages("a", "web"), "failed to reserve devices: the task has 1 device requests, and the servers have assigned devices to 0")
	reaches(n, "a", cluster.ClientFailed, 10*time.Minute)
}

// withPorts gives an allocation ports of its group.
func withPorts(a *cluster.Allocation, numbers ...int) *cluster.Allocation {
	a.Ports = &cluster.AssignedPorts{IP: "10.0.0.1"}
	for i, number := range numbers {
		label := fmt.Sprint("p", i)
		a.Ports.All = append(a.Ports.All, cluster.AssignedPort{Label: label, Number: number})
		a.Job.TaskGroups[0].Ports = append(a.Job.TaskGroups[0].Ports, cluster.PortRequest{Label: label, Static: number})
	}
	return a
}

// The servers have given up an allocation, and its port to another one, while its process cannot be killed. The
// other one waits, also after restarts of the client, and starts when the process has ended.
func TestLedger_waitsForAPort(t *testing.T) {
	n := newNode(t)
	n.scripts["old"] = script{ignores: true, undying: 3 * time.Minute}
	n.place(withPorts(allocation("a", mainTask("old")), 80, 81))
	n.run(time.Minute)
	n.stop("a")
	n.place(withPorts(allocation("b", mainTask("new")), 8080, 81))
	n.place(withPorts(allocation("c", mainTask("other")), 8081))
	n.run(time.Minute)
	must.EqOp(t, "port: the port 81 is held by task old of allocation a", n.waiting("b", "new"))
	must.EqOp(t, "waiting for ports", n.servers["b"].ClientDescription)
	must.EqOp(t, cluster.ClientRunning, n.status("c"))
	restarts(n, time.Minute)
	must.Len(t, 0, n.live("new"))
	reaches(n, "a", cluster.ClientComplete, 5*time.Minute)
	n.run(time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}

// The servers have given up an allocation, and its core to another one, while its process cannot be killed. The
// other one waits, also after restarts of the client.
func TestLedger_waitsForACore(t *testing.T) {
	withCores := func(a *cluster.Allocation, task string, cores ...int) *cluster.Allocation {
		a.Cores = &cluster.AssignedCores{All: []cluster.TaskCores{{Task: task, Cores: cores}}}
		a.Job.TaskGroups[0].Tasks[0].Cores = len(cores)
		return a
	}
	n := newNode(t)
	n.scripts["old"] = script{ignores: true, undying: 3 * time.Minute}
	n.place(withCores(allocation("a", mainTask("old")), "old", 0, 1))
	n.run(time.Minute)
	n.stop("a")
	n.place(withCores(allocation("b", mainTask("new")), "new", 1, 2))
	n.place(withCores(allocation("c", mainTask("other")), "other", 3))
	n.run(time.Minute)
	must.EqOp(t, "core: the core 1 is held by task old of allocation a", n.waiting("b", "new"))
	must.EqOp(t, "waiting for cores", n.servers["b"].ClientDescription)
	must.EqOp(t, cluster.ClientRunning, n.status("c"))
	restarts(n, time.Minute)
	must.Len(t, 0, n.live("new"))
	reaches(n, "a", cluster.ClientComplete, 5*time.Minute)
	n.run(time.Minute)
	must.EqOp(t, cluster.ClientRunning, n.status("b"))
}
