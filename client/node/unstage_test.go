package node

import (
	"os"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// The client does not rely on the answer of a storage plugin: after an unstage the stage must not be mounted, and
// after an unpublish the target. It removes the folder of what is not mounted, and the empty ones above it. Bug: no
// test noticed a client that checked the target after an unstage.
func TestVolumes_checksThePathOfTheCall(t *testing.T) {
	t.Parallel()
	key, usage := cluster.VolumeKey{Namespace: "default", ID: "data"}, storage.Usage{VolumeCapability: manyWriters}
	for name, c := range map[string]struct {
		verb    storage.Verb
		mounted bool
	}{
		"unstaged":                 {storage.Unstage, false},
		"unpublished":              {storage.Unpublish, false},
		"unstaged, and mounted":    {storage.Unstage, true},
		"unpublished, and mounted": {storage.Unpublish, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := t.TempDir()
			if err := tryMount(from); c.mounted && err != nil {
				t.Skip("needs root and the right to mount: ", err)
			}
			synctest.Test(t, func(t *testing.T) {
				w := newStorageWorld(t)
				_, ref := w.start("p", cluster.PluginNode, nil)
				defer w.end(ref)
				w.posts("disks is up, stages: true")
				root := real(t, t.TempDir()) // the mount table has no links
				v := &volumes{shell: &shell{storage: w.storagePlugins, life: w.life}, root: root, search: mounts.NewSearch()}
				path, other := storage.TargetPath(root, "a", key, usage), storage.StagePath(root, key, usage)
				request := storage.Request{Alloc: "a", Volume: key, Usage: usage}
				if c.verb == storage.Unstage {
					path, other, request.Alloc = other, path, ""
				}
				must.NoError(t, os.MkdirAll(path, 0o700))
				must.NoError(t, os.MkdirAll(other, 0o700))
				if c.mounted {
					must.NoError(t, syscall.Mount(from, path, "", syscall.MS_BIND, ""))
					defer func() { must.NoError(t, syscall.Unmount(path, syscall.MNT_DETACH)) }()
				}
				var result storage.Result
				v.Call(storage.Call{Verb: c.verb, Volume: key, Plugin: "disks", Request: request, Staged: true}, func(r storage.Result) { result = r })
				v.shell.running.Wait()
				must.DirExists(t, other)
				if c.mounted {
					must.ErrorContains(t, result.Err, "but the volume is still mounted at "+path)
					return
				}
				must.NoError(t, result.Err)
				left, err := os.ReadDir(root)
				must.NoError(t, err)
				must.SliceLen(t, 1, left, must.Sprint("the folder above the other one"))
			})
		})
	}
}
