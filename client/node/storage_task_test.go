package node

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/tasklog/keeper"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// isolated is a driver whose tasks have a separate file system.
type isolated struct{ starter }

func (*isolated) Capabilities() driver.Capabilities {
	return driver.Capabilities{NoLogCollection: true, FSIsolation: driver.FSImage}
}

// A storage plugin of raw_exec gets paths of the node. A storage plugin with a separate file system
// gets its socket and the volumes at the paths of its job, and each call contains the paths that it
// sees.
func TestStorage_whatThePluginSees(t *testing.T) {
	t.Parallel()
	usage := storage.Usage{VolumeCapability: manyWriters}
	key := cluster.VolumeKey{Namespace: "default", ID: "data"}
	for name, test := range map[string]struct {
		config  cluster.CSIPlugin
		own     bool // files of its own
		socket  string
		volumes string
	}{
		"a task of raw_exec":                {cluster.CSIPlugin{Type: cluster.PluginNode}, false, "", ""},
		"with the defaults of the API":      {cluster.CSIPlugin{Type: cluster.PluginNode, MountDir: "/csi", StagePublishBaseDir: "/local/csi"}, false, "", ""},
		"a container":                       {cluster.CSIPlugin{Type: cluster.PluginMonolith}, true, "/csi", "/local/csi"},
		"a container with paths of its own": {cluster.CSIPlugin{Type: cluster.PluginNode, MountDir: "/plugin", StagePublishBaseDir: "/srv/nfs"}, true, "/plugin", "/srv/nfs"},
		"a controller in a container":       {cluster.CSIPlugin{Type: cluster.PluginController}, true, "/csi", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dirs, err := allocdir.Open(filepath.Join(t.TempDir(), "allocs"))
			must.NoError(t, err)
			t.Cleanup(func() { must.NoError(t, dirs.Close()) })
			synctest.Test(t, func(t *testing.T) {
				w := newStorageWorld(t)
				w.volumes = t.TempDir()
				self := &cluster.Node{ID: "n", Name: "n"}
				ts := &tasks{node: func() *cluster.Node { return self }, mayStart: func(*cluster.Allocation) error { return nil }, dirs: dirs, storage: w.storagePlugins, rotates: func(string) bool { return true }, logs: newLogs(t.Context(), keeper.Command{}, quiet()), logger: quiet()}
				test.config.ID = "disks"
				task := &cluster.Task{Name: "plugin", Driver: "d", CSIPlugin: &test.config}
				alloc := &cluster.Allocation{ID: "a", TaskGroup: "g", JobID: "j", Job: &cluster.Job{ID: "j", TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{task}}}}}
				must.NoError(t, ts.build(alloc))
				d := &isolated{starter{double: newDouble()}}
				var chosen driver.Driver = d
				host := w.folderOf("a", "plugin")
				socket, visible, mounts := filepath.Join(host, "csi.sock"), w.volumes, []driver.Mount(nil)
				if !test.own {
					chosen = &d.starter
				} else {
					socket, visible = test.socket+"/csi.sock", test.volumes
					mounts = []driver.Mount{{TaskPath: test.socket, HostPath: host}}
					if visible != "" {
						mounts = append(mounts, driver.Mount{TaskPath: visible, HostPath: w.volumes, Propagation: "bidirectional"})
					}
				}
				ref := client.TaskRef{Alloc: "a", Task: "plugin", ID: "a/plugin/1", Driver: "d"}
				_, err := ts.start(t.Context(), chosen, ref, alloc, nil)
				must.NoError(t, err)
				must.EqOp(t, "unix://"+socket, d.got.Env["CSI_ENDPOINT"])
				must.Eq(t, mounts, d.got.Mounts)
				must.DirExists(t, host)

				f := &fakeStorage{}
				w.plugins[filepath.Join(host, "csi.sock")] = f
				w.begin(w.life, &w.running, ref, alloc, chosen.Capabilities().FSIsolation)
				synctest.Wait()
				if test.config.Type.Node() {
					v := &volumes{shell: &shell{storage: w.storagePlugins}, root: w.volumes}
					must.NoError(t, v.call(t.Context(), storage.Call{Verb: storage.Unpublish, Volume: key, Plugin: "disks", Request: storage.Request{Alloc: "a", Volume: key, Usage: usage}}, filepath.Join(w.volumes, "gone")))
					must.EqOp(t, storage.TargetPath(visible, "a", key, usage), f.target)
					must.EqOp(t, storage.StagePath(visible, key, usage), f.staging)
				}
				w.end(ref)
				must.DirNotExists(t, host)
			})
		})
	}
}

// Settings without effect are refused, with a message that states what to do.
func TestRefuseStorage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		plugin   cluster.CSIPlugin
		user     string
		can      driver.Capabilities
		expected string
	}{
		"a task of the node":            {},
		"a container":                   {can: driver.Capabilities{FSIsolation: driver.FSImage}},
		"paths in a container":          {plugin: cluster.CSIPlugin{MountDir: "/x", StagePublishBaseDir: "/y"}, can: driver.Capabilities{FSIsolation: driver.FSChroot}},
		"another user":                  {user: "www", expected: "must run as the user of the client"},
		"a container without mounts":    {can: driver.Capabilities{FSIsolation: driver.FSChroot, NoMounts: true}, expected: "and the driver d has none"},
		"a part of the node":            {can: driver.Capabilities{FSIsolation: driver.FSUnveil}, expected: "see only a part of the node"},
		"a relative path":               {plugin: cluster.CSIPlugin{MountDir: "x"}, can: driver.Capabilities{FSIsolation: driver.FSImage}, expected: "must be absolute paths"},
		"another relative path":         {plugin: cluster.CSIPlugin{StagePublishBaseDir: "x"}, can: driver.Capabilities{FSIsolation: driver.FSImage}, expected: "must be absolute paths"},
		"a socket of the node":          {plugin: cluster.CSIPlugin{MountDir: "/x"}, expected: `MountDir "/x" has no effect, because tasks of the driver`},
		"volumes elsewhere on the node": {plugin: cluster.CSIPlugin{StagePublishBaseDir: "/x"}, expected: `StagePublishBaseDir "/x" has no effect, because tasks of the driver`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := refuseStorage(&cluster.Task{User: test.user, CSIPlugin: &test.plugin}, "d", test.can)
			if test.expected == "" {
				must.NoError(t, err)
			} else {
				must.ErrorContains(t, err, test.expected)
			}
		})
	}
	must.NoError(t, refuseStorage(&cluster.Task{User: "www"}, "d", driver.Capabilities{FSIsolation: driver.FSUnveil}))
}
