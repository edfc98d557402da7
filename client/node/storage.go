package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
)

const (
	// storageProbeTimeout is the timeout of one probe.
	storageProbeTimeout = 10 * time.Second
	// storageDir is the folder of the sockets of storage plugins, below the folder of all sockets.
	storageDir = "csi"
)

// storageEvents receives events of storage plugins. The core implements it.
type storageEvents interface {
	StoragePluginUp(id cluster.PluginID, p volume.Plugin)
	StoragePluginDown(id cluster.PluginID)
}

// storagePlugin is a connection to a storage plugin: a [csi.Plugin].
type storagePlugin interface {
	Probe(ctx context.Context) error
	Describe(ctx context.Context, t cluster.PluginType) (*cluster.StoragePlugin, error)
	Do(ctx context.Context, c storage.Call, staging, target string) error
	Attach(ctx context.Context, a csi.Attachment) (map[string]string, error)
	Detach(ctx context.Context, a csi.Attachment) error
	Close() error
}

func connectStorage(path string) (storagePlugin, error) { return csi.Connect(path) }

// storagePlugins is the list of the storage plugins that run on the node as tasks. A task is added when a
// driver has started it or taken it over, and removed when the core removes the remains of the
// start. So the list is not stored on disk, and a new client builds it again.
type storagePlugins struct {
	sockets string
	// volumes is the folder of the node's volumes, or empty if the servers have no volumes.
	volumes string
	connect func(socket string) (storagePlugin, error)
	events  storageEvents
	// restartTask requests a restart of the task of a plugin.
	restartTask func(alloc cluster.AllocID, task string, all bool, reply func(error))
	// publish registers the plugins with the servers.
	publish func([]*cluster.StoragePlugin)
	logger  *slog.Logger

	mu  sync.Mutex
	all volume.Starts[served] // guarded by mu
	// changed are plugins whose newest state the core and the servers may not have, in the order of
	// the changes. reporting: a goroutine reports them. Guarded by mu.
	changed   []cluster.PluginID
	reporting bool
}

// storageStart is one start of a storage plugin's task.
type storageStart = volume.Start[served]

// served is the connection to a storage plugin.
type served struct {
	// volumes is the folder of the node's volumes in the file system of the plugin.
	volumes string
	// plugin is nil before the first successful connect. The goroutine that watches the start sets it.
	plugin  storagePlugin // guarded by mu of the list
	stop    context.CancelFunc
	stopped chan struct{}
}

// begin watches a started task if it is a storage plugin, until end is called or the context ends.
func (s *storagePlugins) begin(life context.Context, running *sync.WaitGroup, ref client.TaskRef, alloc *cluster.Allocation, isolation driver.FSIsolation) {
	_, task := taskOf(alloc, ref.Task)
	if task == nil || task.CSIPlugin == nil {
		return
	}
	s.mu.Lock()
	watched := s.all.Has(ref.ID)
	s.mu.Unlock()
	if watched {
		return // a new process of the driver has taken the task over
	}
	ctx, stop := context.WithCancel(life)
	volumes := s.placeOf(ref.Alloc, task, isolation).volumes
	p := &storageStart{
		ID: ref.ID, Alloc: ref.Alloc, Task: ref.Task, Config: *task.CSIPlugin,
		Shell: served{volumes: volumes, stop: stop, stopped: make(chan struct{})},
	}
	s.mu.Lock()
	s.all.Add(p, time.Now())
	s.mu.Unlock()
	running.Go(func() {
		defer close(p.Shell.stopped)
		s.watch(ctx, p)
		stop()
		if p.Shell.plugin == nil {
			return
		}
		if err := p.Shell.plugin.Close(); err != nil {
			s.logger.Debug("a connection to a storage plugin was not closed", "error", err)
		}
	})
}

// end removes the starts of a task from the list.
func (s *storagePlugins) end(ref client.TaskRef) {
	s.mu.Lock()
	ended := s.all.Remove(ref.Alloc, ref.Task, ref.ID)
	s.mu.Unlock()
	for _, p := range ended {
		p.Shell.stop()
		<-p.Shell.stopped
		s.remove(p.Alloc, p.Task)
		s.report(p.Config.ID)
	}
}

// watch probes a plugin until the context ends, and restarts it when [volume.Start.Probed] requires
// this.
func (s *storagePlugins) watch(ctx context.Context, p *storageStart) {
	var problems failureLog
	for ctx.Err() == nil {
		found, err := s.probe(ctx, p)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			problems.over()
		} else if problems.isNew(err) {
			s.logger.Warn("a storage plugin does not answer", "plugin", p.Config.ID, "alloc", p.Alloc, "task", p.Task, "error", err)
		}
		s.mu.Lock()
		wait, restart, changed := p.Probed(found, err, time.Now())
		s.mu.Unlock()
		if restart {
			s.restart(p)
		}
		if changed {
			s.report(p.Config.ID)
		}
		sleep(ctx, wait)
	}
}

