package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A job waits for a driver, and says so. A client registers the driver, runs the task and reports its
// state. All of it is read by the reference's client.
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
		body, err := json.Marshal(wire.NewRegistration(n))
		must.NoError(t, err)
		return ask(t, "PUT", url+"/v1/client/"+string(n.ID)+"/register", string(body))
	}
	for _, n := range nodes {
		must.Eq(t, 200, register(n).code)
	}
	task := api.NewTask("main", "raw_exec").SetConfig("command", "/bin/sleep").Constrain(api.NewConstraint("${attr.kernel.name}", "=", "linux"))
	job := api.NewServiceJob("web", "web", "global", 50).AddTaskGroup(api.NewTaskGroup("web", 1).AddTask(task))
	client := w.client()
	_, _, err := client.Jobs().Register(job, nil)
	must.NoError(t, err)
	registered := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"})
	plan := w.schedule(registered)
	must.SliceEmpty(t, plan.Places)
	e, _, err := client.Evaluations().Info(string(plan.Blocked.ID), nil)
	must.NoError(t, err)
	must.Eq(t, map[string]int{"missing drivers": 1, "${attr.kernel.name} = linux": 1}, e.FailedTGAllocs["web"].ConstraintFiltered)
	must.Eq(t, 2, e.FailedTGAllocs["web"].NodesFiltered)

	nodes[0].Drivers = map[string]*cluster.DriverInfo{"raw_exec": {Detected: true, Healthy: true, HealthDescription: "well"}}
	must.Eq(t, 200, register(nodes[0]).code)
	n, _, err := client.Nodes().Info(string(nodeID(1)), nil)
	must.NoError(t, err)
	must.True(t, n.Drivers["raw_exec"].Healthy)
	stubs, _, err := client.Nodes().List(nil) // the newest first
	must.NoError(t, err)
	must.Eq(t, "well", stubs[1].Drivers["raw_exec"].HealthDescription)
	plan = w.schedule(registered)
	must.Len(t, 1, plan.Places)
	must.Eq(t, nodeID(1), plan.Places[0].NodeID)

	report := fmt.Sprintf(`{"Allocs":[{"ID":%q,"ClientStatus":"running","TaskStates":{"main":{"State":"running","Restarts":1,`+
		`"StartedAt":"2026-11-20T23:02:20Z","Events":[{"Type":"Started","Time":7,"Message":"Task started by client"}]},"other":{"State":"dead"}}}]}`, plan.Places[0].ID)
	must.Eq(t, 200, ask(t, "PUT", url+"/v1/client/"+string(nodeID(1))+"/allocations", report).code)
	a, _, err := client.Allocations().Info(string(plan.Places[0].ID), nil)
	must.NoError(t, err)
	must.MapLen(t, 1, a.TaskStates)
	must.Eq(t, 1, a.TaskStates["main"].Restarts)
	must.Eq(t, "Task started by client", a.TaskStates["main"].Events[0].DisplayMessage)
	must.Eq(t, "raw_exec", a.Job.TaskGroups[0].Tasks[0].Driver)

	refused := ask(t, "PUT", url+"/v1/client/"+string(nodeID(1))+"/register", `{"Node":{"SecretID":"`+secretOf(nodeID(1))+`","Drivers":{"raw_exec":null}}}`)
	must.Eq(t, 400, refused.code)
	must.Eq(t, `driver "raw_exec" is missing`, refused.body)
}

// A registration may demand that the job has not changed since it was read.
func TestReferenceClient_EnforceIndex(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	_, _, err := jobs.EnforceRegister(newJob(1, 100), 7, nil)
	must.ErrorContains(t, err, "(Enforcing job modify index 7: job does not exist)")
	first, _, err := jobs.EnforceRegister(newJob(1, 100), 0, nil)
	must.NoError(t, err)
	_, _, err = jobs.EnforceRegister(newJob(1, 100), 0, nil)
	must.ErrorContains(t, err, "(Enforcing job modify index 0: job already exists)")
	_, _, err = jobs.EnforceRegister(newJob(2, 100), first.JobModifyIndex, nil)
	must.NoError(t, err)
	_, _, err = jobs.EnforceRegister(newJob(3, 100), first.JobModifyIndex, nil)
	must.ErrorContains(t, err, fmt.Sprintf("(Enforcing job modify index %d: job exists with conflicting job modify index: ", first.JobModifyIndex))

	refused := ask(t, http.MethodPut, w.serve(httpapi.Options{}).URL+"/v1/jobs", `{"Job":{"ID":"web","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]},"EnforceIndex":true}`)
	must.Eq(t, http.StatusConflict, refused.code)
	must.Eq(t, 1, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Version)
}
