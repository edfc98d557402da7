package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client/mounts"
)

// The task counts its starts in a file of its volume.
const counts = `v="$NOMAD_TASK_DIR/data"; echo start >>"$v/starts"; trap 'sleep 1; echo stop >>"$v/starts"; exit 0' TERM; while :; do sleep 0.05; done`

// A node with a volume is drained by force, while its client is killed: the volume is unmounted after its
// task, the storage plugin leaves last, and the drain is complete when nothing is mounted. When the node
// returns, the task finds its data.
func TestNode_drainedWithAVolume(t *testing.T) {
	t.Parallel()
	drainWithAVolume(t, api.CSIPluginTypeNode)
}

// The same with a volume that a controller attaches. The controller leaves with the node, and only after it
// has detached the volume. The storage plugin refuses each call that is out of order, and there is none.
func TestNode_drainedWithAnAttachedVolume(t *testing.T) {
	t.Parallel()
	calls := drainWithAVolume(t, api.CSIPluginTypeMonolith)
	var order []string
	for _, c := range calls {
		must.False(t, c.Verdict == "out of order" || c.Verdict == "in flight", must.Sprintf("%+v", c))
		if c.Code == "OK" && strings.HasPrefix(c.Call, "Controller") {
			order = append(order, c.Call)
		}
	}
	attach, detach := "ControllerPublishVolume", "ControllerUnpublishVolume"
	must.Eq(t, []string{attach, detach, attach, detach}, slices.Compact(order))
}

// strictCall is a line of the log of the storage plugin.
type strictCall struct{ Call, Verdict, Code, Error string }

// drainWithAVolume drains a node with a volume, whose storage plugin has a type. It returns the calls of the
// plugin.
func drainWithAVolume(t *testing.T, kind api.CSIPluginType) (calls []strictCall) {
	t.Helper()
	s := startSite(t, 0, true)
	if err := os.MkdirAll(filepath.Join(s.dir, "disks"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "csi")
	command(t, "..", "go", "build", "-buildvcs=false", "-o", program, "./examples/csi")
	t.Cleanup(func() { killAll(t, program) })
	node := s.newNode("n1", true, "")
	mounted := func() []string {
		table, err := mounts.Read()
		must.NoError(t, err)
		return table.Below(node.data)
	}
	s.begin(node)
	var id string
	s.await("the driver", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false
		}
		id = nodes[0].ID
		n, _, err := s.api.Nodes().Info(id, nil)
		return err == nil && n.Drivers["raw_exec"] != nil && n.Drivers["raw_exec"].Healthy
	})

	args := []string{"-root", filepath.Join(s.dir, "disks"), "-node-id", "n1", "-create", "data"}
	strict := filepath.Join(s.dir, "calls")
	if kind != api.CSIPluginTypeNode { // a node demands that a controller attaches the volume before
		args = append(args, "-strict", strict)
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
	starts := func() string {
		for _, point := range mounted() {
			if strings.Contains(point, "/per-alloc/") {
				text, _ := os.ReadFile(filepath.Join(point, "starts")) // it may be unmounted meanwhile
				return string(text)
			}
		}
		return ""
	}
	s.await("the task with its volume", func() bool { return starts() == "start\n" })

	_, err = s.api.Nodes().UpdateDrainOpts(id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: -1}}, nil)
	must.NoError(t, err)
	s.pause(300 * time.Millisecond)
	s.crash(node)
	s.begin(node)
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(id, nil)
		return err == nil && n.DrainStrategy == nil
	})
	s.await("the end of all allocations", func() bool {
		for _, a := range append(s.allocs("web"), s.allocs("plugin")...) {
			if a.ClientStatus == "running" || a.ClientStatus == "pending" && a.NodeID == id {
				return false
			}
		}
		return true
	})
	must.SliceEmpty(t, mounted())
	must.SliceEmpty(t, s.ofTasks())
	v, _, err := s.api.CSIVolumes().Info("data", nil)
	must.NoError(t, err)
	must.Zero(t, len(v.ReadAllocs)+len(v.WriteAllocs), must.Sprint("the claim is free"))

	_, err = s.api.Nodes().ToggleEligibility(id, true, nil)
	must.NoError(t, err)
	s.await("the data of the first task", func() bool { return starts() == "start\nstop\nstart\n" })
	for _, job := range []string{"web", "plugin"} {
		_, _, err := s.api.Jobs().Deregister(job, false, nil)
		must.NoError(t, err)
	}
	s.await("the end of all mounts and tasks", func() bool { return len(mounted()) == 0 && len(s.ofTasks()) == 0 })
	s.await("the claims are free", func() bool {
		v, _, err := s.api.CSIVolumes().Info("data", nil)
		return err == nil && len(v.ReadAllocs)+len(v.WriteAllocs) == 0
	})
	s.end(node)
	if kind == api.CSIPluginTypeNode {
		return nil
	}
	log, err := os.ReadFile(strict)
	must.NoError(t, err)
	for line := range strings.Lines(string(log)) {
		var c strictCall
		must.NoError(t, json.Unmarshal([]byte(line), &c))
		calls = append(calls, c)
	}
	return calls
}

// rawExec is a task of raw_exec.
func rawExec(name string, config map[string]any) *api.Task {
	cpu, memory, timeout := 100, 64, grace
	task := api.NewTask(name, "raw_exec").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory})
	task.KillTimeout, task.KillSignal, task.Config = &timeout, "SIGTERM", config
	return task
}

// registerTask registers a job of one task, with volumes.
func (s *site) registerTask(id, kind string, task *api.Task, volumes map[string]*api.VolumeRequest) {
	s.t.Helper()
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	group := api.NewTaskGroup("g", 1).AddTask(task)
	group.Volumes = volumes
	_, _, err := s.api.Jobs().Register(job.AddTaskGroup(group), nil)
	must.NoError(s.t, err)
}
