package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/pathname"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// Every user of the machine can read the paths of mounts in /proc/self/mountinfo. So the modes of
// the folders above a mount protect a volume, and not the names of the folders:
//
//	volumes                        0711
//	volumes/staging                0700
//	volumes/per-alloc              0711
//	volumes/per-alloc/ALLOC        0711
//	volumes/per-alloc/ALLOC/VOLUME as [allocdir.Admit] sets it, for the tasks that mount VOLUME

// admit lets the tasks of an allocation reach the published volumes that they mount, and no other
// user.
func (t *tasks) admit(alloc *cluster.Allocation) error {
	group := groupOf(alloc)
	if t.volumes == "" || group == nil {
		return nil
	}
	for _, r := range group.Volumes {
		var users []string
		for _, task := range group.Tasks {
			if task != nil && slices.ContainsFunc(task.VolumeMounts, func(m cluster.VolumeMount) bool { return m.Volume == r.Name && !path.IsAbs(m.Destination) }) {
				users = append(users, t.ownerOf(alloc, group, task))
			} // A task with an absolute destination has a mount of its own, and does not use the folder.
		}
		key := cluster.VolumeKey{Namespace: alloc.Namespace, ID: r.VolumeOf(alloc.Name)}
		target := storage.TargetPath(t.volumes, alloc.ID, key, storage.Usage{VolumeCapability: r.Capability, ReadOnly: r.ReadOnly})
		if err := allocdir.Admit(filepath.Dir(target), users); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// restrictVolumes corrects the modes of the folders of volumes. An earlier build created all of them
// with the mode 0711. Tasks that run keep their access meanwhile.
func restrictVolumes(root string, records []*client.Record, admit func(*cluster.Allocation) error) error {
	if err := os.Chmod(storage.StageFolder(root), 0o700); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	targets := storage.TargetsFolder(root)
	folders, err := fs.Glob(os.DirFS(targets), "*/*")
	if err != nil {
		return err
	}
	for _, name := range folders {
		folder := filepath.Join(targets, name)
		info, err := os.Lstat(folder)
		switch i := slices.IndexFunc(records, func(r *client.Record) bool { return pathname.Encode(string(r.Alloc.ID)) == path.Dir(name) }); {
		case err != nil:
		case info.Mode().Perm()&0o001 == 0: // this build has created it
		case i < 0:
			err = os.Chmod(folder, 0o700)
		default:
			err = admit(records[i].Alloc)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// view is how a task sees one volume of its group.
type view struct {
	// link is the path of a symbolic link below the task's folder, or empty.
	link string
	// mount is for a driver whose tasks have a separate file system, or nil.
	mount *driver.Mount
	// target is the path at which the volume is published.
	target string
}

// views returns how a task of a driver sees its volumes, or an error if it cannot see them.
//
// Tasks that see the file system of the node get a symbolic link at the destination, below the
// task's folder. A link elsewhere could replace files of the node. A link also cannot make a
// writable volume read-only.
func views(root string, alloc *cluster.Allocation, group *cluster.TaskGroup, task *cluster.Task, name string, c driver.Capabilities) ([]view, error) {
	var all []view
	for _, m := range task.VolumeMounts {
		r := group.VolumeRequest(m.Volume)
		if r == nil {
			return nil, fmt.Errorf("the group has no volume %q", m.Volume)
		}
		key := cluster.VolumeKey{Namespace: alloc.Namespace, ID: r.VolumeOf(alloc.Name)}
		v := view{target: storage.TargetPath(root, alloc.ID, key, storage.Usage{VolumeCapability: r.Capability, ReadOnly: r.ReadOnly})}
		switch clean := path.Clean(m.Destination); {
		case c.FSIsolation != driver.FSNone && c.NoMounts:
			return nil, fmt.Errorf("volume mount %q: the driver %s has no mounts, and its tasks do not see the files of the node", m.Volume, name)
		case c.FSIsolation != driver.FSNone && !path.IsAbs(clean):
			return nil, fmt.Errorf("volume mount %q: the destination %q must be an absolute path in the task", m.Volume, m.Destination)
		case c.FSIsolation != driver.FSNone:
			v.mount = &driver.Mount{TaskPath: clean, HostPath: v.target, ReadOnly: m.ReadOnly || r.ReadOnly, Propagation: m.Propagation}
		case path.IsAbs(clean) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../"):
			return nil, fmt.Errorf("volume mount %q: tasks of the driver %s see the files of the node, so the destination must be a path below the folder of the task, such as \"local/data\", and not %q", m.Volume, name, m.Destination)
		case m.ReadOnly && !r.ReadOnly:
			return nil, fmt.Errorf("volume mount %q: the driver %s cannot keep its tasks from writing: only the volume of the group can be read-only", m.Volume, name)
		default:
			v.link = clean
		}
		if slices.ContainsFunc(all, func(o view) bool { return o.link != "" && o.link == v.link }) {
			return nil, fmt.Errorf("volume mount %q: another volume has the destination %q", m.Volume, m.Destination)
		}
		all = append(all, v)
	}
	return all, nil
}
