package machine_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	devices "github.com/seed-f9cf0b39/nodedrain/plugin/device/scripted"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver/scripted"
)

// succession plays two allocations. The second one gets the devices of the first one, which stops
// slowly.
func succession(f *fixture) {
	f.scripts["next"] = scripted.Script{}
	f.place(gives(gives(three(f), "web", "d0", "d1"), "proxy", "d2"))
	f.run(30 * time.Second)
	f.stop("a1")
	f.place(gives(allocation("a2", &cluster.Task{Name: "next"}), "next", "d1", "d2"))
	f.settle()
	must.EqOp(f.t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.Len(f.t, 1, tasks(f))
	must.Eq(f.t, []string{"/dev/acme/toy/t1/d1", "/dev/acme/toy/t1/d2"}, tasks(f)[0].Devices)
}

// twoRequests plays two allocations with two requests of one task for devices of one kind. The second one
// gets a device of each request of the first one, which stops slowly.
func twoRequests(f *fixture) {
	f.scripts["next"] = scripted.Script{}
	f.place(gives(gives(three(f), "web", "d0"), "web", "d1"))
	f.run(30 * time.Second)
	f.stop("a1")
	f.place(gives(gives(allocation("a2", &cluster.Task{Name: "next"}), "next", "d1", "d2"), "next", "d0"))
	f.settle()
	must.EqOp(f.t, cluster.ClientComplete, f.row("a1").ClientStatus)
	must.Len(f.t, 1, tasks(f))
	must.SliceContainsAll(f.t, tasks(f)[0].Devices, []string{"/dev/acme/toy/t1/d0", "/dev/acme/toy/t1/d1", "/dev/acme/toy/t1/d2"})
}

// V3, V7: the device plugin dies, returns an error or does not answer at each of its calls. At the
// end each task has its devices.
func TestNode_devicePluginFailsAtEachCall(t *testing.T) {
	t.Parallel()
	failAtEachCall(t, false, true, faults(nil), func(f *fixture, next func() scripted.Fault) {
		f.deviceFault = func(devices.Call) scripted.Fault { return next() }
	})
}

// V2: the devices of tasks become unhealthy, disappear and return, and their plugin ends its
// reports. The tasks keep their devices, and no other task starts with them meanwhile.
func TestNode_devicesChange(t *testing.T) {
	t.Parallel()
	sick := toys("d0", "d1", "d2")
	sick[0].Devices[0].Healthy, sick[0].Devices[1].Healthy = false, false
	for name, groups := range map[string][]*cluster.DeviceGroup{"unhealthy": sick, "gone": toys("d2"), "renamed": toys("x0", "x1", "x2"), "none": nil, "muted": sick} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.place(gives(allocation("a1", &cluster.Task{Name: "web"}), "web", "d0"))
			f.run(time.Minute)
			if name == "muted" {
				f.node.Devices().Mute("toys", 6*time.Minute)
			} else {
				f.node.Devices().Set("toys", groups)
			}
			f.run(time.Second)
			f.place(gives(allocation("a2", &cluster.Task{Name: "next"}), "next", "d1"))
			f.run(2 * time.Minute)
			must.Len(t, 1, tasks(f))
			f.node.Devices().Set("toys", toys("d0", "d1", "d2"))
			f.run(4 * time.Minute)
			f.settle()
			must.SliceNotEmpty(t, tasks(f))
			must.EqOp(t, "a1/web/1", tasks(f)[0].Task)
		})
	}
}
