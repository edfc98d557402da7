package httpapi_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// client is the reference's Go client of the fixture's API.
func (w *fixture) client() *api.Client {
	w.Helper()
	return result.Of(api.NewClient(&api.Config{Address: w.serve(httpapi.Options{}).URL})).OK(w)
}

func TestReferenceClient_Nodes(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(2))
	nodes := w.client().Nodes()

	list, meta, err := nodes.List(&api.QueryOptions{Params: map[string]string{"os": "true", "resources": "true"}})
	must.NoError(t, err)
	must.Len(t, 3, list)
	must.Eq(t, string(nodeID(3)), list[0].ID, must.Sprint("the client sorts by the index of creation, newest first"))
	must.Eq(t, "10.0.0.3", list[0].Address)
	must.Eq(t, "debian", list[0].Attributes["os.name"])
	must.Eq(t, 4000, list[0].NodeResources.Cpu.CpuShares)
	must.Eq(t, w.State().TableIndex(httpapi.TableNodes), meta.LastIndex)
	must.True(t, meta.KnownLeader)

	node, meta, err := nodes.Info(string(nodeID(2)), nil)
	must.NoError(t, err)
	must.Eq(t, "n2", node.Name)
	must.Eq(t, node.ModifyIndex, meta.LastIndex)
	must.Eq(t, "Node registered", node.Events[0].Message)

	allocs, meta, err := nodes.Allocations(string(nodeID(2)), nil)
	must.NoError(t, err)
	must.Len(t, 1, allocs)
	must.Eq(t, "service", *allocs[0].Job.Type)
	must.Eq(t, 0, *allocs[0].Job.Version)
	must.Eq(t, 64, *allocs[0].Resources.MemoryMB)
	must.True(t, *allocs[0].DeploymentStatus.Healthy)
	must.Eq(t, allocs[0].ModifyIndex, meta.LastIndex)

	_, _, err = nodes.Info("gone", nil)
	must.ErrorContains(t, err, "Unexpected response code: 404 (node not found)")
}

// The calls of the reference's command drain a node and watch the drain to its end.
func TestReferenceClient_Drain(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	w.job("logs", cluster.JobSystem, 1)
	nodes := w.client().Nodes()

	done := result.Of(nodes.UpdateDrainOpts(string(nodeID(1)), &api.DrainOptions{
		DrainSpec: &api.DrainSpec{Deadline: time.Hour, IgnoreSystemJobs: true}, MarkEligible: true, Meta: map[string]string{"message": "kernel"},
	}, nil)).OK(t)
	must.Eq(t, done.NodeModifyIndex, done.LastIndex)
	node := result.Read(nodes.Info(string(nodeID(1)), nil)).OK(t)
	must.True(t, node.Drain)
	must.Eq(t, time.Hour, node.DrainStrategy.Deadline)
	must.True(t, node.DrainStrategy.IgnoreSystemJobs)
	must.Eq(t, time.Hour, node.DrainStrategy.ForceDeadline.Sub(node.DrainStrategy.StartedAt))
	must.Eq(t, api.DrainStatusDraining, node.LastDrain.Status)
	must.Eq(t, "token:acls-disabled", node.LastDrain.AccessorID)
	must.Eq(t, map[string]string{"message": "kernel"}, node.LastDrain.Meta)

	_, err := nodes.ToggleEligibility(string(nodeID(1)), true, nil)
	must.ErrorContains(t, err, "Unexpected response code: 500 (can not set node's scheduling eligibility to eligible while it is draining)")

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	messages := nodes.MonitorDrain(ctx, string(nodeID(1)), done.LastIndex, false)
	w.mark(1, cluster.MarkPaced)
	w.report(1, cluster.ClientComplete)
	w.end(nodeID(1))
	var texts []string
	for m := range messages {
		texts = append(texts, m.Message)
	}
	must.NoError(t, ctx.Err())
	must.SliceContains(t, texts, "Drain complete for node "+string(nodeID(1)))
	must.SliceContains(t, texts, `All allocations on node "`+string(nodeID(1))+`" have stopped`)

	toggled := result.Of(nodes.ToggleEligibility(string(nodeID(1)), true, nil)).OK(t)
	must.Len(t, 1, toggled.EvalIDs)
	must.Zero(t, toggled.NodeModifyIndex)
	purged := result.Read(nodes.Purge(string(nodeID(1)), nil)).OK(t)
	must.Positive(t, purged.NodeModifyIndex, must.Sprint("its allocations have ended, and no job is evaluated"))
}

