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
	"os/signal"
	"path/filepath"
	"slices"
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
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
)

// fileServers are test servers whose state is in a folder, which the test and the client's process
// share.
type fileServers struct {
	dir  string
	node *Node
}

var _ VolumeServers = (*fileServers)(nil)

// wishes are the allocations that the servers want on the node.
type wishes struct {
	Index  uint64
	Allocs []*cluster.Allocation
}

func (s *fileServers) read(name string, into any) {
	content, err := os.ReadFile(filepath.Join(s.dir, name))
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		panic(err)
	}
}

func (s *fileServers) write(name string, value any) {
	content, err := json.Marshal(value)
	if err == nil {
		err = replaceFile(filepath.Join(s.dir, name), content)
	}
	if err != nil {
		panic(err)
	}
}

func (s *fileServers) Register(_ context.Context, n *cluster.Node) (time.Duration, error) {
	s.write("node.json", n)
	return time.Minute, nil
}

func (*fileServers) Heartbeat(context.Context) (time.Duration, error) { return time.Minute, nil }

func (s *fileServers) Changes(ctx context.Context, _ string, index uint64) (client.Wanted, error) {
	for ctx.Err() == nil {
		var w wishes
		s.read("wanted.json", &w)
		if w.Index > index {
			answer := client.Wanted{ClusterID: "c", Index: w.Index, Allocs: w.Allocs, Complete: true}
			for _, a := range w.Allocs {
				answer.Known = append(answer.Known, a.ID)
			}
			return answer, nil
		}
		sleep(ctx, 20*time.Millisecond)
	}
	return client.Wanted{}, ctx.Err()
}

func (s *fileServers) Report(_ context.Context, reports []cluster.AllocReport) error {
	all := map[cluster.AllocID]cluster.AllocReport{}
	s.read("reports.json", &all)
	for _, r := range reports {
		all[r.Alloc] = r
	}
	s.write("reports.json", all)
	return nil
}

func (*fileServers) AcceptAnonymous(context.Context) (bool, error) { return false, nil }

func (*fileServers) OpenSession(context.Context) (*session.NodeEnd, error) {
	return nil, errors.New("there are no sessions")
}

// controller calls the controller on the node, as the leader does through the session.
func (s *fileServers) controller(verb string) error {
	var self cluster.Node
	s.read("node.json", &self)
	plugin := self.ControllerPlugin("disks")
	if plugin == nil {
		return errors.New("no controller runs")
	}
	body, err := json.Marshal(nodeapi.Attachment{ExternalID: "data", NodeID: plugin.NodeID, Capability: manyWriters})
	if err != nil {
		return err
	}
	answer := httptest.NewRecorder()
	nodeapi.New(s.node.nodeapiOptions()).ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/internal/storage/disks/"+verb, bytes.NewReader(body)))
	if answer.Code != http.StatusOK {
		return fmt.Errorf("%d: %s", answer.Code, answer.Body)
	}
	return nil
}

func (s *fileServers) ClaimVolume(_ context.Context, k cluster.ClaimKey) (storage.Claimed, error) {
	claims := map[cluster.AllocID]bool{}
	s.read("claims.json", &claims)
	claims[k.Alloc] = true
	s.write("claims.json", claims)
	return storage.Claimed{Plugin: "disks", ExternalID: string(k.Volume.ID)}, s.controller("attach")
}

func (s *fileServers) ReleaseVolume(_ context.Context, k cluster.ClaimKey) error {
	claims := map[cluster.AllocID]bool{}
	s.read("claims.json", &claims)
	if len(claims) == 1 && claims[k.Alloc] {
		if err := s.controller("detach"); err != nil {
			return err
		}
	}
	delete(claims, k.Alloc)
	s.write("claims.json", claims)
	return nil
}

var manyWriters = cluster.VolumeCapability{Access: cluster.MultiNodeMultiWriter, Attachment: cluster.AttachFileSystem}

func volumesConfig(dir, run string) *config.Config {
	return &config.Config{
		Name: "n1", DataDir: filepath.Join(dir, "data"), RunDir: run, Plugins: map[string]config.Plugin{"raw_exec": {Name: "raw_exec", Enabled: true}},
		Limits: config.Limits{MaxKillTimeout: time.Minute, DriverCalls: 8},
	}
}

