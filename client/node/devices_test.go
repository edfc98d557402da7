package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
)

// deviceDouble is a double of a device plugin's process. The test sets its answers.
type deviceDouble struct {
	*double
	groups []*cluster.DeviceGroup
	// measures is the answer to each measurement; nil never answers.
	measures []device.GroupStats
	reserve  func(ctx context.Context, ids []string) (device.Reservation, error)
}

func (d *deviceDouble) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	return d.stream(ctx, func() { report(d.groups) })
}

func (d *deviceDouble) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	return d.reserve(ctx, ids)
}

func (d *deviceDouble) Stats(ctx context.Context, window time.Duration, report func([]device.GroupStats)) error {
	for d.measures != nil {
		report(d.measures)
		if d.once {
			d.measures = nil
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(window):
		}
	}
	<-ctx.Done()
	return &driver.Error{Class: driver.Deadline, Call: "Stats", Err: ctx.Err()}
}

func toys(ids ...string) *cluster.DeviceGroup {
	g := &cluster.DeviceGroup{Kind: cluster.DeviceKind{Vendor: "acme", Type: "toy", Name: "t1"}}
	for _, id := range ids {
		g.Devices = append(g.Devices, cluster.Device{ID: id, Healthy: true})
	}
	return g
}

func devicesOfDouble(p *posted, one *deviceDouble) *devices {
	return newDevices(map[string]program[deviceInstance]{"toys": &programOf[deviceInstance]{[]deviceInstance{one}}}, 8, p, quiet())
}

// The core gets the valid devices. When the stream ends, the core gets the error, and the shell
// opens the stream again.
func TestDevices_fingerprints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := &deviceDouble{double: newDouble(), groups: []*cluster.DeviceGroup{toys("d2", "d1", ""), {Kind: cluster.DeviceKind{Vendor: "acme"}}}}
		d := devicesOfDouble(&p, one)
		answer := launched(t.Context(), d, "toys")
		must.NoError(t, answer.Err)
		synctest.Wait()
		must.Eq(t, []string{"toys 1 has acme/toy/t1/d1 acme/toy/t1/d2 and ignores: " +
			"the group \"acme//\" is ignored: its type is empty\nthe device \"\" of the group \"acme/toy/t1\" is ignored: its id is empty"}, p.take())
		began := time.Now()
		one.groups = nil
		one.streams <- errors.New("broken")
		synctest.Wait()
		must.Eq(t, []string{"toys 1 has broken"}, p.take())
		time.Sleep(minReopen)
		synctest.Wait()
		must.Eq(t, []string{"toys 1 has"}, p.take())
		must.Eq(t, minReopen, time.Since(began))
		close(one.done)
		synctest.Wait()
		must.Eq(t, []string{"device plugin toys 1 is down: panic: no"}, p.take())
		d.detach()
	})
}

// V7: a plugin does not answer a reservation. The call has a limit, and the core can have the
// plugin killed. A call for a process that has ended returns at once.
func TestShell_reserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p posted
		one := &deviceDouble{double: newDouble(), reserve: func(ctx context.Context, ids []string) (device.Reservation, error) {
			if ids[0] == "d1" {
				return device.Reservation{Env: map[string]string{"TOYS": ids[0]}}, nil
			}
			<-ctx.Done()
			return device.Reservation{}, &driver.Error{Class: driver.Deadline, Call: "Reserve", Err: ctx.Err()}
		}}
		s := &shell{life: t.Context(), devices: devicesOfDouble(&p, one), logger: quiet()}
		toy := client.Plugin{Type: client.DevicePlugin, Name: "toys"}
		s.Launch(toy, func(l client.Launched) { must.Eq(t, 1, l.Generation) })
		s.running.Wait()
		reserve := func(generation client.Generation, id string) (r device.Reservation, err error) {
			s.Reserve(client.TaskRef{}, client.DevicesRef{Plugin: "toys", Generation: generation, IDs: []string{id}}, func(got device.Reservation, e error) { r, err = got, e })
			s.running.Wait()
			return r, err
		}
		r, err := reserve(1, "d1")
		must.NoError(t, err)
		must.Eq(t, map[string]string{"TOYS": "d1"}, r.Env)
		began := time.Now()
		_, err = reserve(1, "d2")
		must.Eq(t, driver.Deadline, driver.ClassOf(err))
		must.Eq(t, callTimeout, time.Since(began))
		_, err = reserve(2, "d1")
		must.Eq(t, driver.Gone, driver.ClassOf(err))
		s.Abandon(toy, 1)
		s.running.Wait()
		must.True(t, one.killed)
		s.devices.detach()
	})
}