func TestReferenceClient_Disable(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	w.drain(nodeID(1), cluster.DrainSpec{})
	done := result.Of(w.client().Nodes().UpdateDrainOpts(string(nodeID(1)), &api.DrainOptions{MarkEligible: true}, nil)).OK(t)
	must.Len(t, 1, done.EvalIDs)
	must.Eq(t, done.LastIndex, done.EvalCreateIndex)
	must.Eq(t, cluster.NodeEligible, w.State().Node(nodeID(1)).SchedulingEligibility)
}

// A job that the reference's client registers comes back unchanged.
func TestReferenceClient_Jobs(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	client := w.client()
	group := api.NewTaskGroup("front", 3)
	group.Migrate = &api.MigrateStrategy{MaxParallel: new(2), HealthyDeadline: new(time.Minute)}
	group.EphemeralDisk = &api.EphemeralDisk{Sticky: new(true), Migrate: new(true), SizeMB: new(300)}
	group.Disconnect = &api.DisconnectStrategy{LostAfter: new(time.Hour)}
	group.ShutdownDelay = new(3 * time.Second)
	task := api.NewTask("main", "docker").Require(&api.Resources{CPU: new(500), MemoryMB: new(128)})
	task.KillTimeout, task.ShutdownDelay = new(20*time.Second), 2*time.Second
	group.AddTask(task)
	job := api.NewServiceJob("web/front end", "web/front end", "global", 70).AddTaskGroup(group).AddDatacenter("dc1").
		Constrain(api.NewConstraint("${node.class}", "=", "big")).Constrain(api.NewConstraint("${node.pool}", "=", "default"))
	job.NodePool = new("default")

	registered := result.Read(client.Jobs().Register(job, nil)).OK(t)
	must.NotEq(t, "", registered.EvalID)
	must.Eq(t, "", registered.Warnings)
	must.Eq(t, &cluster.Job{
		Namespace: "default", ID: "web/front end", Type: cluster.JobService, Priority: 70, NodePool: "default", Datacenters: []string{"dc1"},
		Constraints: []cluster.Constraint{{LTarget: "${node.pool}", Operand: "=", RTarget: "default"}},
		TaskGroups: []*cluster.TaskGroup{{
			Name: "front", Count: 3, NodeClasses: []string{"big"}, ShutdownDelay: 3 * time.Second,
			Migrate:       &cluster.MigrateStrategy{MaxParallel: 2, HealthCheck: "checks", MinHealthyTime: 10 * time.Second, HealthyDeadline: time.Minute},
			Reschedule:    cluster.DefaultReschedulePolicy(cluster.JobService),
			EphemeralDisk: cluster.EphemeralDisk{Sticky: true, Migrate: true, SizeMB: 300},
			Disconnect:    cluster.DisconnectStrategy{LostAfter: time.Hour},
			Tasks: []*cluster.Task{{
				Name: "main", Driver: "docker", Resources: cluster.Resources{CPU: 500, MemoryMB: 128}, KillTimeout: 20 * time.Second, ShutdownDelay: 2 * time.Second,
			}},
		}},
		CreateIndex: registered.JobModifyIndex, ModifyIndex: registered.JobModifyIndex, JobModifyIndex: registered.JobModifyIndex,
	}, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web/front end"}))

	back := result.Read(client.Jobs().Info("web/front end", nil)).OK(t)
	must.Eq(t, job.ID, back.ID)
	must.Eq(t, group.Migrate.MaxParallel, back.TaskGroups[0].Migrate.MaxParallel)
	must.Eq(t, task.KillTimeout, back.TaskGroups[0].Tasks[0].KillTimeout)
	must.Eq(t, "pending", *back.Status)
	list := result.Read(client.Jobs().List(nil)).OK(t)
	must.Len(t, 1, list)
	must.Eq(t, "pending", list[0].Status)

	evals := result.Read(client.Jobs().Evaluations("web/front end", nil)).OK(t)
	must.Len(t, 1, evals)
	eval := result.Read(client.Evaluations().Info(registered.EvalID, nil)).OK(t)
	must.Eq(t, "job-register", eval.TriggeredBy)
	allocs := result.Read(client.Jobs().Allocations("web/front end", true, nil)).OK(t)
	must.Len(t, 0, allocs)
	summary := result.Read(client.Jobs().Summary("web/front end", nil)).OK(t)
	must.MapContainsKey(t, summary.Summary, "front")
	again := result.Read(client.Jobs().ForceEvaluate("web/front end", nil)).OK(t)
	must.NotEq(t, registered.EvalID, again)

	result.Read(client.Jobs().Deregister("web/front end", true, nil)).OK(t)
	_, _, err := client.Jobs().Info("web/front end", nil)
	must.ErrorContains(t, err, "404 (job not found)")
}

func TestReferenceClient_Agent(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	client := w.client()
	self := result.Of(client.Agent().Self()).OK(t)
	must.Eq(t, "s1", self.Member.Name)
	must.Eq(t, "alive", self.Member.Status)
	members := result.Of(client.Agent().Members()).OK(t)
	must.Eq(t, 4647, members.Members[0].Port)
	leader := result.Of(client.Status().Leader()).OK(t)
	must.Eq(t, "127.0.0.1:4647", leader)
	peers := result.Of(client.Status().Peers()).OK(t)
	must.Eq(t, []string{"127.0.0.1:4647"}, peers)
	regions := result.Of(client.Regions().List()).OK(t)
	must.Eq(t, []string{"global"}, regions)
	servers := result.Of(client.Operator().RaftGetConfiguration(nil)).OK(t)
	must.True(t, servers.Servers[0].Leader)
	must.NoError(t, peerList{w}.Join(t.Context(), "s2", "127.0.0.1:4648"))
	must.NoError(t, client.Operator().RaftRemovePeerByID("s2", nil))
	must.Len(t, 1, peerList{w}.Members())
	matches := result.Read(client.Search().PrefixSearch("a0", "nodes", nil)).OK(t)
	must.Eq(t, []string{string(nodeID(1))}, matches.Matches["nodes"])
	namespaces := result.Read(client.Namespaces().List(nil)).OK(t)
	must.Eq(t, "default", namespaces[0].Name)
}

// The reference's client requests garbage collection. What a running drain has marked stays.
func TestReferenceClient_GarbageCollect(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	j := w.job("web", cluster.JobService, 2)
	w.place(1, j, nodeID(1))
	w.place(2, j, nodeID(2))
	for n := 1; n <= 2; n++ {
		w.drain(nodeID(n), cluster.DrainSpec{Deadline: -1})
		w.mark(n, cluster.MarkForced)
		w.stop(n)
		w.report(n, cluster.ClientComplete)
	}
	w.end(nodeID(2))
	must.NoError(t, w.client().System().GarbageCollect())
	must.NotNil(t, w.State().Alloc(allocID(1)))
	must.Nil(t, w.State().Alloc(allocID(2)))

	r := request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/system/gc", "")
	must.Eq(t, 200, r.code)
	must.Eq(t, `{"Allocations":0,"Evaluations":0,"Jobs":0}`, r.body)
}