// volumesClient is the process of a client with fileServers. It stops after SIGTERM, and tasks
// continue.
func volumesClient(dir, run string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	servers := &fileServers{dir: dir}
	n, err := Open(ctx, Options{Config: volumesConfig(dir, run), LogKeeper: []string{"logkeeper"}, Servers: servers})
	if err != nil {
		return err
	}
	servers.node = n
	return errors.Join(n.Run(ctx), n.Close())
}

// machine is a client in a separate process, with real mounts.
type machine struct {
	*testing.T
	servers *fileServers
	run     string
	process *exec.Cmd
	csi     string
	index   uint64
	allocs  []*cluster.Allocation
}

// newMachine starts a client and the storage plugin of examples/csi in its strict mode.
func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.NoError(t, err)
	if err := tryMount(dir); err != nil {
		t.Skip("needs root and the right to mount: ", err)
	}
	run, err := os.MkdirTemp("", "nd")
	must.NoError(t, err)
	m := &machine{T: t, servers: &fileServers{dir: dir}, run: run, csi: filepath.Join(dir, "csi")}
	programs.Build(t, "../../examples/csi", m.csi)
	must.NoError(t, os.Mkdir(filepath.Join(dir, "disks"), 0o755))
	t.Cleanup(func() {
		m.kill()
		err := Destroy(context.Background(), Options{Config: volumesConfig(dir, run), LogKeeper: []string{"logkeeper"}}, true)
		table, _ := mounts.Read()
		left := table.Below(dir)
		for _, point := range left {
			_ = syscall.Unmount(point, syscall.MNT_DETACH)
		}
		must.NoError(t, err)
		must.SliceEmpty(t, left, must.Sprint("mounts are left"))
	})
	m.begin()
	m.place(m.plugin("first"))
	m.awaitStatus(m.allocs[0].ID, cluster.ClientRunning)
	m.await("the plugin is healthy", func() bool {
		var self cluster.Node
		m.servers.read("node.json", &self)
		p := self.NodePlugin("disks")
		return p != nil && p.Healthy && p.Stages && p.Provider != "" && p.NodeID == "this"
	})
	return m
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

func (m *machine) begin() {
	m.Helper()
	m.process = exec.Command(os.Args[0], "volumesclient", m.servers.dir, m.run)
	m.process.Stdout, m.process.Stderr = os.Stdout, os.Stderr
	m.process.Env = append(os.Environ(), "GOTRACEBACK=all")
	must.NoError(m, m.process.Start())
}

// kill kills the client. Tasks, plugins and mounts stay.
func (m *machine) kill() {
	m.Helper()
	if m.process != nil {
		must.NoError(m, m.process.Process.Kill())
		_ = m.process.Wait() // killed
		m.process = nil
	}
}

func (m *machine) tell() {
	m.index++
	m.servers.write("wanted.json", wishes{Index: m.index, Allocs: m.allocs})
}

func (m *machine) place(allocs ...*cluster.Allocation) {
	m.allocs = append(m.allocs, allocs...)
	m.tell()
}

// stop stops allocations at once.
func (m *machine) stop(allocs ...*cluster.Allocation) {
	for _, a := range allocs {
		i := slices.IndexFunc(m.allocs, func(o *cluster.Allocation) bool { return o.ID == a.ID })
		stopped := m.allocs[i].Copy()
		stopped.DesiredStatus, stopped.AllocModifyIndex = cluster.DesiredStop, m.index+1
		m.allocs[i] = stopped
	}
	m.tell()
}

func (m *machine) await(what string, known func() bool) {
	m.Helper()
	for deadline := time.Now().Add(time.Minute); !known(); {
		if time.Now().After(deadline) {
			reports, _ := os.ReadFile(filepath.Join(m.servers.dir, "reports.json"))
			m.Fatalf("waited until %s:\n%s", what, reports)
		}
		sleep(m.Context(), 10*time.Millisecond)
	}
}

func (m *machine) report(id cluster.AllocID) cluster.AllocReport {
	all := map[cluster.AllocID]cluster.AllocReport{}
	m.servers.read("reports.json", &all)
	return all[id]
}

