package node

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/client/nodeapi"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// volumeServers are test servers with claims on volumes. They call the controller on the node, as
// the leader does through the session.
type volumeServers struct {
	*scripted
	world  *volumeWorld
	claims map[cluster.AllocID]bool // guarded by mu
}

var _ VolumeServers = (*volumeServers)(nil)

func (s *volumeServers) controller(verb string) error {
	var plugin *cluster.StoragePlugin
	s.set(func() { plugin = s.registered[len(s.registered)-1].ControllerPlugin("disks") })
	if plugin == nil {
		return errors.New("no controller runs")
	}
	body, err := json.Marshal(nodeapi.Attachment{ExternalID: "data", NodeID: plugin.NodeID, Capability: manyWriters})
	if err != nil {
		return err
	}
	answer := httptest.NewRecorder()
	nodeapi.New(s.world.node.nodeapiOptions()).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/internal/storage/disks/"+verb, bytes.NewReader(body)))
	if answer.Code != http.StatusOK {
		return fmt.Errorf("%d: %s", answer.Code, answer.Body)
	}
	return nil
}

func (s *volumeServers) ClaimVolume(_ context.Context, k cluster.ClaimKey) (storage.Claimed, error) {
	s.set(func() { s.claims[k.Alloc] = true })
	return storage.Claimed{Plugin: "disks", ExternalID: string(k.Volume.ID)}, s.controller("attach")
}

func (s *volumeServers) ReleaseVolume(_ context.Context, k cluster.ClaimKey) error {
	last := false
	s.set(func() { last = len(s.claims) == 1 && s.claims[k.Alloc] })
	if last {
		if err := s.controller("detach"); err != nil {
			return err
		}
	}
	s.set(func() { delete(s.claims, k.Alloc) })
	return nil
}

var manyWriters = cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}

// volumeWorld is a node with real mounts, and the storage plugin of examples/csi in its strict mode.
type volumeWorld struct {
	*world
	volumes *volumeServers
	// dir has the files of the storage plugin.
	dir, csi string
	index    uint64
	// allocs are the allocations that the servers have placed. The first one is the storage plugin.
	allocs []*cluster.Allocation
}