// restart requests a restart of the task of a plugin from the core. Volumes stay mounted meanwhile.
func (s *storagePlugins) restart(p *storageStart) {
	s.logger.Error("a storage plugin has not answered within its health timeout; the client restarts it", "plugin", p.Config.ID, "alloc", p.Alloc, "task", p.Task, "limit", p.Limit())
	s.restartTask(p.Alloc, p.Task, false, func(err error) {
		if err != nil {
			s.logger.Warn("a storage plugin could not be restarted", "plugin", p.Config.ID, "alloc", p.Alloc, "task", p.Task, "error", err)
		}
	})
}

// connection returns the connection of a start, and makes it if there is none. A failed connect is a
// failed probe: the next probe connects again, and the health timeout applies.
func (s *storagePlugins) connection(p *storageStart) (storagePlugin, error) {
	if p.Shell.plugin != nil {
		return p.Shell.plugin, nil
	}
	plugin, err := s.connect(s.socketOf(p.Alloc, p.Task))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p.Shell.plugin = plugin
	return plugin, nil
}

// probe checks whether a plugin is ready. The first time it also reads the plugin's description.
func (s *storagePlugins) probe(ctx context.Context, p *storageStart) (*cluster.StoragePlugin, error) {
	ctx, cancel := context.WithTimeout(ctx, storageProbeTimeout)
	defer cancel()
	plugin, err := s.connection(p)
	if err != nil {
		return nil, err
	}
	if err := plugin.Probe(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	found := p.Healthy()
	s.mu.Unlock()
	if found != nil {
		return found, nil
	}
	return plugin.Describe(ctx, p.Config.Type)
}

// report reports a plugin's newest state to the core and the servers. One goroutine at a time sends
// reports. If it is busy, report only adds the plugin to the list. So an older state never follows
// a newer one, and no lock is held during a report.
func (s *storagePlugins) report(id cluster.PluginID) {
	s.mu.Lock()
	s.changed = append(s.changed, id)
	busy := s.reporting
	s.reporting = true
	s.mu.Unlock()
	for more := !busy; more; {
		more = s.reportNext()
	}
}

// reportNext reports the plugin that has waited longest. It returns false if there was none.
func (s *storagePlugins) reportNext() bool {
	s.mu.Lock()
	if len(s.changed) == 0 {
		s.reporting = false
		s.mu.Unlock()
		return false
	}
	id := s.changed[0]
	s.changed = s.changed[1:]
	up, plugins := s.all.Report(id)
	s.mu.Unlock()
	if up != nil {
		s.events.StoragePluginUp(id, *up)
	} else {
		s.events.StoragePluginDown(id)
	}
	s.publish(plugins)
	return true
}

// plugin returns the newest healthy plugin with a role, or an error.
func (s *storagePlugins) plugin(id cluster.PluginID, role func(cluster.PluginType) bool) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.all.Newest(id, role)
	if p == nil {
		return nil, fmt.Errorf("no healthy storage plugin %q runs on the node", id)
	}
	return &p.Shell, nil
}

// controllers calls the controllers among the storage plugins of the node, for the leader.
type controllers struct{ storage *storagePlugins }

var _ nodeapi.Storage = (*controllers)(nil)

func (c *controllers) call(ctx context.Context, id cluster.PluginID, f func(context.Context, storagePlugin) error) error {
	p, err := c.storage.plugin(id, cluster.PluginType.Controller)
	if err != nil {
		return fmt.Errorf("%w: %w", nodeapi.ErrState, err)
	}
	ctx, cancel := context.WithTimeout(ctx, volumeCallTimeout)
	defer cancel()
	err = f(ctx, p.plugin)
	if class := storage.ClassOf(err); err != nil && (class == storage.Refused || class == storage.Unimplemented) {
		return fmt.Errorf("%w: %w", nodeapi.ErrRefused, err)
	}
	return err
}

// Attach implements [nodeapi.Storage].
func (c *controllers) Attach(ctx context.Context, id cluster.PluginID, a nodeapi.Attachment) (published map[string]string, err error) {
	err = c.call(ctx, id, func(ctx context.Context, p storagePlugin) error {
		published, err = p.Attach(ctx, csi.Attachment(a))
		return err
	})
	return published, err
}

// Detach implements [nodeapi.Storage].
func (c *controllers) Detach(ctx context.Context, id cluster.PluginID, a nodeapi.Attachment) error {
	return c.call(ctx, id, func(ctx context.Context, p storagePlugin) error { return p.Detach(ctx, csi.Attachment(a)) })
}

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
