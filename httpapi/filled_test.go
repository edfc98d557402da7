package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// mayBeNil are the pointers of the compatible API's types that the reference leaves nil, too, with the reason.
// Pointers in [api.Job] are here only if the reference's client does not fill them: see checkJob.
var mayBeNil = map[string]string{
	"Job.Periodic":                         "the job is not periodic",
	"Job.ParameterizedJob":                 "the job is not parameterized",
	"Job.Multiregion":                      "the job has one region",
	"Job.Reschedule":                       "the reference merges the block into the groups",
	"Job.Migrate":                          "the reference merges the block into the groups",
	"Job.UI":                               "the job has no such block",
	"Job.VersionTag":                       "the version has no tag",
	"TaskGroup.Update":                     "only services and system jobs have the block",
	"TaskGroup.Migrate":                    "only services have the block",
	"TaskGroup.ReschedulePolicy":           "jobs of every node do not have the block",
	"TaskGroup.Disconnect":                 "the job has no such block",
	"TaskGroup.MaxRunDuration":             "the job has no such limit",
	"TaskGroup.Scaling":                    "the job has no such block",
	"TaskGroup.Consul":                     "the job has no such block",
	"TaskGroup.StopAfterClientDisconnect":  "the API has renamed it",
	"TaskGroup.MaxClientDisconnect":        "the API has renamed it",
	"TaskGroup.PreventRescheduleOnLost":    "the API has renamed it",
	"DisconnectStrategy.StopOnClientAfter": "the client does not stop the group",
	"Task.Lifecycle":                       "a main task",
	"Task.Vault":                           "the job has no such block",
	"Task.Consul":                          "the job has no such block",
	"Task.DispatchPayload":                 "the job has no such block",
	"Task.CSIPluginConfig":                 "the task is no storage plugin",
	"Task.Identity":                        "the servers sign no identities",
	"Task.Schedule":                        "the job has no such block",
	"LogConfig.Enabled":                    "the API has replaced it by Disabled",
	"Resources.NUMA":                       "the job has no such block",

	"Allocation.Job":                            "events of allocations have no job",
	"Allocation.RescheduleTracker":              "the allocation has no failed predecessor",
	"Allocation.NetworkStatus":                  "the allocation has no network of its own",
	"Allocation.DeploymentStatus":               "the client has not reported health",
	"AllocationListStub.AllocatedResources":     "the request has not that parameter",
	"AllocationListStub.RescheduleTracker":      "the allocation has no failed predecessor",
	"AllocationListStub.DeploymentStatus":       "the client has not reported health",
	"DesiredTransition.Migrate":                 "the servers want no such change",
	"DesiredTransition.Reschedule":              "the servers want no such change",
	"DesiredTransition.ForceReschedule":         "the servers want no such change",
	"DesiredTransition.NoShutdownDelay":         "the servers want no such change",
	"DesiredTransition.MigrateDisablePlacement": "the servers want no such change",

	"Node.Resources":                 "the API has replaced it by NodeResources",
	"Node.Reserved":                  "the API has replaced it by ReservedResources",
	"Node.DrainStrategy":             "the node does not drain",
	"Node.LastDrain":                 "the node has never drained",
	"NodeListStub.LastDrain":         "the node has never drained",
	"NodeListStub.NodeResources":     "the request has not that parameter",
	"NodeListStub.ReservedResources": "the request has not that parameter",
	"NodeDevice.Locality":            "the plugin has not reported it",
	"Attribute.FloatVal":             "an attribute has one value",
	"Attribute.IntVal":               "an attribute has one value",
	"Attribute.StringVal":            "an attribute has one value",
	"Attribute.BoolVal":              "an attribute has one value",
	"CSIInfo.ControllerInfo":         "it is no controller",
	"CSIInfo.NodeInfo":               "it mounts no volumes",
	"CSINodeInfo.AccessibleTopology": "the plugin has not reported it",

	"Evaluation.PlanAnnotations": "the request has not that parameter",
	"JobPlanResponse.Diff":       "the request has not that parameter",

	"CSIVolume.RequestedTopologies": "the volume is not created by the servers",
	"CSIVolume.MountOptions":        "the volume has none",
	"CSIVolume.WriteAllocs[]":       "the key is all, see the documentation of the field",

	"Namespace.Capabilities":          "the namespace has no such block",
	"Namespace.NodePoolConfiguration": "the namespace has no such block",
	"Namespace.VaultConfiguration":    "the namespace has no such block",
	"Namespace.ConsulConfiguration":   "the namespace has no such block",
	"NodePool.SchedulerConfiguration": "the pool has no such block",
	"AgentHealthResponse.Client":      "the agent is a server",
}

