package node

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
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
