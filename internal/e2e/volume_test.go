package e2e

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/mounts"
)

// The task counts its starts and stops in a file of its volume.
const counts = `v="$NOMAD_TASK_DIR/data"; trap 'sleep 1; echo stop >>"$v/starts"; exit 0' TERM; echo start >>"$v/starts"; while :; do sleep 600 & wait; done`

// volumeSite is a site of one node, with a storage plugin and a service of one task that uses a volume.
type volumeSite struct {
	*site
	node *realNode
	id   string // of the node
	// strict is the log of the storage plugin.
	strict string
}

// startVolume starts a site whose storage plugin has a type. A plugin with a controller judges the order of
// the calls. One without cannot: it would demand that a controller has attached the volume.
func startVolume(t *testing.T, kind api.CSIPluginType) *volumeSite {
	t.Helper()
	s := &volumeSite{site: startSite(t, 0, true)}
	if err := os.MkdirAll(filepath.Join(s.dir, "disks"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "csi")
	programs.Build(t, "../../examples/csi", program)
	t.Cleanup(func() { killAll(t, program) })
	s.node = s.newNode("n1", true, "")
	s.begin(s.node)
	s.await("the driver", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false
		}
		s.id = nodes[0].ID
		n, _, err := s.api.Nodes().Info(s.id, nil)
		return err == nil && n.Drivers["raw_exec"] != nil && n.Drivers["raw_exec"].Healthy
	})

	args := []string{"-root", filepath.Join(s.dir, "disks"), "-node-id", "n1", "-create", "data"}
	s.strict = filepath.Join(s.dir, "calls")
	if kind != api.CSIPluginTypeNode {
		args = append(args, "-strict", s.strict)
	}
	plugin := rawExec("plugin", map[string]any{"command": program, "args": args})
	plugin.CSIPluginConfig = &api.TaskCSIPluginConfig{ID: "disks", Type: kind}
	s.registerTask("plugin", "system", plugin, nil)
	s.await("the storage plugin", func() bool {
		p, _, err := s.api.CSIPlugins().Info("disks", nil)
		return err == nil && p.NodesHealthy == 1
	})
	_, _, err := s.api.CSIVolumes().RegisterOpts(&api.CSIVolumeRegisterRequest{Volumes: []*api.CSIVolume{{
		ID: "data", Name: "data", ExternalID: "data", PluginID: "disks",
		RequestedCapabilities: []*api.CSIVolumeCapability{{AccessMode: api.CSIVolumeAccessModeSingleNodeWriter, AttachmentMode: api.CSIVolumeAttachmentModeFilesystem}},
	}}}, nil)
	must.NoError(t, err)

	web := rawExec("web", map[string]any{"command": "/bin/sh", "args": []string{"-c", counts}})
	destination, volume := "local/data", "disk"
	web.VolumeMounts = []*api.VolumeMount{{Volume: &volume, Destination: &destination}}
	s.registerTask("web", "service", web, map[string]*api.VolumeRequest{"disk": {
		Name: "disk", Type: "csi", Source: "data", AccessMode: "single-node-writer", AttachmentMode: "file-system",
	}})
	return s
}

func (s *volumeSite) mounted() []string {
	table, err := mounts.Read()
	must.NoError(s.t, err)
	return table.Below(s.node.data)
}

// starts is what tasks have written to the volume, as the storage plugin keeps it.
func (s *volumeSite) starts() string {
	for _, pattern := range []string{"*/*/starts", "*/*/*/starts"} {
		found, err := filepath.Glob(filepath.Join(s.dir, "disks", pattern))
		must.NoError(s.t, err)
		if len(found) > 0 {
			text, err := os.ReadFile(found[0])
			must.NoError(s.t, err)
			return string(text)
		}
	}
	return ""
}

// drained waits for the end of a drain, and checks that nothing is left: no mount, no process, no claim, no
// allocation that runs.
func (s *volumeSite) drained() {
	s.t.Helper()
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(s.id, nil)
		return err == nil && n.DrainStrategy == nil
	})
	s.await("the end of all allocations", func() bool {
		return !slices.ContainsFunc(append(s.allocs("web"), s.allocs("plugin")...), func(a *api.AllocationListStub) bool {
			return a.ClientStatus == "running" || a.ClientStatus == "pending" && a.NodeID == s.id
		})
	})
	must.SliceEmpty(s.t, s.mounted())
	must.SliceEmpty(s.t, s.ofTasks())
	must.Zero(s.t, s.claims())
}

// claims is how many allocations claim the volume.
func (s *volumeSite) claims() int {
	v, _, err := s.api.CSIVolumes().Info("data", nil)
	must.NoError(s.t, err)
	return len(v.ReadAllocs) + len(v.WriteAllocs)
}

// runs waits until the task runs on its volume and the servers have the report of that. A client that is
// killed earlier may not have recorded the start: the next client destroys the task without its signal, and
// starts it again.
func (s *volumeSite) runs(is func(starts string) bool) {
	s.t.Helper()
	s.await("the task with its volume", func() bool {
		return is(s.starts()) && s.knownToRun("web")
	})
}

// finish stops all jobs and ends the client. Nothing is left.
func (s *volumeSite) finish() {
	s.t.Helper()
	for _, job := range []string{"web", "plugin"} {
		_, _, err := s.api.Jobs().Deregister(job, false, nil)
		must.NoError(s.t, err)
	}
	s.await("the end of all mounts and tasks", func() bool { return len(s.mounted()) == 0 && len(s.ofTasks()) == 0 })
	s.await("the claims are free", func() bool { return s.claims() == 0 })
	s.end(s.node)
}