func (m *machine) awaitStatus(id cluster.AllocID, status cluster.ClientStatus) {
	m.Helper()
	m.await(fmt.Sprint(id, " is ", status), func() bool { return m.report(id).ClientStatus == status })
}

func (m *machine) alloc(group *cluster.TaskGroup, t cluster.JobType) *cluster.Allocation {
	job := &cluster.Job{Namespace: "default", ID: "j", Type: t, TaskGroups: []*cluster.TaskGroup{group}}
	job.Canonicalize()
	must.NoError(m, job.Validate())
	return &cluster.Allocation{
		ID: cluster.AllocID(uuid.NewString()), Namespace: "default", Name: "j.g[0]", JobID: "j", Job: job, TaskGroup: "g",
		NodeID: m.id(), DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, AllocModifyIndex: 1,
	}
}

// id is the id of the node.
func (m *machine) id() cluster.NodeID {
	var self cluster.Node
	m.await("the node is registered", func() bool {
		m.servers.read("node.json", &self)
		return self.ID != ""
	})
	return self.ID
}

func command(t *testing.T, path string, args ...string) json.RawMessage {
	config, err := json.Marshal(map[string]any{"command": path, "args": args})
	must.NoError(t, err)
	return config
}

// plugin is an allocation of the storage plugin.
func (m *machine) plugin(version string) *cluster.Allocation {
	dir := m.servers.dir
	again := &cluster.RestartPolicy{Attempts: 10, Interval: time.Minute, Delay: 100 * time.Millisecond, Mode: cluster.RestartDelay}
	return m.alloc(&cluster.TaskGroup{Name: "g", Count: 1, RestartPolicy: again, Meta: map[string]string{"version": version}, Tasks: []*cluster.Task{{
		Name: "plugin", Driver: "raw_exec", KillTimeout: 5 * time.Second,
		Config: command(m.T, m.csi, "-root", filepath.Join(dir, "disks"), "-node-id", "this", "-create", "data",
			"-strict", filepath.Join(dir, "calls"), "-faults", filepath.Join(dir, "faults")),
		CSIPlugin: &cluster.CSIPlugin{ID: "disks", Type: cluster.PluginMonolith},
	}}}, cluster.JobSystem)
}

// consumer returns an allocation whose task writes its pid to a file on the volume.
func (m *machine) consumer() *cluster.Allocation {
	return m.alloc(&cluster.TaskGroup{
		Name: "g", Count: 1,
		Volumes: []cluster.VolumeRequest{{Name: "disk", Type: cluster.VolumeCSI, Source: "data", Capability: manyWriters}},
		Tasks: []*cluster.Task{{
			Name: "web", Driver: "raw_exec", KillTimeout: 5 * time.Second, KillSignal: "SIGTERM",
			Config:       command(m.T, "/bin/sh", "-c", `echo $$ > "$NOMAD_TASK_DIR/deep/data/$NOMAD_ALLOC_ID"; exec sleep 1000`),
			VolumeMounts: []cluster.VolumeMount{{Volume: "disk", Destination: "local/deep/data"}},
		}},
	}, cluster.JobService)
}

// pid returns the pid of a consumer, from the file on the volume.
func (m *machine) pid(a *cluster.Allocation) int {
	m.Helper()
	var pid int
	m.await("the task has written to the volume", func() bool {
		matches, err := filepath.Glob(filepath.Join(m.servers.dir, "disks", "*", "*", string(a.ID)))
		must.NoError(m, err)
		deeper, err := filepath.Glob(filepath.Join(m.servers.dir, "disks", "*", "*", "*", string(a.ID)))
		must.NoError(m, err)
		for _, path := range append(matches, deeper...) {
			content, err := os.ReadFile(path)
			must.NoError(m, err)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(content)))
		}
		return pid != 0
	})
	return pid
}

// csiCall is a line of the strict log.
type csiCall struct {
	Call, Verdict, Code, Error string
	Time                       time.Time
}

// calls returns the calls of the strict log. None of them is out of order.
func (m *machine) calls() []csiCall {
	m.Helper()
	f, err := os.Open(filepath.Join(m.servers.dir, "calls"))
	must.NoError(m, err)
	defer f.Close()
	var all []csiCall
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c csiCall
		must.NoError(m, json.Unmarshal(lines.Bytes(), &c))
		must.False(m, c.Verdict == "out of order" || c.Verdict == "in flight", must.Sprintf("%+v", c))
		all = append(all, c)
	}
	return all
}

