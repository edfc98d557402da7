package node

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
)

// storageSocket is the name of a storage plugin's socket. Each socket has a separate folder.
const storageSocket = "csi.sock"

// storagePlace contains the paths and mounts for a storage plugin's task. The paths are valid
// inside the task.
type storagePlace struct {
	// socket is the path at which the plugin must serve CSI.
	socket string
	// volumes is the folder of the node's volumes, or empty.
	volumes string
	// mounts make both visible to a task with a separate file system.
	mounts []driver.Mount
}

// folderOf returns the folder of a plugin's socket. The path of the socket has at most 30 bytes
// beyond the folder of all sockets.
func (s *storagePlugins) folderOf(alloc cluster.AllocID, task string) string {
	return filepath.Join(s.sockets, shortName(fmt.Sprintf("%q %q", alloc, task)))
}

// socketOf returns the path of a plugin's socket on the node.
func (s *storagePlugins) socketOf(alloc cluster.AllocID, task string) string {
	return filepath.Join(s.folderOf(alloc, task), storageSocket)
}

// placeOf returns the paths and mounts for a storage plugin's task. A task that sees the file
// system of the node uses the paths of the node. Any other task gets mounts at the paths of its
// job. The plugin's own mounts in them must appear on the node.
func (s *storagePlugins) placeOf(alloc cluster.AllocID, task *cluster.Task, isolation driver.FSIsolation) storagePlace {
	if !ownFiles(isolation) {
		return storagePlace{socket: s.socketOf(alloc, task.Name), volumes: s.volumes}
	}
	mountDir := cmp.Or(task.CSIPlugin.MountDir, cluster.DefaultPluginMountDir)
	place := storagePlace{
		socket: path.Join(mountDir, storageSocket),
		mounts: []driver.Mount{{TaskPath: mountDir, HostPath: s.folderOf(alloc, task.Name)}},
	}
	if s.volumes != "" && task.CSIPlugin.Type.Node() {
		place.volumes = cmp.Or(task.CSIPlugin.StagePublishBaseDir, cluster.DefaultPluginVolumesDir)
		place.mounts = append(place.mounts, driver.Mount{TaskPath: place.volumes, HostPath: s.volumes, Propagation: "bidirectional"})
	}
	return place
}

// endpointOf returns the address at which a task must serve CSI, or "" for a task that is not a
// storage plugin.
func (s *storagePlugins) endpointOf(alloc cluster.AllocID, task *cluster.Task, isolation driver.FSIsolation) string {
	if task == nil || task.CSIPlugin == nil {
		return ""
	}
	return "unix://" + s.placeOf(alloc, task, isolation).socket
}

// prepare creates the folder of the socket before a storage plugin starts, and removes the files of
// an earlier start from it.
func (s *storagePlugins) prepare(alloc cluster.AllocID, task *cluster.Task) error {
	if task.CSIPlugin == nil {
		return nil
	}
	if err := os.MkdirAll(s.folderOf(alloc, task.Name), 0o700); err != nil {
		return err
	}
	if err := os.Remove(s.socketOf(alloc, task.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remove removes the folder of the socket of a task that has ended.
func (s *storagePlugins) remove(alloc cluster.AllocID, task string) {
	if err := os.RemoveAll(s.folderOf(alloc, task)); err != nil {
		s.logger.Warn("the folder of a storage plugin's socket was not removed", "alloc", alloc, "task", task, "error", err)
	}
}

// ownFiles reports whether tasks have a separate file system.
func ownFiles(i driver.FSIsolation) bool { return i == driver.FSChroot || i == driver.FSImage }

// refuseStorage returns an error if a task cannot be a storage plugin of this client.
func refuseStorage(task *cluster.Task, name string, c driver.Capabilities) error {
	plugin := task.CSIPlugin
	own := ownFiles(c.FSIsolation)
	switch {
	case plugin == nil:
		return nil
	case task.User != "":
		return errors.New("a storage plugin must run as the user of the client, because only that user can open its socket: remove the user of the task")
	case c.FSIsolation == driver.FSUnveil:
		return fmt.Errorf("a storage plugin must mount volumes where all tasks see them, and tasks of the driver %s see only a part of the node", name)
	case own && c.NoMounts:
		return fmt.Errorf("a storage plugin needs mounts for its socket and for volumes, and the driver %s has none", name)
	case own && (plugin.MountDir != "" && !path.IsAbs(plugin.MountDir) || plugin.StagePublishBaseDir != "" && !path.IsAbs(plugin.StagePublishBaseDir)):
		return errors.New("MountDir and StagePublishBaseDir of a storage plugin must be absolute paths in the task")
	case own:
		return nil
	case plugin.MountDir != "" && plugin.MountDir != cluster.DefaultPluginMountDir:
		return fmt.Errorf("MountDir %q has no effect, because tasks of the driver %s see the files of the node: remove it, and use the socket at CSI_ENDPOINT", plugin.MountDir, name)
	case plugin.StagePublishBaseDir != "" && plugin.StagePublishBaseDir != cluster.DefaultPluginVolumesDir:
		return fmt.Errorf("StagePublishBaseDir %q has no effect, because tasks of the driver %s see the files of the node: remove it, and use the paths in each request", plugin.StagePublishBaseDir, name)
	}
	return nil
}
