package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A job waits for a driver, and its evaluation has the reason. A client registers the driver, runs the task
// and reports its state. All of it is read by the reference's client.
func TestReferenceClient_Drivers(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serve(httpapi.Options{}).URL
	nodes := []*cluster.Node{
		{ID: nodeID(1), Attributes: map[string]string{"kernel.name": "linux"}},
		{ID: nodeID(2), Attributes: map[string]string{"kernel.name": "windows"}},
	}
	register := func(n *cluster.Node) answer {
		n.SecretID, n.Name, n.Datacenter, n.Status = secretOf(n.ID), string(n.ID[:8]), "dc1", cluster.NodeReady
		n.Resources = cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000}
		n.ReportsDrivers = true
		body := result.Of(json.Marshal(wire.NewRegistration(n))).OK(t)
		return request(t, "PUT", url+"/v1/client/"+string(n.ID)+"/register", string(body))
	}
	for _, n := range nodes {
		must.Eq(t, 200, register(n).code)
	}
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/sleep").Constrain(api.NewConstraint("${attr.kernel.name}", "=", "linux"))
	job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("web", 1).AddTask(task))
	client := w.client()
	result.Read(client.Jobs().Register(job, nil)).OK(t)
	registered := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	plan := w.schedule(registered)
	must.SliceEmpty(t, plan.Places)
	e := result.Read(client.Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t)
	must.Eq(t, map[string]int{"missing drivers: raw_exec": 1, "${attr.kernel.name} = linux": 1}, e.FailedTGAllocs["web"].ConstraintFiltered)
	must.Eq(t, 2, e.FailedTGAllocs["web"].NodesFiltered)

	nodes[0].Drivers = map[string]*cluster.DriverInfo{"raw_exec": {Detected: true, Healthy: true, HealthDescription: "well"}}
	must.Eq(t, 200, register(nodes[0]).code)
	n := result.Read(client.Nodes().Info(string(nodeID(1)), nil)).OK(t)
	must.True(t, n.Drivers["raw_exec"].Healthy)
	stubs, _, err := client.Nodes().List(nil) // the newest first
	must.NoError(t, err)
	must.Eq(t, "well", stubs[1].Drivers["raw_exec"].HealthDescription)
	plan = w.schedule(registered)
	must.Len(t, 1, plan.Places)
	must.Eq(t, nodeID(1), plan.Places[0].NodeID)

	report := fmt.Sprintf(`{"Allocs":[{"ID":%q,"ClientStatus":"running","TaskStates":{"main":{"State":"running","Restarts":1,`+
		`"StartedAt":"2026-11-20T23:02:20Z","Events":[{"Type":"Started","Time":7,"Message":"Task started by client"}]},"other":{"State":"dead"}}}]}`, plan.Places[0].ID)
	must.Eq(t, 200, request(t, "PUT", url+"/v1/client/"+string(nodeID(1))+"/allocations", report).code)
	a := result.Read(client.Allocations().Info(string(plan.Places[0].ID), nil)).OK(t)
	must.MapLen(t, 1, a.TaskStates)
	must.Eq(t, 1, a.TaskStates["main"].Restarts)
	must.Eq(t, "Task started by client", a.TaskStates["main"].Events[0].DisplayMessage)
	must.Eq(t, "raw_exec", a.Job.TaskGroups[0].Tasks[0].Driver)

	refused := request(t, "PUT", url+"/v1/client/"+string(nodeID(1))+"/register", `{"Node":{"SecretID":"`+secretOf(nodeID(1))+`","Drivers":{"raw_exec":null}}}`)
	must.Eq(t, 400, refused.code)
	must.Eq(t, `driver "raw_exec" is missing`, refused.body)
}