// For a driver without mounts, requests that it does not support are refused with a message. Files
// that its tasks already see are not passed to it.
func TestFit(t *testing.T) {
	t.Parallel()
	mount := func(task, host string, readOnly bool) device.Reservation {
		return device.Reservation{Mounts: []driver.Mount{{TaskPath: task, HostPath: host, ReadOnly: readOnly}}}
	}
	file := func(task, host, permissions string) device.Reservation {
		return device.Reservation{Devices: []driver.Device{{TaskPath: task, HostPath: host, Permissions: permissions}}}
	}
	host, chroot := driver.Capabilities{NoMounts: true}, driver.Capabilities{NoMounts: true, FSIsolation: driver.FSChroot}
	for name, test := range map[string]struct {
		needs    device.Reservation
		can      driver.Capabilities
		refused  string
		passedOn bool
	}{
		"a driver with mounts":            {mount("/dev/x", "/host/x", true), driver.Capabilities{}, "", true},
		"a mount at its path":             {mount("/x", "/x", false), host, "", false},
		"a mount elsewhere":               {mount("/dev/x", "/host/x", false), host, "need /host/x at /dev/x, and the driver d has no mounts", false},
		"a read-only mount":               {mount("/x", "/x", true), host, "need /x read-only, and the driver d cannot keep its tasks from writing", false},
		"a device file at its path":       {file("/dev/x", "/dev/x", "rw"), host, "", false},
		"a device file with all rights":   {file("/dev/x", "/dev/x", ""), host, "", false},
		"a device file elsewhere":         {file("/dev/x", "/dev/y", "rw"), host, "need the device file /dev/y at /dev/x", false},
		"a device file to read":           {file("/dev/x", "/dev/x", "r"), host, `with the permissions "r" alone`, false},
		"a mount into another root":       {mount("/x", "/x", false), chroot, "need the mount /x, and the driver d has no mounts", false},
		"a device file into another root": {file("/dev/x", "/dev/y", "r"), chroot, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.needs.Env = map[string]string{"A": "b"}
			reserved, err := fit(test.needs, "d", test.can)
			if test.refused != "" {
				must.ErrorContains(t, err, test.refused)
				return
			}
			must.NoError(t, err)
			if test.passedOn {
				must.Eq(t, test.needs, reserved)
				return
			}
			must.Eq(t, device.Reservation{Env: map[string]string{"A": "b"}}, reserved)
		})
	}
}

// starter is a driver that stores the configuration of a task's start.
type starter struct {
	*double
	got *driver.TaskConfig
}

func (*starter) Capabilities() driver.Capabilities {
	return driver.Capabilities{NoLogCollection: true}
}

func (*starter) Encode([]byte, func(string) (string, bool)) ([]byte, error) { return nil, nil }

func (s *starter) Start(_ context.Context, c *driver.TaskConfig) (driver.Handle, error) {
	s.got = c
	return driver.Handle("h"), nil
}

