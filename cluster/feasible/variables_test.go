package feasible_test

import (
	"encoding/json"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/feasible"
)

// A node without a variable of a task's text does not get the task. Bug: the task failed to start there, until
// the scheduler gave up its slot.
func TestDemands_variables(t *testing.T) {
	t.Parallel()
	for text, missing := range map[string]string{
		"${attr.kernel.name} $${attr.none}":              "",
		`${attr.driver.raw_exec.version}${meta["rack"]}`: "",
		"${attr.driver.raw_exec}${driver.raw_exec}":      "",
		"${node.region}${node.unique.id}${node.class}":   "",
		"${NOMAD_ALLOC_DIR}${env.NOMAD_DC}":              "",
		"${NOMAD_META_a_b}${NOMAD_META_A_B}":             "",
		"${NOMAD_CPU_LIMIT}":                             "",
		"${NOMAD_MEMORY_LIMIT}":                          "NOMAD_MEMORY_LIMIT",
		"${NOMAD_PARENT_CGROUP}":                         "attr.unique.cgroup.parent",
		"${attr.none}":                                   "attr.none",
		"a ${ meta.none } ${attr.none}":                  "attr.none",
		"${driver.docker}":                               "driver.docker",
		"${node.unique.nme}":                             "node.unique.nme",
		"${NOMAD_ALLOC_IDX}":                             "NOMAD_ALLOC_IDX",
		"${env.HOME}":                                    "env.HOME",
		"${NOMAD_META_c}":                                "NOMAD_META_c",
		"${CSI_ENDPOINT}":                                "CSI_ENDPOINT",
		"${attr.none":                                    "",
	} {
		config, err := json.Marshal(map[string]any{"args": []any{1, "x", text}, "command": "/bin/sh"})
		must.NoError(t, err)
		for place, task := range map[string]*cluster.Task{
			"environment": {Env: map[string]string{"A": text}},
			"user":        {User: text},
			"config":      {Config: config},
		} {
			task.Driver, task.Meta, task.Resources = "raw_exec", map[string]string{"a-b": "1"}, cluster.Resources{CPU: 1}
			job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Tasks: []*cluster.Task{task}}}}
			want := ""
			if missing != "" {
				want = "missing variable ${" + missing + "}"
			}
			demands := feasible.Of(job).Group(job.TaskGroups[0])
			must.EqOp(t, want, demands.Refusal(node()), must.Sprint(place, text))
			must.EqOp(t, "", demands.Unsatisfied(node()), must.Sprint("what runs stays"))
		}
	}
}

// The variables of ports are those of the group's ports and of its tasks.
func TestVariables_ofPorts(t *testing.T) {
	t.Parallel()
	web := &cluster.Task{Name: "web-1", User: "${NOMAD_PORT_http}${NOMAD_HOST_ADDR_http}${NOMAD_ALLOC_IP_own_1}${NOMAD_PORT_side_admin}"}
	side := &cluster.Task{Name: "side", User: "${NOMAD_IP_admin}${NOMAD_ADDR_web_1_own_1}${NOMAD_PORT_own_1}${NOMAD_HOST_PORT_web_1_own_1}${NOMAD_PORT_http2}"}
	group := &cluster.TaskGroup{Ports: []cluster.PortRequest{{Label: "http"}}, Tasks: []*cluster.Task{web, side}}
	web.Ports, side.Ports = []cluster.PortRequest{{Label: "own-1"}}, []cluster.PortRequest{{Label: "admin"}}
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{group}}
	must.Eq(t, []string{"NOMAD_HOST_PORT_web_1_own_1", "NOMAD_PORT_http2", "NOMAD_PORT_own_1"}, needed(job, group))
}

// A config may name the job's environment, the environment itself may not. Only the plugin of a device has the
// names of the device's variables.
func TestVariables_ofTheTask(t *testing.T) {
	t.Parallel()
	task := &cluster.Task{Env: map[string]string{"PORT": "80", "A": "${PORT}"}, User: "${PORT}", Config: json.RawMessage(`{"${PORT}": "${env[\"PORT\"]} ${GPU}"}`)}
	job := &cluster.Job{TaskGroups: []*cluster.TaskGroup{{Tasks: []*cluster.Task{task, nil}}}}
	must.Eq(t, []string{"GPU", "PORT"}, needed(job, job.TaskGroups[0]))
	task.Devices = []cluster.DeviceRequest{{Name: "gpu"}}
	delete(task.Env, "A")
	must.SliceEmpty(t, needed(job, job.TaskGroups[0]))
	task.Env["A"] = "${node.none}"
	must.Eq(t, []string{"node.none"}, needed(job, job.TaskGroups[0]))
}

func needed(j *cluster.Job, g *cluster.TaskGroup) []string {
	names, _ := feasible.Variables(j, g)
	return names
}