// newVolumeWorld starts the client and the storage plugin, after a change of the world.
func newVolumeWorld(t *testing.T, change ...func(*world)) *volumeWorld {
	t.Helper()
	dir := t.TempDir()
	if err := tryMount(dir); err != nil {
		t.Skip("needs root and the right to mount: ", err)
	}
	w := &volumeWorld{world: newWorld(t, map[string]config.Plugin{"raw_exec": {Name: "raw_exec", Enabled: true}}), dir: dir, csi: filepath.Join(dir, "csi")}
	w.volumes = &volumeServers{scripted: w.servers, world: w, claims: map[cluster.AllocID]bool{}}
	w.api = w.volumes
	for _, c := range change {
		c(w.world)
	}
	programs.Build(t, "../../examples/csi", w.csi)
	must.NoError(t, os.Mkdir(filepath.Join(dir, "disks"), 0o755))
	w.begin()
	t.Cleanup(func() {
		w.end()
		<-w.ended
		_ = w.node.Close() // a test that ended early has not closed it
		err := Destroy(context.Background(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, Removal{NoGrace: true})
		left := w.mounted()
		for _, point := range left {
			_ = syscall.Unmount(point, syscall.MNT_DETACH)
		}
		must.NoError(t, err)
		must.SliceEmpty(t, left, must.Sprint("mounts are left"))
		must.NoError(t, os.MkdirAll(w.config.DataDir, 0o700)) // the test reads the records of plugins there
	})
	w.place(w.plugin())
	w.awaitStatus(w.allocs[0].ID, cluster.ClientRunning)
	w.await(func(s *scripted) bool {
		p := s.registered[len(s.registered)-1].NodePlugin("disks")
		return p != nil && p.Healthy && p.Stages && p.Provider != "" && p.NodeID == "this"
	})
	return w
}

// tryMount reports whether this process may mount.
func tryMount(dir string) error {
	if os.Geteuid() != 0 {
		return errors.New("this is another user")
	}
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := errors.Join(os.Mkdir(from, 0o700), os.Mkdir(to, 0o700)); err != nil {
		return err
	}
	if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	return syscall.Unmount(to, 0)
}

// send sends the allocations to the client.
func (w *volumeWorld) send() {
	w.index++
	answer := client.Changes{ClusterID: "c", Index: w.index, Allocs: copies(w.allocs), Complete: true}
	for _, a := range w.allocs {
		answer.Known = append(answer.Known, a.ID)
	}
	w.servers.feed <- answer
}

// restart ends the client and starts the next one, after a change. Tasks and mounts stay.
func (w *volumeWorld) restart(change func()) {
	w.Helper()
	w.stop()
	w.servers.set(func() { clear(w.servers.reported) })
	change()
	w.begin()
	w.send()
}

func (w *volumeWorld) place(allocs ...*cluster.Allocation) {
	w.allocs = append(w.allocs, allocs...)
	w.send()
}

// stopAllocs stops allocations at once.
func (w *volumeWorld) stopAllocs(allocs ...*cluster.Allocation) {
	for _, a := range allocs {
		a.DesiredStatus, a.AllocModifyIndex = cluster.DesiredStop, w.index+1
	}
	w.send()
}

// completes waits for the ends of allocations. Then no call was out of order, and no mount, no claim
// and no process is left.
func (w *volumeWorld) completes(pids []int, allocs ...*cluster.Allocation) {
	w.Helper()
	for _, a := range allocs {
		w.awaitStatus(a.ID, cluster.ClientComplete)
	}
	w.calls()
	must.SliceEmpty(w, w.mounted())
	w.eventually("the claims are free", func() bool {
		free := false
		w.servers.set(func() { free = len(w.volumes.claims) == 0 })
		return free
	})
	for _, pid := range pids {
		must.ErrorIs(w, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	_, err := os.Stat(filepath.Join(w.config.DataDir, volumesDir, "per-alloc"))
	must.ErrorIs(w, err, os.ErrNotExist)
	w.stop()
}

func (w *volumeWorld) mounted() []string {
	table, err := mounts.Read()
	must.NoError(w, err)
	real, err := filepath.EvalSymlinks(w.config.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the client has removed it, and nothing was mounted
	}
	must.NoError(w, err)
	return table.Below(real)
}

// newAlloc returns an allocation of a group with one task of raw_exec.
func (w *volumeWorld) newAlloc(group *cluster.TaskGroup, t cluster.JobType, command string, args ...string) *cluster.Allocation {
	config, err := json.Marshal(map[string]any{"command": command, "args": args})
	must.NoError(w, err)
	group.Name, group.Count = "g", 1
	group.Tasks[0].Driver, group.Tasks[0].KillTimeout, group.Tasks[0].Config = "raw_exec", 5*time.Second, config
	job := &cluster.Job{Namespace: "default", ID: "j", Type: t, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	must.NoError(w, job.Validate())
	a := w.alloc(cluster.AllocID(uuid.NewString()), "")
	a.Job = job
	return a
}

func (w *volumeWorld) plugin() *cluster.Allocation {
	again := &cluster.RestartPolicy{Attempts: 10, Interval: time.Minute, Delay: 100 * time.Millisecond, Mode: cluster.RestartDelay}
	return w.newAlloc(&cluster.TaskGroup{RestartPolicy: again, Tasks: []*cluster.Task{{
		Name: "plugin", CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith},
	}}}, cluster.JobSystem, w.csi, "-root", filepath.Join(w.dir, "disks"), "-node-id", "this", "-create", "data",
		"-strict", filepath.Join(w.dir, "calls"), "-faults", filepath.Join(w.dir, "faults"))
}

// consumers places an allocation for each user, whose task writes its pid to a file on the volume.
// It returns the allocations and the pids.
func (w *volumeWorld) consumers(users ...string) (allocs []*cluster.Allocation, pids []int) {
	w.Helper()
	for _, user := range users {
		allocs = append(allocs, w.newAlloc(&cluster.TaskGroup{
			Volumes: []cluster.VolumeRequest{{Name: "disk", Type: cluster.VolumeCSI, Source: "data", Capability: manyWriters}},
			Tasks:   []*cluster.Task{{Name: "web", User: user, KillSignal: "SIGTERM", VolumeMounts: []cluster.VolumeMount{{Volume: "disk", Destination: "local/deep/data"}}}},
		}, cluster.JobService, "/bin/sh", "-c", `echo $$ > "$NOMAD_TASK_DIR/deep/data/$NOMAD_ALLOC_ID"; exec sleep 1000`))
	}
	w.place(allocs...)
	for _, a := range allocs {
		w.awaitStatus(a.ID, cluster.ClientRunning)
		pids = append(pids, w.pid(a))
	}
	return allocs, pids
}

// pid returns the pid of a consumer, from the file on the volume.
func (w *volumeWorld) pid(a *cluster.Allocation) (pid int) {
	w.Helper()
	w.eventually("the task has written to the volume", func() bool {
		for _, depth := range []string{"*/*", "*/*/*"} {
			found, err := filepath.Glob(filepath.Join(w.dir, "disks", depth, string(a.ID)))
			must.NoError(w, err)
			for _, path := range found {
				content, err := os.ReadFile(path)
				must.NoError(w, err)
				pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
			}
		}
		return pid != 0
	})
	return pid
}

// calls returns the names of the successful calls in the strict log. No call was out of order.
func (w *volumeWorld) calls() (names []string) {
	w.Helper()
	f, err := os.Open(filepath.Join(w.dir, "calls"))
	must.NoError(w, err)
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c struct{ Call, Verdict, Code, Error string }
		must.NoError(w, json.Unmarshal(lines.Bytes(), &c))
		must.False(w, c.Verdict == "out of order" || c.Verdict == "in flight", must.Sprintf("%+v", c))
		if c.Code == "OK" {
			names = append(names, c.Call)
		}
	}
	return names
}

// faults sets the faults of the storage plugin.
func (w *volumeWorld) faults(text string) {
	must.NoError(w, replaceFile(filepath.Join(w.dir, "faults"), []byte(text)))
}

// awaitHold waits until the storage plugin waits for a volume.
func (w *volumeWorld) awaitHold() {
	w.Helper()
	w.await(func(s *scripted) bool { return s.reported[w.allocs[0].ID].VolumeHolds.Count() == 1 })
}

// C1, C3: consumer and plugin must stop at the same moment, and the unpublish takes a while. The
// plugin gets its signal after the last volume is off.
func TestVolumes_pluginsLast(t *testing.T) {
	w := newVolumeWorld(t)
	a, pids := w.consumers("")
	w.faults(`[{"call": "NodeUnpublishVolume", "delay": "2s"}]`)
	w.stopAllocs(w.allocs...)
	w.awaitHold()
	w.completes(pids, a[0], w.allocs[0])
	must.Eq(t, []string{
		"ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume",
	}, w.calls())
}

// C2, C8: a process outside of all tasks keeps the mount busy, and the client restarts meanwhile.
func TestVolumes_busyMount(t *testing.T) {
	w := newVolumeWorld(t)
	a, pids := w.consumers("")
	table, err := mounts.Read()
	must.NoError(t, err)
	target := table.Below(filepath.Join(real(w.T, w.config.DataDir), volumesDir, "per-alloc"))
	must.SliceLen(t, 1, target)
	busy := exec.Command("/bin/sleep", "1000")
	busy.Dir = target[0]
	must.NoError(t, busy.Start())
	defer func() { _ = busy.Process.Kill() }()
	w.stopAllocs(w.allocs...)
	name := fmt.Sprintf("kept busy by process %d (/bin/sleep 1000)", busy.Process.Pid)
	held := func(s *scripted) bool {
		for _, id := range []cluster.AllocID{a[0].ID, w.allocs[0].ID} {
			h := s.reported[id].VolumeHolds
			if h.Count() != 1 || h.Volumes[0].Path != target[0] || !strings.Contains(h.Volumes[0].Reason, name) {
				return false
			}
		}
		return true
	}
	w.await(held)
	w.restart(func() {})
	w.await(held)
	must.NoError(t, busy.Process.Kill())
	_ = busy.Wait()
	w.completes(pids, a[0], w.allocs[0])
}

// C5, C11: two allocations share a volume. The client restarts before one stops, and tasks continue.
func TestVolumes_sharedAcrossARestart(t *testing.T) { testSharedAcrossARestart(t) }

// The same with all folders of the client behind symbolic links. Bug: the folders of all
// tests had no links in their paths.
func TestVolumes_behindLinks(t *testing.T) { testSharedAcrossARestart(t, putBehindLinks) }

func testSharedAcrossARestart(t *testing.T, change ...func(*world)) {
	w := newVolumeWorld(t, change...)
	a, pids := w.consumers("", "")
	before := w.calls()
	w.restart(func() {})
	w.stopAllocs(a[0])
	w.awaitStatus(a[0].ID, cluster.ClientComplete)
	must.NoError(t, syscall.Kill(pids[1], 0))
	must.EqOp(t, pids[1], w.pid(a[1]))
	must.SliceLen(t, 2, w.mounted(), must.Sprint("one stage, one target"))
	w.stopAllocs(a[1], w.allocs[0])
	w.completes(pids, a[1], w.allocs[0])
	must.Eq(t, []string{"NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"}, w.calls()[len(before):])
}

// C13: the plugin is killed while it is held. Its task starts again, and the volume goes.
func TestVolumes_pluginDies(t *testing.T) {
	w := newVolumeWorld(t)
	a, pids := w.consumers("")
	w.faults(`[{"call": "NodeUnpublishVolume", "fail": -1}]`)
	w.stopAllocs(w.allocs...)
	w.awaitHold()
	o := w.node.operators()
	plugin, err := o.List(t.Context(), string(w.allocs[0].ID))
	must.NoError(t, err)
	must.NoError(t, o.Signal(t.Context(), plugin[0], "SIGKILL"))
	w.faults("[]")
	w.completes(pids, a[0], w.allocs[0])
}

// The record of a volume is damaged while no client runs. The record of the allocation has the
// volume: the task continues, and the volume is unmounted after it.
func TestVolumes_damagedRecord(t *testing.T) {
	w := newVolumeWorld(t)
	a, pids := w.consumers("")
	records := func() []string {
		found, err := filepath.Glob(filepath.Join(w.config.DataDir, recordsDir, "volume*"))
		must.NoError(t, err)
		return found
	}
	w.restart(func() {
		must.SliceLen(t, 1, records())
		must.NoError(t, os.WriteFile(records()[0], []byte("damaged"), 0o600))
	})
	w.eventually("the volume has a record again", func() bool {
		found := records()
		return len(found) == 1 && !strings.HasSuffix(found[0], ".damaged")
	})
	must.NoError(t, syscall.Kill(pids[0], 0))
	w.stopAllocs(w.allocs...)
	w.completes(pids, a[0], w.allocs[0])
}
