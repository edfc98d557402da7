package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/client/volume"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/driver"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage/csi"
)

// fakeStorage is the process of a storage plugin.
type fakeStorage struct {
	storagePlugin
	mu     sync.Mutex
	err    error // guarded by mu
	stages bool
	probes int // guarded by mu
	// staging and target are the paths of the last call.
	staging, target string
}

func (f *fakeStorage) Do(_ context.Context, _ storage.Call, staging, target string) error {
	f.staging, f.target = staging, target
	return nil
}

func (f *fakeStorage) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeStorage) Probe(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.probes++
	return f.err
}

func (f *fakeStorage) Describe(_ context.Context, t cluster.PluginType) (*cluster.StoragePlugin, error) {
	return &cluster.StoragePlugin{Type: t, Stages: f.stages, NodeID: "this"}, nil
}

func (f *fakeStorage) Detach(context.Context, csi.Attachment) error {
	return storage.Errorf(storage.Refused, "never")
}

func (*fakeStorage) Close() error { return nil }

// storageWorld is a list of storage plugins with a core that records its events.
type storageWorld struct {
	*storagePlugins
	t         *testing.T
	plugins   map[string]*fakeStorage // by socket
	mu        sync.Mutex
	words     []string // guarded by mu
	published []*cluster.StoragePlugin
	running   sync.WaitGroup
	life      context.Context
}

func newStorageWorld(t *testing.T) *storageWorld {
	life, end := context.WithCancel(t.Context())
	w := &storageWorld{t: t, plugins: map[string]*fakeStorage{}, life: life}
	w.storagePlugins = &storagePlugins{
		sockets: t.TempDir(), events: w, restartTask: w.Restart, logger: slog.New(slog.DiscardHandler),
		connect: func(path string) (storagePlugin, error) { return w.plugins[path], nil },
		publish: func(p []*cluster.StoragePlugin) { w.published = p },
	}
	t.Cleanup(func() {
		end()
		w.running.Wait()
	})
	return w
}

func (w *storageWorld) StoragePluginUp(id cluster.PluginID, p volume.Plugin) {
	w.record(id, " is up, stages: ", p.Stages)
}

func (w *storageWorld) StoragePluginDown(id cluster.PluginID) {
	w.record(id, " is down")
}

func (w *storageWorld) Restart(alloc cluster.AllocID, task string, all bool, reply func(error)) {
	w.record("restart ", alloc, "/", task, " ", all)
	reply(errors.New("not running"))
}

func (w *storageWorld) record(word ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.words = append(w.words, fmt.Sprint(word...))
}

func (w *storageWorld) posts(words ...string) {
	w.t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	must.Eq(w.t, words, w.words)
	w.words = nil
}

// start starts a task that is a plugin, which answers probes with the error.
func (w *storageWorld) start(alloc cluster.AllocID, kind cluster.PluginType, err error) (*fakeStorage, client.TaskRef) {
	task := &cluster.Task{Name: "plugin", CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: kind}}
	f := &fakeStorage{stages: true, err: err}
	w.plugins[w.socketOf(alloc, "plugin")] = f
	a := &cluster.Allocation{ID: alloc, TaskGroup: "g", Job: &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{task}}}}}
	ref := client.TaskRef{Alloc: alloc, Task: "plugin", ID: driver.TaskID(alloc)}
	w.begin(w.life, &w.running, ref, a, driver.FSNone)
	return f, ref
}

// A plugin that answers is probed each 30 seconds. One that does not is probed each second, and
// restarted after its health timeout.
func TestStorage_health(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		f, ref := w.start("a", cluster.PluginNode, nil)
		w.posts("disks is up, stages: true")
		must.SliceLen(t, 1, w.published)
		must.True(t, w.published[0].Healthy)
		must.EqOp(t, "a", w.published[0].Alloc)
		time.Sleep(10*time.Minute + time.Second)
		w.posts()
		must.EqOp(t, 21, f.probes, must.Sprint("N12: one each 30 seconds"))

		f.set(errors.New("no answer"))
		time.Sleep(30 * time.Second)
		w.posts("disks is down")
		must.False(t, w.published[0].Healthy)
		must.EqOp(t, "no answer", w.published[0].HealthDescription)
		must.EqOp(t, "this", w.published[0].NodeID)
		_, err := w.plugin("disks", cluster.PluginType.Node)
		must.ErrorContains(t, err, `no healthy storage plugin "disks" runs on the node`)
		time.Sleep(cluster.DefaultPluginHealthTimeout)
		w.posts("restart a/plugin false")

		f.set(nil)
		time.Sleep(2 * time.Second)
		w.posts("disks is up, stages: true")
		w.end(ref)
		w.posts("disks is down")
		must.SliceEmpty(t, w.published)
	})
}