// V6: the reservations of a task's devices become part of its config, and replace variables of the
// job. If two reservations conflict, the start fails, and a later start may succeed.
func TestTasks_startWithDevices(t *testing.T) {
	t.Parallel()
	dirs, err := allocdir.Open(filepath.Join(t.TempDir(), "allocs"))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, dirs.Close()) })
	self := &cluster.Node{ID: "n", Name: "n"}
	ts := &tasks{node: func() *cluster.Node { return self }, mayStart: func(*cluster.Allocation) error { return nil }, dirs: dirs, rotates: func(string) bool { return true }, logs: newLogs(t.Context(), keeper.Command{}, quiet()), logger: quiet()}
	task := &cluster.Task{Name: "web", Driver: "d", Env: map[string]string{"TOYS": "mine", "OTHER": "x"}}
	alloc := &cluster.Allocation{ID: "a", TaskGroup: "g", JobID: "j", Job: &cluster.Job{ID: "j", TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{task}}}}}
	must.NoError(t, ts.build(alloc))
	part := func(kind, toys, path string) device.Part {
		return device.Part{For: kind, Reservation: device.Reservation{
			Env:     map[string]string{"TOYS": toys},
			Mounts:  []driver.Mount{{TaskPath: path, HostPath: path}},
			Devices: []driver.Device{{TaskPath: "/dev" + path, HostPath: "/dev" + path, Permissions: "rw"}},
		}}
	}
	s := &starter{double: newDouble()}
	ref := client.TaskRef{Alloc: "a", Task: "web", ID: "a/web/1", Driver: "d"}
	_, err = ts.start(t.Context(), s, ref, alloc, []device.Part{part("acme/toy/t1", "d1", "/one"), part("acme/toy/t2", "d1", "/two")})
	must.NoError(t, err)
	must.Eq(t, "d1", s.got.Env["TOYS"])
	must.Eq(t, "x", s.got.Env["OTHER"])
	must.Eq(t, map[string]string{"TOYS": "d1"}, s.got.DeviceEnv)
	must.Eq(t, []driver.Mount{{TaskPath: "/one", HostPath: "/one"}, {TaskPath: "/two", HostPath: "/two"}}, s.got.Mounts)
	must.Eq(t, []driver.Device{{TaskPath: "/dev/one", HostPath: "/dev/one", Permissions: "rw"}, {TaskPath: "/dev/two", HostPath: "/dev/two", Permissions: "rw"}}, s.got.Devices)

	s.got = nil
	for _, bad := range [][]device.Part{
		{part("acme/toy/t1", "d1", "/one"), part("acme/toy/t2", "d2", "/two")},
		{part("acme/toy/t1", "d1", "../one")},
	} {
		_, err = ts.start(t.Context(), s, ref, alloc, bad)
		must.Eq(t, driver.Recoverable, driver.ClassOf(err))
		must.ErrorContains(t, err, "acme/toy/t1")
		must.Nil(t, s.got)
	}
}

// A file that was a device plugin still counts as a device plugin while it cannot start.
func TestFindPlugins_devicePlugin(t *testing.T) {
	t.Parallel()
	o := pluginsOf(t, map[string]os.FileMode{"toys": 0o700, "other": 0o700}, config.Plugin{Name: "other"})
	o.kept = map[string]pluginRecord{"toys": {Device: "acme-toys"}}
	found, err := findPlugins(t.Context(), o)
	must.NoError(t, err)
	must.MapEmpty(t, found.drivers)
	must.MapLen(t, 1, found.devices)
	_, err = found.devices["acme-toys"].launch(t.Context())
	must.ErrorContains(t, err, "the plugin did not start")
}

// A plugin measures its devices once. The last measurement counts as long as the process lives.
func TestDevices_statsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		once := []device.GroupStats{{Kind: cluster.DeviceKind{Vendor: "acme"}}}
		one := &deviceDouble{double: newDouble(), measures: once}
		one.once = true
		d := devicesOfDouble(new(posted), one)
		must.NoError(t, launched(t.Context(), d, "toys").Err)
		must.Eq(t, once, d.stats(t.Context()))
		must.Eq(t, once, d.stats(t.Context()))
		d.measured["toys"] = measured{generation: 0, groups: once} // of an earlier process
		must.SliceEmpty(t, d.stats(t.Context()))
		d.detach()
	})
}

// Devices are measured only on request, once for each request. A plugin that does not answer delays
// the request by three seconds.
func TestDevices_stats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := &deviceDouble{double: newDouble()}
		d := devicesOfDouble(new(posted), one)
		must.SliceEmpty(t, d.stats(t.Context()), must.Sprint("no process runs"))
		must.NoError(t, launched(t.Context(), d, "toys").Err)
		began := time.Now()
		must.SliceEmpty(t, d.stats(t.Context()))
		must.Eq(t, deviceTimeout, time.Since(began))
		one.measures = []device.GroupStats{{Kind: cluster.DeviceKind{Vendor: "acme"}}}
		must.Eq(t, one.measures, d.stats(t.Context()))
		must.Eq(t, deviceTimeout, time.Since(began))
		d.detach()
	})
}