// A job with every field, a node with drivers and an allocation with task states, as clients read them.
func TestDrivers_golden(t *testing.T) {
	t.Parallel()
	w := newFixture(t).atNoon()
	node := &cluster.Node{
		ID: nodeID(1), SecretID: secretOf(nodeID(1)), Name: "n1", Datacenter: "dc1", Status: cluster.NodeReady, MaxKillTimeout: time.Minute,
		Attributes: map[string]string{"kernel.name": "linux"}, Resources: cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000},
		Drivers: map[string]*cluster.DriverInfo{
			"raw_exec": {Attributes: map[string]string{"driver.raw_exec": "1"}, Detected: true, Healthy: true, HealthDescription: "Healthy", UpdateTime: noon},
			"docker":   {HealthDescription: "no daemon answers", UpdateTime: noon},
		},
	}
	w.must(&shims.NodeRegister{At: noon, Node: node})
	j := w.job("web", cluster.JobService, 1).Copy()
	j.Meta = map[string]string{"owner": "ops"}
	j.Constraints = []cluster.Constraint{{LTarget: "${attr.kernel.name}", Operand: "=", RTarget: "linux"}}
	g := j.TaskGroups[0]
	g.Disconnect.StopOnClientAfter = time.Minute
	g.RestartPolicy = &cluster.RestartPolicy{Attempts: 1, Interval: time.Minute, Delay: time.Second, Mode: cluster.RestartDelay}
	g.Tasks[0].Driver, g.Tasks[0].User, g.Tasks[0].Leader, g.Tasks[0].KillSignal = "raw_exec", "www", true, "SIGTERM"
	g.Tasks[0].Config, g.Tasks[0].Env = json.RawMessage(`{"args":["60"],"command":"/bin/sleep"}`), map[string]string{"PORT": "80"}
	g.Tasks[0].LogConfig = &cluster.LogConfig{MaxFiles: 2, MaxFileSizeMB: 5}
	g.Tasks = append(g.Tasks, &cluster.Task{Name: "proxy", Driver: "raw_exec", Lifecycle: &cluster.Lifecycle{Hook: cluster.HookPrestart, Sidecar: true}})
	w.place(1, w.Job(j), nodeID(1))
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: allocID(1), Node: nodeID(1), ClientStatus: cluster.ClientRunning, At: noon,
		TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{
			{Name: "main", State: cluster.TaskRunning, Restarts: 1, StartedAt: noon, LastRestart: noon,
				Waiting: &cluster.TaskWait{For: cluster.WaitGrace, Until: noon.Add(time.Second), Detail: "pid 7"},
				Events:  []cluster.TaskEvent{{Type: "Started", Time: noon, Message: "Task started by client", Details: map[string]string{"pid": "7"}}}},
			{Name: "proxy", State: cluster.TaskDead, Failed: true, StartedAt: noon, FinishedAt: noon},
		}},
	}}})
	url := w.serve(httpapi.Options{}).URL
	golden(t, "driver-job.json", request(t, "GET", url+"/v1/job/web?pretty", ""))
	golden(t, "driver-node.json", request(t, "GET", url+"/v1/node/"+string(nodeID(1))+"?pretty", ""))
	golden(t, "driver-nodes.json", request(t, "GET", url+"/v1/nodes?pretty", ""))
	golden(t, "driver-alloc.json", request(t, "GET", url+"/v1/allocation/"+string(allocID(1))+"?pretty", ""))
}

// The explanation of a drain names what the tasks of a stopping allocation wait for.
func TestDrain_waitsOfTasks(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: -1})
	w.mark(1, cluster.MarkForced)
	w.stop(1)
	url := w.serve(httpapi.Options{}).URL + "/v1/node/" + string(nodeID(1)) + "/drain"
	must.MapEmpty(t, askFor[wire.NodeDrain](t, url).Allocs[0].Waiting)
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Alloc: allocID(1), Node: nodeID(1), ClientStatus: cluster.ClientRunning, At: w.Now(),
		TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{
			{Name: "main", State: cluster.TaskRunning, Waiting: &cluster.TaskWait{For: cluster.WaitProcess, Detail: "pid 7 in state D"}},
		}},
	}}})
	must.Eq(t, map[string]*wire.TaskWait{"main": {For: "process", Detail: "pid 7 in state D"}}, askFor[wire.NodeDrain](t, url).Allocs[0].Waiting)
}

// A registration may demand that the job has not changed since it was read.
func TestReferenceClient_EnforceIndex(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	_, _, err := jobs.EnforceRegister(newJob(1, 100), 7, nil)
	must.ErrorContains(t, err, "(Enforcing job modify index 7: job does not exist)")
	first := result.Read(jobs.EnforceRegister(newJob(1, 100), 0, nil)).OK(t)
	_, _, err = jobs.EnforceRegister(newJob(1, 100), 0, nil)
	must.ErrorContains(t, err, "(Enforcing job modify index 0: job already exists)")
	result.Read(jobs.EnforceRegister(newJob(2, 100), first.JobModifyIndex, nil)).OK(t)
	_, _, err = jobs.EnforceRegister(newJob(3, 100), first.JobModifyIndex, nil)
	must.ErrorContains(t, err, fmt.Sprintf("(Enforcing job modify index %d: job exists with conflicting job modify index: ", first.JobModifyIndex))

	refused := request(t, http.MethodPut, w.serve(httpapi.Options{}).URL+"/v1/jobs", `{"Job":{"ID":"web","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]},"EnforceIndex":true}`)
	must.Eq(t, http.StatusConflict, refused.code)
	must.Eq(t, 1, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Version)
}

