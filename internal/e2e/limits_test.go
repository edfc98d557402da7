package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A task with cores runs on cores of its own and may use memory up to memory_max. A job that needs its core waits
// with this reason, and gets it when the task has ended.
//
//race:skip its programs do not have the detector
func TestNode_coresAndMemory(t *testing.T) {
	t.Parallel()
	s := startSite(t, 1, true)
	var node *api.Node
	s.await("a node with raw_exec", func() bool {
		nodes, _, err := s.api.Nodes().List(nil)
		if err != nil || len(nodes) != 1 || nodes[0].Drivers["raw_exec"] == nil || !nodes[0].Drivers["raw_exec"].Healthy {
			return false
		}
		node, _, err = s.api.Nodes().Info(nodes[0].ID, nil)
		return err == nil
	})
	cores := len(node.NodeResources.Cpu.ReservableCpuCores)
	if cores == 0 {
		t.Skip("needs a cpuset controller")
	}
	job := func(id string, cores int) {
		j := s.service(id, 1)
		j.TaskGroups[0].Tasks = j.TaskGroups[0].Tasks[:1]
		task := j.TaskGroups[0].Tasks[0]
		task.Name, task.Config = "main", map[string]any{"command": "/bin/sleep", "args": []string{"600"}}
		task.Resources = &api.Resources{Cores: &cores, MemoryMB: new(32), MemoryMaxMB: new(48)}
		registered, _, err := s.api.Jobs().Register(j, nil)
		must.NoError(t, err)
		must.Eq(t, "", registered.Warnings)
	}
	job("own", 1)
	alloc := s.runningTask("own")
	code, out, _, err := s.run(alloc, false, strings.NewReader(""), nil, "/bin/sh", "-c",
		"echo $NOMAD_CPU_CORES $NOMAD_CPU_LIMIT $NOMAD_MEMORY_LIMIT $NOMAD_MEMORY_MAX_LIMIT; sed -n 's/Cpus_allowed_list:.//p' /proc/self/status; cat /proc/self/cgroup")
	must.NoError(t, err)
	must.Zero(t, code)
	lines := strings.Split(out, "\n")
	core := strings.Fields(lines[0])[0]
	own, err := cluster.ParseCores(core)
	must.NoError(t, err)
	must.Len(t, 1, own)
	must.Eq(t, core+" 1000 32 48", lines[0])
	must.Eq(t, core, lines[1], must.Sprint("the task runs on its core"))
	limited := false
	for _, line := range lines[2:] {
		_, where, _ := strings.Cut(line, ":")
		controllers, path, _ := strings.Cut(where, ":")
		for _, file := range []string{filepath.Join("/sys/fs/cgroup", controllers, path, "memory.limit_in_bytes"), filepath.Join("/sys/fs/cgroup", path, "memory.max")} {
			if text, err := os.ReadFile(file); err == nil && strings.TrimSpace(string(text)) == strconv.Itoa(48<<20) {
				limited = true
			}
		}
	}
	must.True(t, limited, must.Sprint("no group with the limit: ", out))

	job("all", cores)
	s.await("a shortage of cores", func() bool {
		evals, _, err := s.api.Jobs().Evaluations("all", nil)
		if err != nil {
			return false
		}
		for _, e := range evals {
			if e.Status == "blocked" && e.FailedTGAllocs["g"] != nil && e.FailedTGAllocs["g"].DimensionExhausted["cores"] == 1 {
				return true
			}
		}
		return false
	})
	_, _, err = s.api.Jobs().Deregister("own", false, nil)
	must.NoError(t, err)
	s.runningTask("all")
	s.stopJob("all")
	s.await("the end of all tasks", func() bool { return len(s.ofTasks()) == 0 })
}

// The client stops work that runs for longer than its group permits. It has failed and leaves no process, and its
// group's policy decides about a replacement.
//
//race:skip its programs do not have the detector
func TestNode_maxRunDuration(t *testing.T) {
	t.Parallel()
	s := startSite(t, 1, true)
	job := s.service("long", 1)
	job.Type = new("batch")
	group := job.TaskGroups[0]
	group.Tasks, group.Migrate = group.Tasks[:1], nil
	group.MaxRunDuration = new(2 * time.Second)
	group.ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Interval: new(time.Hour), Unlimited: new(false)}
	group.Tasks[0].Name, group.Tasks[0].Config = "main", map[string]any{"command": "/bin/sleep", "args": []string{"600"}}
	registered, _, err := s.api.Jobs().Register(job, nil)
	must.NoError(t, err)
	must.Eq(t, "", registered.Warnings)
	var stub *api.AllocationListStub
	s.await("the failure", func() bool {
		list := s.allocs("long")
		if len(list) != 1 || list[0].ClientStatus != "failed" {
			return false
		}
		stub = list[0]
		return true
	})
	must.Eq(t, "the allocation has run for its max_run_duration of 2s", stub.ClientDescription)
	state := stub.TaskStates["main"]
	must.GreaterEq(t, 2*time.Second, state.FinishedAt.Sub(state.StartedAt))
	s.await("the end of all processes", func() bool { return len(s.ofTasks()) == 0 })
}
