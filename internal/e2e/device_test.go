package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/internal/programs"
)

// The task locks the file that is its device, and notes when it has it and when it leaves it. A task that
// finds the file locked notes a clash.
const locks = `j=%[1]s/lock; exec 9<>"$FILES_LOCK"; flock -n 9 || { echo "clash $NOMAD_JOB_ID" >>$j; exec sleep 1000; }
trap 'sleep 1 9>&-; echo "left $NOMAD_JOB_ID" >>$j; exit 0' TERM; echo "got $NOMAD_JOB_ID" >>$j; while :; do sleep 600 9>&- & wait; done`

// N8: two jobs compete for the only device of a node, over a drain and the return of the node. Its client is
// killed during each stop. The device never has two tasks, by the lock that each of them takes.
//
//race:skip its programs do not have the detector
func TestNode_twoJobsAndOneDevice(t *testing.T) {
	t.Parallel()
	s := startSite(t, 0, true)
	plugins := t.TempDir()
	program, device := filepath.Join(plugins, "files"), filepath.Join(t.TempDir(), "lock")
	programs.Build(t, "../../examples/device", program)
	must.NoError(t, os.WriteFile(device, nil, 0o600))
	t.Cleanup(func() { killAll(t, program) })
	node := s.newNode("n1", true, `
plugin_dir = "`+plugins+`"
plugin "files" {
  config {
    device {
      name  = "lock"
      paths = ["`+device+`"]
    }
  }
}`)
	s.begin(node)
	var id string
	s.await("the device", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			return false
		}
		id = nodes[0].ID
		n, _, err := s.api.Nodes().Info(id, nil)
		return err == nil && len(n.NodeResources.Devices) == 1 && n.NodeResources.Devices[0].Instances[0].Healthy && n.Drivers["raw_exec"].Healthy
	})
	// noted is what the tasks have noted.
	noted := func() []string {
		text, _ := os.ReadFile(filepath.Join(s.journal, "lock")) // it does not exist before the first start
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	t.Cleanup(func() { t.Logf("the tasks noted %q", noted()) })
	await := func(lines int) (last string) {
		t.Helper()
		s.await(strconv.Itoa(lines)+" notes of the tasks", func() bool { return len(noted()) >= lines })
		last = noted()[lines-1]
		if job, got := strings.CutPrefix(last, "got "); got {
			s.await("the start of "+job, func() bool { return s.knownToRun(job) })
		}
		return last
	}
	killed := func() {
		t.Helper()
		s.pause(300 * time.Millisecond) // the task is in its last second
		s.crash(node)
		s.begin(node)
	}
	s.registerLock("one")
	s.await("the first task", func() bool { return noted()[0] == "got one" && s.knownToRun("one") })
	s.registerLock("two")
	_, err := s.api.Nodes().UpdateDrainOpts(id, &api.DrainOptions{DrainSpec: &api.DrainSpec{Deadline: 5 * time.Minute}}, nil)
	must.NoError(t, err)
	killed()
	s.await("the end of the drain", func() bool {
		n, _, err := s.api.Nodes().Info(id, nil)
		return err == nil && n.DrainStrategy == nil
	})
	must.Eq(t, []string{"got one", "left one"}, noted(), must.Sprint("the drain is over when the device is free"))
	_, err = s.api.Nodes().ToggleEligibility(id, true, nil)
	must.NoError(t, err)

	first := strings.TrimPrefix(await(3), "got ")
	_, _, err = s.api.Jobs().Deregister(first, false, nil)
	must.NoError(t, err)
	killed()
	second := strings.TrimPrefix(await(5), "got ")
	must.NotEq(t, first, second)
	_, _, err = s.api.Jobs().Deregister(second, false, nil)
	must.NoError(t, err)
	await(6)
	must.Eq(t, []string{"got one", "left one", "got " + first, "left " + first, "got " + second, "left " + second}, noted())
	s.await("the end of all processes of tasks", func() bool { return len(s.ofTasks()) == 0 })
	s.end(node)
}

// registerLock registers a service of one task that needs the device.
func (s *site) registerLock(id string) {
	s.t.Helper()
	kind, cpu, memory, timeout, one := "service", 100, 64, grace, uint64(1)
	job := &api.Job{ID: &id, Name: &id, Type: &kind, Datacenters: []string{"dc1"}}
	task := api.NewTask("main", "raw_exec").Require(&api.Resources{CPU: &cpu, MemoryMB: &memory, Devices: []*api.RequestedDevice{{Name: "local/file/lock", Count: &one}}})
	task.KillTimeout, task.KillSignal, task.Config = &timeout, "SIGTERM", s.script(locks)
	_, _, err := s.api.Jobs().Register(job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task)), nil)
	must.NoError(s.t, err)
}

func killAll(t *testing.T, program string) {
	for _, pid := range pids(t) {
		if exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")); err == nil && strings.TrimSuffix(exe, " (deleted)") == program {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