// A job that names variables which no node has gets warnings, waits, and is placed when a node has them. Bug: its
// tasks failed until their slots were given up.
func TestReferenceClient_unknownVariables(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serve(httpapi.Options{}).URL
	register := func(attributes, meta map[string]string) {
		n := &cluster.Node{
			ID: nodeID(1), SecretID: secretOf(nodeID(1)), Name: "n1", Datacenter: "dc1", Status: cluster.NodeReady, ReportsDrivers: true,
			Resources: cluster.Resources{CPU: 4000, MemoryMB: 4000, DiskMB: 10_000}, Attributes: attributes, Meta: meta,
			Drivers: map[string]*cluster.DriverInfo{"raw_exec": {Detected: true, Healthy: true}},
		}
		body := result.Of(json.Marshal(wire.NewRegistration(n))).OK(t)
		must.Eq(t, 200, request(t, "PUT", url+"/v1/client/"+string(n.ID)+"/register", string(body)).code)
	}
	register(map[string]string{"kernel.name": "linux"}, nil)
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/${attr.shell}").Constrain(api.NewConstraint("${meta.rack}", "regexp", "r.*")).
		Constrain(api.NewConstraint("${meta.none}", "is_not_set", "")).Constrain(api.NewConstraint("${attr.kernel.name}", "=", "linux"))
	job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("web", 1).AddTask(task))
	jobs := w.client().Jobs()
	want := `group "web": task "main": constraint "${meta.rack} regexp r.*": no node has ${meta.rack} now, so no node can run its tasks
group "web": no node has the variable ${attr.shell} now, so no node can run its tasks`
	must.Eq(t, want, result.Read(jobs.Validate(job, nil)).OK(t).Warnings)
	must.Eq(t, want, result.Read(jobs.Plan(job, false, nil)).OK(t).Warnings)
	must.Eq(t, want, result.Read(jobs.Register(job, nil)).OK(t).Warnings)
	registered := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.SliceEmpty(t, w.schedule(registered).Places)
	register(map[string]string{"kernel.name": "linux"}, map[string]string{"rack": "r1"})
	plan := w.schedule(registered)
	must.SliceEmpty(t, plan.Places)
	e := result.Read(w.client().Evaluations().Info(string(plan.Blocked.ID), nil)).OK(t)
	must.Eq(t, map[string]int{"missing variable ${attr.shell}": 1}, e.FailedTGAllocs["web"].ConstraintFiltered)
	register(map[string]string{"kernel.name": "linux", "shell": "sh"}, map[string]string{"rack": "r1"})
	must.Len(t, 1, w.schedule(registered).Places)
	must.Eq(t, "", result.Read(jobs.Register(job, nil)).OK(t).Warnings)
}

// A job file names drivers. While the servers of a cluster are upgraded, its registration keeps what the
// older servers would keep, and its answer has a warning.
func TestReferenceClient_DriversBeforeTheirVersion(t *testing.T) {
	t.Parallel()
	w := newOldFixture(t)
	w.serve(httpapi.Options{})
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/sleep").Constrain(api.NewConstraint("${attr.kernel.name}", "=", "linux"))
	job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("web", 1).AddTask(task))
	answer := result.Read(w.client().Jobs().Register(job, nil)).OK(t)
	must.StrContains(t, answer.Warnings, "the cluster has version 1 until all its servers are upgraded")
	kept := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	must.Eq(t, cluster.MinVersion, kept.NeededVersion())
	must.Eq(t, "main", kept.TaskGroups[0].Tasks[0].Name)
}

// A constraint that the servers cannot read is refused before it is proposed.
func TestDrivers_unreadableConstraints(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL
	for right, want := range map[string]string{
		"(":       "missing closing )",
		".{1000}": "use smaller repetitions",
	} {
		job := `{"Job":{"ID":"web","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t","Constraints":[{"LTarget":"${attr.x}","Operand":"regexp","RTarget":"` + right + `"}]}]}]}}`
		got := request(t, "PUT", url+"/v1/jobs", job)
		must.Eq(t, 400, got.code)
		must.StrContains(t, got.body, want)
	}
}
