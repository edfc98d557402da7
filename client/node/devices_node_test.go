package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/device"
	"github.com/seed-f9cf0b39/nodedrain/plugin/sdk"
)

// toyPlugin is a device plugin with these devices.
type toyPlugin []string

func (toyPlugin) Info() sdk.Info { return sdk.Info{Name: "toys", Version: "0.1.0"} }

func (toyPlugin) Configure([]byte) error { return nil }

func (p toyPlugin) Fingerprints(ctx context.Context, report func([]*cluster.DeviceGroup)) error {
	report([]*cluster.DeviceGroup{toys(p...)})
	<-ctx.Done()
	return ctx.Err()
}

func (p toyPlugin) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	for _, id := range ids {
		if !slices.Contains(p, id) {
			return device.Reservation{}, errors.New("unhealthy device " + id)
		}
	}
	return device.Reservation{Env: map[string]string{"TOYS": strings.Join(ids, ",")}}, nil
}

// installToys puts a version of the plugin into the plugin folder.
func (w *world) installToys(ids ...string) {
	w.Helper()
	program, err := os.Executable()
	must.NoError(w, err)
	file := filepath.Join(w.config.PluginDir, "acme-toys")
	must.NoError(w, os.WriteFile(file+".new", []byte("#!/bin/sh\nexec "+program+" plugin toys "+strings.Join(ids, " ")+"\n"), 0o700))
	must.NoError(w, os.Rename(file+".new", file))
}

// awaitDevices waits until the node is registered with these devices, all healthy.
func (w *world) awaitDevices(ids ...string) {
	w.Helper()
	w.await(func(s *scripted) bool {
		if len(s.registered) == 0 || len(s.registered[len(s.registered)-1].Devices) != 1 {
			return false
		}
		var healthy []string
		for _, d := range s.registered[len(s.registered)-1].Devices[0].Devices {
			if d.Healthy {
				healthy = append(healthy, d.ID)
			}
		}
		return slices.Equal(ids, healthy)
	})
}

// A task gets a device of a real plugin process. The next client restarts the plugin, and no
// registration is without the devices. The client stops, a newer version of the plugin is
// installed, and the next client starts it. The task continues to run with its device. Another
// allocation with the same device waits until the first one has ended.
func TestNode_devices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.config.PluginDir = filepath.Join(t.TempDir(), "plug ins")
	putBehindLinks(w)
	w.installToys("d1", "d2")
	w.begin()
	w.awaitDevices("d1", "d2")

	alloc := func(id cluster.AllocID) *cluster.Allocation {
		a := w.alloc(id, `{"stdout_string": "${TOYS}\n"}`)
		a.Devices = &cluster.AssignedDevices{All: []cluster.AssignedDevice{{Task: "t", Kind: toys().Kind, IDs: []string{"d1"}}}}
		return a
	}
	first, second := alloc("a1"), alloc("a2")
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{first}}
	w.awaitStatus("a1", cluster.ClientRunning)
	waits := func() {
		t.Helper()
		w.await(func(s *scripted) bool {
			states := s.reported["a2"].TaskStates
			return states != nil && states.Tasks[0].Waiting != nil &&
				states.Tasks[0].Waiting.Detail == "the device acme/toy/t1/d1 is held by task t of allocation a1"
		})
	}
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Allocs: []*cluster.Allocation{second}}
	waits()
	before := w.kept()["acme-toys"]
	must.Eq(t, "toys", before.Device)
	must.Eq(t, "", before.Driver)
	w.stop()
	alive, err := before.Process.Process.Alive()
	must.NoError(t, err)
	must.True(t, alive, must.Sprint("the plugin outlives the client"))

	w.servers.set(func() { w.servers.registered = nil; clear(w.servers.reported) })
	w.begin()
	w.awaitDevices("d1", "d2")
	alive, err = before.Process.Process.Alive()
	must.NoError(t, err)
	must.False(t, alive, must.Sprint("a plugin may report its devices only once"))
	w.servers.set(func() {
		for _, n := range w.servers.registered {
			must.SliceLen(t, 1, n.Devices, must.Sprint("the devices vanish"))
			must.SliceLen(t, 2, n.Devices[0].Devices)
		}
	})
	w.stop()

	w.installToys("d1", "d2", "d3")
	w.servers.set(func() { clear(w.servers.reported) })
	w.begin()
	w.awaitDevices("d1", "d2", "d3")
	must.NotEq(t, before, w.kept()["acme-toys"])
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 4}
	w.awaitStatus("a1", cluster.ClientRunning)
	w.servers.set(func() { must.Eq(t, 0, w.servers.reported["a1"].TaskStates.Tasks[0].Restarts) })
	waits()
	stopped := first.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 5
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 5, Allocs: []*cluster.Allocation{stopped}}
	w.awaitStatus("a1", cluster.ClientComplete)
	w.awaitStatus("a2", cluster.ClientRunning)
	w.awaitLog("a2", "d1\n")
	stopped = second.Copy()
	stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, 6
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 6, Allocs: []*cluster.Allocation{stopped}}
	w.awaitStatus("a2", cluster.ClientComplete)
	w.stop()
}

// awaitLog waits for the output of an allocation's task.
func (w *world) awaitLog(alloc, expected string) {
	w.Helper()
	path := filepath.Join(w.config.DataDir, allocsDir, alloc, "alloc", "logs", "t.stdout.0")
	w.eventually("the log has the output", func() bool { // the keeper writes beside the client
		log, err := os.ReadFile(path)
		return err == nil && string(log) == expected
	})
}