// A plugin that never answers is restarted, too.
func TestStorage_neverAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		w.start("a", cluster.PluginNode, errors.New("refused"))
		time.Sleep(cluster.DefaultPluginHealthTimeout + 2*time.Second)
		synctest.Wait()
		must.SliceContains(t, w.words, "restart a/plugin false")
	})
}

// A connect fails, and each probe tries again, as after a probe without an answer. Bug: the client
// logged it and never used the plugin.
func TestStorage_connectFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		connect, refused := w.connect, errors.New("no descriptors")
		var connects atomic.Int64
		var fails atomic.Bool
		fails.Store(true)
		w.connect = func(path string) (storagePlugin, error) {
			connects.Add(1)
			if fails.Load() {
				return nil, refused
			}
			return connect(path)
		}
		_, ref := w.start("a", cluster.PluginNode, nil)
		w.posts("disks is down")
		must.EqOp(t, "no descriptors", w.published[0].HealthDescription)
		_, err := w.plugin("disks", cluster.PluginType.Node)
		must.ErrorContains(t, err, "no healthy storage plugin")
		time.Sleep(cluster.DefaultPluginHealthTimeout + 500*time.Millisecond)
		w.posts("restart a/plugin false")
		must.EqOp(t, int(cluster.DefaultPluginHealthTimeout/time.Second)+1, int(connects.Load()), must.Sprint("one each second"))

		fails.Store(false)
		time.Sleep(time.Second)
		w.posts("disks is up, stages: true")
		connects.Store(0)
		time.Sleep(time.Hour)
		must.Zero(t, connects.Load(), must.Sprint("it has a connection"))
		w.end(ref)
		w.posts("disks is down")

		fails.Store(true)
		_, ref = w.start("b", cluster.PluginNode, nil)
		w.posts("disks is down")
		w.end(ref)
		w.posts("disks is down")
	})
}

// Two tasks run the same plugin: the newest healthy one is used. A restart of the driver changes
// nothing.
func TestStorage_twoOfThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		old, first := w.start("a", cluster.PluginMonolith, nil)
		w.posts("disks is up, stages: true")
		next, second := w.start("b", cluster.PluginMonolith, nil)
		w.posts("disks is up, stages: true")
		must.SliceLen(t, 1, w.published)
		p, err := w.plugin("disks", cluster.PluginType.Controller)
		must.NoError(t, err)
		must.True(t, p.plugin == storagePlugin(next))
		w.end(second)
		w.posts("disks is up, stages: true")
		p, err = w.plugin("disks", cluster.PluginType.Node)
		must.NoError(t, err)
		must.True(t, p.plugin == storagePlugin(old))
		w.end(first)
		w.posts("disks is down")
	})
}

// A controller mounts nothing, and answers the leader's calls.
func TestStorage_controller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		c := &controllers{w.storagePlugins}
		must.ErrorIs(t, c.Detach(t.Context(), "disks", nodeapi.Attachment{}), nodeapi.ErrState)
		w.start("a", cluster.PluginController, nil)
		w.posts("disks is down")
		must.SliceLen(t, 1, w.published)
		must.ErrorIs(t, c.Detach(t.Context(), "disks", nodeapi.Attachment{}), nodeapi.ErrRefused)
	})
}

// Two plugins answer for the first time, and the client is slow to publish the first of them. Bug:
// the older list of the two was published last, and the servers missed a plugin until its health
// changed.
func TestStorage_publishesTheNewestListLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		first, goOn := true, make(chan struct{})
		w.publish = func(p []*cluster.StoragePlugin) {
			if first {
				first = false
				<-goOn
			}
			w.published = p
		}
		w.start("a", cluster.PluginNode, nil)
		synctest.Wait()
		w.start("b", cluster.PluginController, nil)
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		must.SliceLen(t, 2, w.published)
	})
}

// slowDown is a core whose PluginDown blocks until goOn is closed.
type slowDown struct {
	*storageWorld
	goOn chan struct{}
}

func (s *slowDown) StoragePluginDown(id cluster.PluginID) {
	<-s.goOn
	s.storageWorld.StoragePluginDown(id)
}

// The old version of a plugin ends while the new one answers for the first time. Bug: the core got
// the event that the plugin was down last, and used the plugin for no mount until its health
// changed.
func TestStorage_upAfterDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newStorageWorld(t)
		_, old := w.start("old", cluster.PluginNode, nil)
		w.posts("disks is up, stages: true")
		goOn := make(chan struct{})
		w.storagePlugins.events = &slowDown{w, goOn}
		go w.end(old)
		synctest.Wait()
		w.start("new", cluster.PluginNode, nil)
		synctest.Wait()
		close(goOn)
		w.posts("disks is down", "disks is up, stages: true")
	})
}