// A node with a volume is drained by force, while its client is killed: the volume is unmounted after its
// task, the storage plugin leaves last, and the drain is complete when nothing is mounted. When the node
// returns, the task finds its data. Then an operator detaches the volume by force, while the client runs and
// while it does not: the task is stopped with its grace, and its replacement has the volume.
//
//race:skip its programs do not have the detector
func TestNode_drainedWithAVolume(t *testing.T) {
	t.Parallel()
	s := startVolume(t, api.CSIPluginTypeNode)
	notes := "start\n"
	s.runs(func(starts string) bool { return starts == notes })
	_, err := s.api.Nodes().UpdateDrainOpts(s.id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -1}}, nil)
	must.NoError(t, err)
	s.pause(300 * time.Millisecond)
	s.crash(s.node)
	s.begin(s.node)
	s.drained()
	_, err = s.api.Nodes().ToggleEligibility(s.id, true, nil)
	must.NoError(t, err)
	notes += "stop\nstart\n"
	s.runs(func(starts string) bool { return starts == notes })

	for _, away := range []bool{false, true} {
		if away {
			s.crash(s.node)
		}
		_, err := s.api.Raw().Delete("/v1/volume/csi/data/detach?force=true&node="+s.id, nil, nil)
		must.NoError(t, err)
		if away {
			s.begin(s.node)
		}
		notes += "stop\nstart\n"
		s.runs(func(starts string) bool { return starts == notes })
	}
	s.finish()
}

// A node is drained, paced, by deadline and forced, with a volume that a controller attaches, and the client
// is killed at a random moment of the drain, and of each second return. The controller leaves with the node,
// and only after it has detached the volume. The storage plugin refuses each call that is out of order, and
// there is none.
//
//race:skip its programs do not have the detector
func TestNode_drainedWithAnAttachedVolume(t *testing.T) {
	t.Parallel()
	rounds := kills(t)
	s := startVolume(t, api.CSIPluginTypeMonolith)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 21))
	upTo := func(d time.Duration) time.Duration { return time.Duration(random.Int64N(int64(d))) }
	started := func(starts string) bool { return strings.HasSuffix(starts, "start\n") }
	for round := range rounds {
		s.runs(started)
		before := s.starts()
		spec := &api.DrainSpec{Deadline: [...]time.Duration{5 * time.Minute, 500 * time.Millisecond, -1}[round%3]}
		after, pause := upTo(3*time.Second), upTo(time.Second)
		t.Logf("round %d: drained with deadline %s; the client is killed after %s for %s", round, spec.Deadline, after, pause)
		_, err := s.api.Nodes().UpdateDrainOpts(s.id, &api.DrainOptions{DrainSpec: spec}, nil)
		must.NoError(t, err)
		s.pause(after)
		s.crash(s.node)
		s.pause(pause)
		s.begin(s.node)
		s.drained()
		must.EqOp(t, before+"stop\n", s.starts())
		s.inOrder()

		_, err = s.api.Nodes().ToggleEligibility(s.id, true, nil)
		must.NoError(t, err)
		if round%2 == 1 {
			after = upTo(2 * time.Second)
			t.Logf("round %d: the client is killed %s after the return", round, after)
			s.pause(after)
			s.crash(s.node)
			s.begin(s.node)
		}
	}
	s.runs(started)
	s.finish()
	attach, detach := "ControllerPublishVolume", "ControllerUnpublishVolume"
	must.Eq(t, slices.Repeat([]string{attach, detach}, rounds+1), s.inOrder())
}

// strictCall is a line of the log of the storage plugin.
type strictCall struct{ Call, Verdict, Code, Error string }

// inOrder checks that no call of the storage plugin was out of order. It returns those of the controller that
// have succeeded, without repetitions of the same.
func (s *volumeSite) inOrder() (controller []string) {
	s.t.Helper()
	log, err := os.ReadFile(s.strict)
	must.NoError(s.t, err)
	for line := range strings.Lines(string(log)) {
		var c strictCall
		must.NoError(s.t, json.Unmarshal([]byte(line), &c))
		must.False(s.t, c.Verdict == "out of order" || c.Verdict == "in flight", must.Sprintf("%+v", c))
		if c.Code == "OK" && strings.HasPrefix(c.Call, "Controller") {
			controller = append(controller, c.Call)
		}
	}
	return slices.Compact(controller)
}

func rawExec(name string, config map[string]any) *api.Task {
	cpu, memory, timeout := 100, 64, grace
	task := api.NewTask(name, "raw_exec").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
	task.KillTimeout, task.KillSignal, task.Config = &timeout, "SIGTERM", config
	return task
}

func (s *site) registerTask(id, kind string, task *api.Task, volumes map[string]*api.VolumeRequest) {
	s.t.Helper()
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	group := api.NewTaskGroup("g", 1).AddTask(task)
	group.Volumes = volumes
	if kind == "service" {
		one, quick, long := 1, 100*time.Millisecond, time.Minute
		group.Migrate = &api.MigrateStrategy{MaxParallel: &one, MinHealthyTime: &quick, HealthyDeadline: &long}
	}
	_, _, err := s.api.Jobs().Register(job.AddTaskGroup(group), nil)
	must.NoError(s.t, err)
}