// succeeded returns the names of the successful calls, without consecutive duplicates.
func (m *machine) succeeded() []string {
	m.Helper()
	var names []string
	for _, c := range m.calls() {
		if c.Code == "OK" {
			names = append(names, c.Call)
		}
	}
	return names
}

func (m *machine) faults(text string) {
	must.NoError(m, os.WriteFile(filepath.Join(m.servers.dir, "faults.new"), []byte(text), 0o600))
	must.NoError(m, os.Rename(filepath.Join(m.servers.dir, "faults.new"), filepath.Join(m.servers.dir, "faults")))
}

// empty checks that no mount, no claim and no process is left.
func (m *machine) empty(pids ...int) {
	m.Helper()
	table, err := mounts.Read()
	must.NoError(m, err)
	must.SliceEmpty(m, table.Below(m.servers.dir))
	m.await("the claims are free", func() bool {
		claims := map[cluster.AllocID]bool{}
		m.servers.read("claims.json", &claims)
		return len(claims) == 0
	})
	for _, pid := range pids {
		must.ErrorIs(m, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	_, err = os.Stat(filepath.Join(m.servers.dir, "data", volumesDir, "per-alloc"))
	must.ErrorIs(m, err, os.ErrNotExist)
}

// C1, C3: consumer and plugin must stop at the same moment, and the unpublish takes a while. The
// plugin gets its signal after the last volume is off.
func TestVolumes_pluginsLast(t *testing.T) {
	m := newMachine(t)
	a := m.consumer()
	m.place(a)
	m.awaitStatus(a.ID, cluster.ClientRunning)
	pid := m.pid(a)
	m.faults(`[{"call": "NodeUnpublishVolume", "delay": "2s"}]`)
	m.stop(m.allocs[0], a)
	m.await("the plugin is held", func() bool { return m.report(m.allocs[0].ID).VolumeHolds.Count() == 1 })
	m.awaitStatus(a.ID, cluster.ClientComplete)
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	must.Eq(t, []string{
		"ControllerPublishVolume", "NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume",
	}, m.succeeded())
	m.empty(pid)
}

// C2, C8: a process outside of all tasks keeps the mount busy, and the client is killed meanwhile.
func TestVolumes_busyMount(t *testing.T) {
	m := newMachine(t)
	a := m.consumer()
	m.place(a)
	m.awaitStatus(a.ID, cluster.ClientRunning)
	pid := m.pid(a)
	table, err := mounts.Read()
	must.NoError(t, err)
	target := table.Below(filepath.Join(m.servers.dir, "data", volumesDir, "per-alloc"))
	must.SliceLen(t, 1, target)
	busy := exec.Command("/bin/sleep", "1000")
	busy.Dir = target[0]
	must.NoError(t, busy.Start())
	defer func() { _ = busy.Process.Kill() }()
	m.stop(m.allocs[0], a)
	name := fmt.Sprintf("kept busy by process %d (/bin/sleep 1000)", busy.Process.Pid)
	held := func() bool {
		for _, id := range []cluster.AllocID{a.ID, m.allocs[0].ID} {
			h := m.report(id).VolumeHolds
			if h.Count() != 1 || h.Volumes[0].Path != target[0] || !strings.Contains(h.Volumes[0].Reason, name) {
				return false
			}
		}
		return true
	}
	m.await("both reports name the process", held)
	m.kill()
	must.NoError(t, os.Remove(filepath.Join(m.servers.dir, "reports.json")))
	m.begin()
	m.await("the reports of the next client name it", held)
	must.NoError(t, busy.Process.Kill())
	_ = busy.Wait()
	m.awaitStatus(a.ID, cluster.ClientComplete)
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	m.calls()
	m.empty(pid)
}

// C5, C11: two allocations share a volume. The client is killed before one stops, and tasks go on.
func TestVolumes_sharedAcrossARestart(t *testing.T) {
	m := newMachine(t)
	a, b := m.consumer(), m.consumer()
	m.place(a, b)
	m.awaitStatus(a.ID, cluster.ClientRunning)
	m.awaitStatus(b.ID, cluster.ClientRunning)
	pids := []int{m.pid(a), m.pid(b)}
	before := m.succeeded()
	m.kill()
	m.begin()
	m.stop(a)
	m.awaitStatus(a.ID, cluster.ClientComplete)
	must.NoError(t, syscall.Kill(pids[1], 0))
	must.EqOp(t, pids[1], m.pid(b))
	table, err := mounts.Read()
	must.NoError(t, err)
	must.SliceLen(t, 2, table.Below(filepath.Join(m.servers.dir, "data", volumesDir)), must.Sprint("one stage, one target"))
	m.stop(b, m.allocs[0])
	m.awaitStatus(b.ID, cluster.ClientComplete)
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	must.Eq(t, []string{"NodeUnpublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "ControllerUnpublishVolume"}, m.succeeded()[len(before):])
	m.empty(pids...)
}

// The client is killed again and again, while volumes come and go.
//
//race:skip the same goroutines as TestVolumes_sharedAcrossARestart
func TestVolumes_killedClients(t *testing.T) {
	m := newMachine(t)
	m.faults(`[{"delay": "300ms"}]`)
	for round := range 4 {
		a := m.consumer()
		m.place(a)
		sleep(t.Context(), time.Duration(round)*400*time.Millisecond)
		m.kill()
		m.begin()
		m.awaitStatus(a.ID, cluster.ClientRunning)
		pid := m.pid(a)
		m.stop(a)
		sleep(t.Context(), time.Duration(round)*300*time.Millisecond)
		m.kill()
		m.begin()
		m.awaitStatus(a.ID, cluster.ClientComplete)
		m.empty(pid)
	}
	m.stop(m.allocs[0])
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	m.calls()
}

// C13: the plugin is killed while it is held. Its task starts again, and the volume goes.
func TestVolumes_pluginDies(t *testing.T) {
	m := newMachine(t)
	a := m.consumer()
	m.place(a)
	m.awaitStatus(a.ID, cluster.ClientRunning)
	pid := m.pid(a)
	m.faults(`[{"call": "NodeUnpublishVolume", "fail": -1}]`)
	m.stop(m.allocs[0], a)
	m.await("the plugin is held", func() bool { return m.report(m.allocs[0].ID).VolumeHolds.Count() == 1 })
	killed := 0
	lines, err := filepath.Glob("/proc/[0-9]*/exe")
	must.NoError(t, err)
	for _, line := range lines {
		if to, err := os.Readlink(line); err == nil && to == m.csi {
			number, err := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			must.NoError(t, err)
			must.NoError(t, syscall.Kill(number, syscall.SIGKILL))
			killed++
		}
	}
	must.Positive(t, killed)
	m.faults("[]")
	m.awaitStatus(a.ID, cluster.ClientComplete)
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	m.calls()
	m.empty(pid)
}

// The record of a volume is damaged while no client runs. The record of the allocation knows the
// volume: the task goes on, and the volume is unmounted after it.
func TestVolumes_damagedRecord(t *testing.T) {
	m := newMachine(t)
	a := m.consumer()
	m.place(a)
	m.awaitStatus(a.ID, cluster.ClientRunning)
	pid := m.pid(a)
	m.kill()
	records, err := filepath.Glob(filepath.Join(m.servers.dir, "data", recordsDir, "volume*"))
	must.NoError(t, err)
	must.SliceLen(t, 1, records)
	must.NoError(t, os.WriteFile(records[0], []byte("damaged"), 0o600))
	m.begin()
	m.await("the volume has a record again", func() bool {
		records, err := filepath.Glob(filepath.Join(m.servers.dir, "data", recordsDir, "volume*"))
		must.NoError(t, err)
		return len(records) == 1 && !strings.HasSuffix(records[0], ".damaged")
	})
	must.NoError(t, syscall.Kill(pid, 0))
	m.stop(a, m.allocs[0])
	m.awaitStatus(a.ID, cluster.ClientComplete)
	m.awaitStatus(m.allocs[0].ID, cluster.ClientComplete)
	m.calls()
	m.empty(pid)
}
