package node

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Another user of the machine reads and writes no mounted volume, although the user can read the path
// of each mount from the mount table and the root of the volume is open to everyone. A task reaches
// the volumes of its allocation, and not those of another one. The sockets of storage plugins, and
// the records of volumes and claims, are closed as well. A client corrects the folders of an earlier
// build, which created all of them with the mode 0711.
func TestSecurity_LocalUserAndVolumes(t *testing.T) {
	w := newVolumeWorld(t)
	bin, err := user.Lookup("bin")
	must.NoError(t, err)
	must.EqOp(t, bin.Uid, bin.Gid) // usableBy has one id for both
	uid, err := strconv.ParseUint(bin.Uid, 10, 32)
	must.NoError(t, err)
	taskUser, stranger := uint32(uid), uint32(outsider)
	for _, dir := range []string{w.dir, filepath.Dir(w.config.DataDir)} {
		for ; dir != os.TempDir(); dir = filepath.Dir(dir) {
			must.NoError(t, os.Chmod(dir, 0o755)) // the folders of the test must not block other users
		}
	}
	allocs, pids := w.consumers("bin", "") // they have written to the volume
	mine, other := allocs[0], allocs[1]
	root := filepath.Join(real(t, w.config.DataDir), volumesDir) // the mount table has no links
	targetOf := func(a *cluster.Allocation) string {
		return storage.TargetPath(root, a.ID, cluster.VolumeKey{Namespace: "default", ID: "data"}, storage.Usage{VolumeCapability: manyWriters})
	}
	check := func(when string) {
		t.Helper()
		paths := []string{"/proc/self/mountinfo"}
		table, err := mounts.Read()
		must.NoError(t, err)
		points := table.Below(root)
		must.SliceLen(t, 3, points, must.Sprint("one stage and two targets, ", when))
		for _, point := range points {
			info, err := os.Stat(point)
			must.NoError(t, err)
			must.EqOp(t, 0o777, info.Mode().Perm(), must.Sprint("the volume itself is open"))
			paths = append(paths, point, filepath.Join(point, string(mine.ID)))
		}
		for _, top := range []string{w.config.RunDir, real(t, w.config.DataDir), filepath.Join(w.dir, "disks")} {
			sockets := 0
			must.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if errors.Is(err, fs.ErrNotExist) {
					return nil // the client writes meanwhile
				}
				must.NoError(t, err)
				if d.Name() == storageSocket {
					sockets++
				}
				if path == filepath.Join(w.dir, "disks") {
					return nil // the test has created it
				}
				if d.Type()&fs.ModeSymlink == 0 { // the targets of links are in the list
					paths = append(paths, path)
				}
				return nil
			}))
			must.EqOp(t, top == w.config.RunDir, sockets == 1, must.Sprint("the socket of the storage plugin is in ", top))
		}
		must.EqOp(t, "/proc/self/mountinfo\n", usableBy(t, stranger, paths), must.Sprint(when))
		for line := range strings.Lines(usableBy(t, taskUser, paths)) {
			path := strings.TrimSpace(line)
			must.True(t, path == "/proc/self/mountinfo" || strings.HasPrefix(path, targetOf(mine)) || strings.Contains(path, "/allocs/"+string(mine.ID)+"/"),
				must.Sprintf("%s: the user of a task can use %s", when, path))
		}
		must.StrContains(t, usableBy(t, taskUser, []string{targetOf(mine)}), targetOf(mine), must.Sprint("the task can use its volume, ", when))
	}
	check("after the start of the tasks")

	w.stop()
	for _, top := range []string{storage.StageFolder(root), storage.TargetsFolder(root)} {
		must.NoError(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			must.NoError(t, err)
			if strings.HasPrefix(d.Name(), "rw-") {
				return fs.SkipDir // a mounted volume
			}
			return os.Chmod(path, 0o711)
		}))
	}
	open := []string{targetOf(mine), targetOf(other)}
	must.EqOp(t, strings.Join(open, "\n")+"\n", usableBy(t, stranger, open), must.Sprint("the folders of an earlier build are open"))
	w.begin()
	w.send()
	must.EqOp(t, "", usableBy(t, stranger, open), must.Sprint("the client has corrected the folders"))
	check("after an upgrade")

	w.stopAllocs(w.allocs...)
	w.completes(pids, w.allocs...)
}