// fillCheck walks answers, and collects the nil pointers that must not be nil.
type fillCheck struct {
	t    *testing.T
	bad  map[string]bool
	used map[string]bool
	jobs int
}

func newFillCheck(t *testing.T) *fillCheck {
	return &fillCheck{t: t, bad: map[string]bool{}, used: map[string]bool{}}
}

func (c *fillCheck) answer(route string, v any) { c.walk(route, "", reflect.ValueOf(v)) }

// walk walks a value. Field is the "Type.Field" that has it.
func (c *fillCheck) walk(route, field string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			if j, is := v.Interface().(*api.Job); is {
				c.checkJob(route, j)
			}
			c.walk(route, field, v.Elem())
		} else if mayBeNil[field] != "" {
			c.used[field] = true
		} else {
			c.bad[fmt.Sprintf("%s: %s is nil", route, field)] = true
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if of := v.Type().Field(i); of.IsExported() {
				c.walk(route, v.Type().Name()+"."+of.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.walk(route, field+"[]", v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			c.walk(route, field+"[]", v.MapIndex(key))
		}
	}
}

// checkJob compares a job with the form that the reference's client gives it: the client fills what is missing.
func (c *fillCheck) checkJob(route string, j *api.Job) {
	c.t.Helper()
	c.jobs++
	text := result.Of(json.Marshal(j)).OK(c.t)
	filled, same := new(api.Job), new(api.Job)
	must.NoError(c.t, json.Unmarshal(text, filled))
	must.NoError(c.t, json.Unmarshal(text, same))
	filled.Canonicalize()
	must.Eq(c.t, filled, same, must.Sprint(route))
	for _, g := range j.TaskGroups { // an empty block of the job keeps the client from filling the group's
		must.Eq(c.t, *j.Type == api.JobTypeService || *j.Type == api.JobTypeSystem, g.Update != nil, must.Sprint(route))
	}
}

// finish fails for each pointer that is nil, and for each exception that no answer needs.
func (c *fillCheck) finish() {
	c.t.Helper()
	for _, text := range slices.Sorted(maps.Keys(c.bad)) {
		c.t.Error(text)
	}
	for _, field := range slices.Sorted(maps.Keys(mayBeNil)) {
		if !c.used[field] {
			c.t.Errorf("no answer needs the exception %s", field)
		}
	}
	must.Positive(c.t, c.jobs)
}

// minimalJob is the least that a registration may have.
const minimalJob = `{"Job":{"ID":"minimal","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`

// everything fills the fixture with jobs of each type and each origin, and their allocations in every status.
func everything(w *fixture, c *api.Client) {
	w.Helper()
	n := w.State().Node(nodeID(1)).Copy()
	n.Devices = []*cluster.DeviceGroup{gpus("a", "b", "c")}
	n.Devices[0].Attributes = map[string]cluster.DeviceAttribute{
		"memory": {Kind: cluster.AttributeInt, Int: 16, Unit: "GiB"}, "load": {Kind: cluster.AttributeFloat, Float: 1},
		"ecc": {Kind: cluster.AttributeBool}, "model": {Kind: cluster.AttributeText, Text: "x"},
	}
	n.Drivers = map[string]*cluster.DriverInfo{"raw_exec": {Detected: true, Healthy: true}, "mock": {Detected: true, Healthy: true}}
	n.ReportsDrivers = true
	w.must(&shims.NodeRegister{At: w.Now(), Node: n})
	pluginNode(w, 1, allocID(9))

	result.Of(c.CSIVolumes().Register(dataVolume(), nil)).OK(w)
	jobs := []*api.Job{
		volumeJob(), newTyped("batch", api.NewBatchJob("batch", "batch", "global", 50)), newTyped("sysbatch", api.NewSysbatchJob("sysbatch", "sysbatch", "global", 50)),
		newTyped("system", api.NewSystemJob("system", "system", "global", 50)), newTyped("plugin", api.NewSystemJob("plugin", "plugin", "global", 50)),
	}
	plugin := jobs[4].TaskGroups[0].Tasks[0]
	plugin.Lifecycle, plugin.CSIPluginConfig = nil, &api.TaskCSIPluginConfig{ID: "disks", Type: api.CSIPluginTypeMonolith}
	devices := gpuJob(1)
	devices.ID, devices.Name = new("devices"), new("devices")
	devices.TaskGroups[0].Disconnect = &api.DisconnectStrategy{LostAfter: new(time.Hour)}
	sidecar := api.NewTask("sidecar", "raw_exec")
	sidecar.Lifecycle = &api.TaskLifecycle{Hook: "prestart", Sidecar: true}
	devices.TaskGroups[0].AddTask(sidecar)
	for _, j := range append(jobs, devices) {
		if *j.ID == "plugin" || *j.ID == "sysbatch" {
			j.Canonicalize() // as the reference's command sends it
		}
		result.Read(c.Jobs().Register(j, nil)).OK(w)
	}
	for _, body := range []string{minimalJob, `{"Job":{"ID":"stopped","Stop":true,"TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`} {
		registered := request(w, http.MethodPut, w.serve(httpapi.Options{}).URL+"/v1/jobs", body)
		must.Eq(w, http.StatusOK, registered.code, must.Sprint(registered.body))
	}
	// A job of an older server has none of the fields that the servers fill in today.
	w.Index++
	txn := w.FSM.Store().Begin(w.Index)
	must.NoError(w, txn.UpsertJob(&cluster.Job{
		ID: "old", Namespace: "default", Type: cluster.JobService,
		TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t"}}}},
	}))
	txn.Commit()

	for i, id := range []cluster.JobID{"web", "batch", "sysbatch", "system"} {
		w.place(i+1, w.State().Job(cluster.JobKey{Namespace: "default", ID: id}), nodeID(1))
	}
	for i, id := range []cluster.JobID{"minimal", "old"} {
		w.place(i+5, w.State().Job(cluster.JobKey{Namespace: "default", ID: id}), nodeID(3)) // which has no drivers
	}
	w.report(2, cluster.ClientComplete)
	must.Len(w, 1, w.schedule(w.State().Job(cluster.JobKey{Namespace: "default", ID: "devices"})).Places)
	job := w.job("fails", cluster.JobService, 1)
	first := w.schedule(job).Places
	must.Len(w, 1, first)
	w.Report(cluster.ClientFailed, first[0].ID)
	must.Len(w, 1, w.schedule(job).Places)
	w.schedule(w.job("huge", cluster.JobService, 1000))
	w.Job(withCount(w.State().Job(job.Key()), 2)) // the allocations have an older version
	w.drain(nodeID(2), cluster.DrainSpec{Deadline: time.Hour})
}

// newTyped adds a group with one task to a job.
func newTyped(name string, j *api.Job) *api.Job {
	return j.AddTaskGroup(api.NewTaskGroup(name, 1).AddTask(api.NewTask("main", "raw_exec")))
}

// read is a call of the reference's client that reads a route.
type read struct {
	route string
	call  func(*api.Client) (any, error)
}

func of[T any](answer T, _ *api.QueryMeta, err error) (any, error) { return answer, err }

// reads are the calls for each thing that the routes of the compatible API answer with.
func reads(w *fixture) (all []read) {
	add := func(route string, call func(*api.Client) (any, error)) { all = append(all, read{"GET " + route, call}) }
	add("/v1/nodes", func(c *api.Client) (any, error) { return of(c.Nodes().List(nil)) })
	add("/v1/nodes", func(c *api.Client) (any, error) {
		return of(c.Nodes().List(&api.QueryOptions{Params: map[string]string{"os": "true", "resources": "true"}}))
	})
	for n := range w.State().Nodes() {
		add("/v1/node/{id}", func(c *api.Client) (any, error) { return of(c.Nodes().Info(string(n.ID), nil)) })
		add("/v1/node/{id}/allocations", func(c *api.Client) (any, error) { return of(c.Nodes().Allocations(string(n.ID), nil)) })
	}
	add("/v1/jobs", func(c *api.Client) (any, error) { return of(c.Jobs().List(nil)) })
	for j := range w.State().Jobs() {
		id := string(j.ID)
		add("/v1/job/{id}", func(c *api.Client) (any, error) { return of(c.Jobs().Info(id, nil)) })
		add("/v1/job/{id}/allocations", func(c *api.Client) (any, error) { return of(c.Jobs().Allocations(id, true, nil)) })
		add("/v1/job/{id}/evaluations", func(c *api.Client) (any, error) { return of(c.Jobs().Evaluations(id, nil)) })
		add("/v1/job/{id}/scale", func(c *api.Client) (any, error) { return of(c.Jobs().ScaleStatus(id, nil)) })
		add("/v1/job/{id}/summary", func(c *api.Client) (any, error) { return of(c.Jobs().Summary(id, nil)) })
		add("/v1/job/{id}/versions", func(c *api.Client) (any, error) {
			versions, _, meta, err := c.Jobs().Versions(id, false, nil)
			return of(versions, meta, err)
		})
		all = append(all, read{"PUT /v1/job/{id}/plan", func(c *api.Client) (any, error) {
			job, _, err := c.Jobs().Info(id, nil)
			if err != nil {
				return nil, err
			}
			job.Priority = new(60)
			plan, _, err := c.Jobs().Plan(job, true, nil)
			return plan, err
		}})
	}
	add("/v1/allocations", func(c *api.Client) (any, error) { return of(c.Allocations().List(nil)) })
	for a := range w.State().Allocs() {
		add("/v1/allocation/{id}", func(c *api.Client) (any, error) { return of(c.Allocations().Info(string(a.ID), nil)) })
	}
	add("/v1/evaluations", func(c *api.Client) (any, error) { return of(c.Evaluations().List(nil)) })
	for e := range w.State().Evals() {
		add("/v1/evaluation/{id}", func(c *api.Client) (any, error) { return of(c.Evaluations().Info(string(e.ID), nil)) })
		add("/v1/evaluation/{id}/allocations", func(c *api.Client) (any, error) { return of(c.Evaluations().Allocations(string(e.ID), nil)) })
	}
	add("/v1/namespaces", func(c *api.Client) (any, error) { return of(c.Namespaces().List(nil)) })
	add("/v1/node/pools", func(c *api.Client) (any, error) { return of(c.NodePools().List(nil)) })
	add("/v1/services", func(c *api.Client) (any, error) { return of(c.Services().List(nil)) })
	add("/v1/service/{name}", func(c *api.Client) (any, error) { return of(c.Services().Get("web", nil)) })
	add("/v1/volumes", func(c *api.Client) (any, error) { return of(c.CSIVolumes().List(nil)) })
	add("/v1/volume/csi/{id}", func(c *api.Client) (any, error) { return of(c.CSIVolumes().Info("data", nil)) })
	add("/v1/plugins", func(c *api.Client) (any, error) { return of(c.CSIPlugins().List(nil)) })
	add("/v1/plugin/csi/{id}", func(c *api.Client) (any, error) { return of(c.CSIPlugins().Info("disks", nil)) })
	add("/v1/agent/self", func(c *api.Client) (any, error) { return c.Agent().Self() })
	add("/v1/agent/members", func(c *api.Client) (any, error) { return c.Agent().Members() })
	add("/v1/agent/health", func(c *api.Client) (any, error) { return c.Agent().Health() })
	add("/v1/operator/raft/configuration", func(c *api.Client) (any, error) { return c.Operator().RaftGetConfiguration(nil) })
	return all
}

// notTyped are the other routes of the compatible API, with the reason.
var notTyped = []struct{ prefix, why string }{
	{"PUT ", "an answer to a write has no pointers"},
	{"POST ", "the same as PUT"},
	{"DELETE ", "an answer to a write has no pointers"},
	{"GET /v1/client/", "the node answers, and its package has the test"},
	{"GET /v1/agent/pprof/", "a file"},
	{"GET /v1/operator/snapshot", "a file"},
	{"GET /v1/metrics", "numbers by name"},
	{"GET /metrics", "a text"},
	{"GET /v1/status/", "texts"},
	{"GET /v1/regions", "texts"},
	{"GET /v1/job/{id}/deployment", "null or an empty list: there are no deployments"},
	{"GET /v1/job/{id}/submission", "there is none"},
	{"GET /v1/deployments", "an empty list"},
	{"GET /v1/job/{id}/services", "as those of a service"},
	{"GET /v1/allocation/{id}/services", "as those of a service"},
	{"GET /v1/event/stream", "the test follows it"},
	{"GET /v1/drains", "ours"},
	{"GET /v1/drain/{id}", "ours"},
	{"PUT /v1/drains/plan", "ours"},
	{"GET /v1/node/{id}/drain", "ours"},
	{"GET /v1/node/{id}/volumes", "ours"},
}

// The reference's command reads through every pointer that the reference always fills. A pointer that is nil
// in our answer ends the command: "job history" did, because Stable was missing, and "job start", because
// Region was null.
func TestFilled_answers(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	c := w.client()
	everything(w, c)
	check := newFillCheck(t)
	checked := map[string]bool{}
	for _, r := range reads(w) {
		checked[r.route] = true
		answer, err := r.call(c)
		must.NoError(t, err, must.Sprint(r.route))
		check.answer(r.route, answer)
	}
	plan := result.Read(c.Jobs().Plan(volumeJob(), false, nil)).OK(t)
	check.answer("PUT /v1/job/{id}/plan", plan)
	followed(w, check.event)
	check.finish()
	for _, name := range httpapi.RouteNames() {
		reason := slices.ContainsFunc(notTyped, func(n struct{ prefix, why string }) bool { return strings.HasPrefix(name, n.prefix) })
		must.True(t, checked[name] || reason, must.Sprintf("no call of the test reads %s", name))
	}
}

// followed calls f with the events of all rows of the state.
func followed(w *fixture, f func(*api.Event)) {
	w.Helper()
	state, last := w.State(), uint64(0)
	for _, table := range []string{httpapi.TableNodes, httpapi.TableJobs, httpapi.TableEvals, httpapi.TableAllocs} {
		last = max(last, state.TableIndex(table))
	}
	events := w.subscribe(map[api.Topic][]string{api.TopicAll: {"*"}}, 1)
	for at := uint64(0); at < last; {
		select {
		case got := <-events:
			must.NoError(w, got.Err)
			at = got.Index
			for i := range got.Events {
				f(&got.Events[i])
			}
		case <-time.After(time.Minute):
			w.Fatalf("no event of index %d", last)
		}
	}
}

// event checks the row of an event. The methods of [api.Event] do not read fields whose key in a job file
// differs, such as MemoryMB.
func (c *fillCheck) event(e *api.Event) {
	c.t.Helper()
	text := result.Of(json.Marshal(e.Payload)).OK(c.t)
	var row struct {
		Node       *api.Node
		Job        *api.Job
		Evaluation *api.Evaluation
		Allocation *api.Allocation
	}
	must.NoError(c.t, json.Unmarshal(text, &row))
	for topic, one := range map[api.Topic]any{
		api.TopicNode: row.Node, api.TopicJob: row.Job, api.TopicEvaluation: row.Evaluation, api.TopicAllocation: row.Allocation,
	} {
		if topic == e.Topic {
			c.answer("event "+string(topic), one)
		}
	}
}
