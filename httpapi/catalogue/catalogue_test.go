//race:skip one goroutine
package catalogue_test

import (
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/catalogue"
)

// rows are a state with one job, one allocation and its node.
type rows struct {
	job   *cluster.Job
	alloc *cluster.Allocation
	node  *cluster.Node
	// next is an allocation beside it, or nil.
	next *cluster.Allocation
}

func (r *rows) Job(cluster.JobKey) *cluster.Job           { return r.job }
func (r *rows) Alloc(cluster.AllocID) *cluster.Allocation { return r.alloc }
func (r *rows) Jobs() iter.Seq[*cluster.Job]              { return slices.Values([]*cluster.Job{r.job}) }
func (r *rows) AllocsByJob(cluster.JobKey) iter.Seq[*cluster.Allocation] {
	if r.next != nil {
		return slices.Values([]*cluster.Allocation{r.alloc, r.next})
	}
	return slices.Values([]*cluster.Allocation{r.alloc})
}
func (r *rows) Node(cluster.NodeID) *cluster.Node { return r.node }
func (r *rows) TableIndex(string) uint64          { return 1 }
func (r *rows) RemovedAt() uint64                 { return 0 }

func newRows() *rows {
	g := &cluster.TaskGroup{
		Name: "front", Count: 1, Ports: []cluster.PortRequest{{Label: "http"}},
		Services: []cluster.Service{{Name: "web", PortLabel: "http"}},
		Tasks: []*cluster.Task{
			{Name: "main", Env: map[string]string{"SECRET": "x"}, Ports: []cluster.PortRequest{{Label: "admin"}}},
			{Name: "beside"},
		},
	}
	j := &cluster.Job{Namespace: "default", ID: "shop", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{g}, JobModifyIndex: 5}
	j.Canonicalize()
	return &rows{
		job: j,
		alloc: &cluster.Allocation{
			ID: "a1", Namespace: "default", Name: "shop.front[3]", JobID: "shop", Job: j, TaskGroup: "front", NodeID: "n1",
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning, CreateIndex: 7, AllocModifyIndex: 8, ModifyIndex: 9,
			Ports: &cluster.AssignedPorts{IP: "10.0.0.1", All: []cluster.AssignedPort{{Label: "http", Number: 20001}, {Task: "main", Label: "admin", Number: 20002}}},
		},
		node: &cluster.Node{
			ID: "n1", Name: "host", Datacenter: "dc1", Status: cluster.NodeReady, Meta: map[string]string{"rack": "r1", "dot": "a.b"},
			Network: &cluster.NodeNetwork{IP: "10.0.0.9"}, ModifyIndex: 2,
		},
	}
}

// text lists instances: "name address:port [tags]".
func text(list []catalogue.Instance) (all []string) {
	for _, i := range list {
		all = append(all, fmt.Sprintf("%s %s:%d %v", i.Name, i.Address, i.Port, i.Tags))
	}
	return all
}

func (r *rows) service() *cluster.Service { return &r.job.TaskGroups[0].Services[0] }

func (r *rows) read() []string {
	list, _ := catalogue.Read(r, catalogue.Query{Within: func(cluster.Namespace) bool { return true }})
	return text(list)
}

func check(onUpdate cluster.CheckOnUpdate) []cluster.ServiceCheck {
	return []cluster.ServiceCheck{{Name: "up", Type: cluster.CheckTCP, OnUpdate: onUpdate, Interval: time.Second, Timeout: time.Second}}
}

// An instance is listed while its allocation runs, the servers do not stop it, and it is healthy where checks decide.
func TestRead_listed(t *testing.T) {
	t.Parallel()
	verdict := func(healthy bool) *cluster.DeploymentStatus { return &cluster.DeploymentStatus{Healthy: &healthy} }
	for name, test := range map[string]struct {
		edit   func(r *rows)
		listed bool
	}{
		"it runs":                     {func(*rows) {}, true},
		"pending":                     {func(r *rows) { r.alloc.ClientStatus = cluster.ClientPending }, false},
		"complete":                    {func(r *rows) { r.alloc.ClientStatus = cluster.ClientComplete }, false},
		"lost":                        {func(r *rows) { r.alloc.ClientStatus = cluster.ClientLost }, false},
		"stopped, and it still runs":  {func(r *rows) { r.alloc.DesiredStatus = cluster.DesiredStop }, false},
		"evicted":                     {func(r *rows) { r.alloc.DesiredStatus = cluster.DesiredEvict }, false},
		"marked":                      {func(r *rows) { r.alloc.DesiredTransition.Migrate = true }, true},
		"unhealthy without checks":    {func(r *rows) { r.alloc.DeploymentStatus = verdict(false) }, true},
		"without a verdict":           {func(r *rows) { r.service().Checks = check("") }, false},
		"healthy":                     {func(r *rows) { r.service().Checks, r.alloc.DeploymentStatus = check(""), verdict(true) }, true},
		"unhealthy":                   {func(r *rows) { r.service().Checks, r.alloc.DeploymentStatus = check(""), verdict(false) }, false},
		"a check that does not count": {func(r *rows) { r.service().Checks = check(cluster.CheckIgnored) }, true},
		"the states of tasks decide": {func(r *rows) {
			r.service().Checks = check("")
			g := r.job.TaskGroups[0]
			g.Update, g.Migrate.HealthCheck = &cluster.UpdateStrategy{HealthCheck: cluster.HealthTaskStates}, cluster.HealthTaskStates
		}, true},
		"unknown on a disconnected node": {func(r *rows) {
			r.alloc.ClientStatus, r.node.Status = cluster.ClientUnknown, cluster.NodeDisconnected
			r.job.TaskGroups[0].Disconnect.LostAfter = time.Minute
		}, true},
		"a newer version awaits no node": {func(r *rows) {
			r.node.Status, r.job.TaskGroups[0].Disconnect.LostAfter = cluster.NodeDisconnected, time.Minute
			r.job = r.job.Copy()
			r.job.TaskGroups[0].Disconnect.LostAfter = 0
		}, false},
		"a newer version awaits the node": {func(r *rows) {
			r.node.Status, r.job = cluster.NodeDisconnected, r.job.Copy()
			r.job.TaskGroups[0].Disconnect.LostAfter = time.Minute
		}, true},
		"soon lost on a disconnected node": {func(r *rows) { r.node.Status = cluster.NodeDisconnected }, false},
		"on a node that is down":           {func(r *rows) { r.node.Status = cluster.NodeDown }, false},
		"on a deleted node":                {func(r *rows) { r.node = nil }, false},
		"without a job":                    {func(r *rows) { r.alloc.Job = nil }, false},
		"another group":                    {func(r *rows) { r.alloc.TaskGroup = "gone" }, false},
		"a newer version without services": {func(r *rows) { r.job = &cluster.Job{Namespace: "default", ID: "shop"} }, false},
		// Bug: the next plan removed these, and on a disconnected node they stayed without one.
		"a stopped job": {func(r *rows) {
			r.job = r.job.Copy()
			r.job.Stop = true
		}, false},
		"a stopped job on a disconnected node": {func(r *rows) {
			r.node.Status, r.job = cluster.NodeDisconnected, r.job.Copy()
			r.job.Stop, r.job.TaskGroups[0].Disconnect.LostAfter = true, time.Minute
		}, false},
		"a newer version without the group": {func(r *rows) {
			r.job = r.job.Copy()
			r.job.TaskGroups[0].Name = "back"
		}, false},
		"a newer version with another service": {func(r *rows) {
			r.job = r.job.Copy()
			r.service().Name = "api"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows()
			test.edit(r)
			if test.listed {
				must.Eq(t, []string{"web 10.0.0.1:20001 []"}, r.read())
			} else {
				must.SliceEmpty(t, r.read())
			}
		})
	}
}

// Ports, addresses and variables of instances.
func TestRead_instances(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(r *rows, s *cluster.Service)
		want []string
	}{
		"no port":              {func(_ *rows, s *cluster.Service) { s.PortLabel = "" }, []string{"web 10.0.0.9:0 []"}},
		"no network":           {func(r *rows, s *cluster.Service) { s.PortLabel, r.node.Network = "", nil }, nil},
		"no network, a number": {func(r *rows, s *cluster.Service) { s.PortLabel, r.node.Network = "80", nil }, nil},
		"a label is a number":  {func(r *rows, s *cluster.Service) { s.PortLabel, r.alloc.Ports.All[0].Label = "80", "80" }, []string{"web 10.0.0.1:20001 []"}},
		"a task and its group": {func(r *rows, s *cluster.Service) {
			s.TaskName = "main"
			r.alloc.Ports.All[1].Label = "http"
		}, []string{"web 10.0.0.1:20001 []"}},
		"a number":            {func(_ *rows, s *cluster.Service) { s.PortLabel = "80" }, []string{"web 10.0.0.9:80 []"}},
		"a task's port":       {func(_ *rows, s *cluster.Service) { s.PortLabel = "admin" }, []string{"web 10.0.0.1:20002 []"}},
		"a port it has not":   {func(r *rows, _ *cluster.Service) { r.alloc.Ports = nil }, nil},
		"an address":          {func(_ *rows, s *cluster.Service) { s.Address = "${node.unique.name}.example" }, []string{"web host.example:20001 []"}},
		"no such address":     {func(_ *rows, s *cluster.Service) { s.Address = "${meta.none}" }, nil},
		"tags":                {func(_ *rows, s *cluster.Service) { s.Tags = []string{"b", "${meta.rack}", "${meta.none}"} }, []string{"web 10.0.0.1:20001 [b r1 ${meta.none}]"}},
		"a secret":            {func(_ *rows, s *cluster.Service) { s.Tags = []string{"${env.SECRET}", "${SECRET}"} }, []string{"web 10.0.0.1:20001 [${env.SECRET} ${SECRET}]"}},
		"variables":           {func(_ *rows, s *cluster.Service) { s.Name = "${JOB}-${TASKGROUP}-${NOMAD_ALLOC_INDEX}-${meta.rack}" }, []string{"shop-front-3-r1 10.0.0.1:20001 []"}},
		"an invalid name":     {func(_ *rows, s *cluster.Service) { s.Name = "${meta.dot}" }, nil},
		"no such variable":    {func(_ *rows, s *cluster.Service) { s.Name = "${meta.none}" }, nil},
		"a port's variable":   {func(_ *rows, s *cluster.Service) { s.Tags = []string{"${NOMAD_PORT_http}"} }, []string{"web 10.0.0.1:20001 [20001]"}},
		"a group has no task": {func(_ *rows, s *cluster.Service) { s.Name = "${TASK}" }, nil},
		"a task's service": {func(r *rows, _ *cluster.Service) {
			g := r.job.TaskGroups[0]
			g.Services = nil
			g.Tasks[0].Services = []cluster.Service{{Name: "${BASE}", PortLabel: "admin", Tags: []string{"${NOMAD_TASK_NAME}"}}, {Name: "a", PortLabel: "http"}}
		}, []string{"a 10.0.0.1:20001 []", "shop-front-main 10.0.0.1:20002 [main]"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRows()
			test.edit(r, r.service())
			must.Eq(t, test.want, r.read())
		})
	}
}

// The answer about a name changes with reports of its own instances, and with writes of the servers to allocations that
// may have had the name. Reports of allocations with other services change nothing.
func TestRead_changed(t *testing.T) {
	t.Parallel()
	changed := func(r *rows, name string) uint64 {
		_, index := catalogue.Read(r, catalogue.Query{Within: func(cluster.Namespace) bool { return true }, Name: name})
		return index
	}
	r := newRows()
	must.Eq(t, 9, changed(r, "web"))
	must.Eq(t, 8, changed(r, "other"))
	r.alloc.DesiredStatus = cluster.DesiredStop
	must.Eq(t, 8, changed(r, "web"), must.Sprint("the end of a stopped allocation"))
	r = newRows()
	r.node.ModifyIndex = 11
	must.Eq(t, 11, changed(r, "web"), must.Sprint("the node"))
	must.Eq(t, 8, changed(r, "other"))
	r.service().Name = "web-${meta.rack}"
	must.Eq(t, 11, changed(r, "web-r0"), must.Sprint("the node may have had another fact"))
	must.Eq(t, 8, changed(r, "api-r0"), must.Sprint("no fact gives the name"))
}

// Services whose instances have the same ID have an order of their own. Pages lost one of them.
func TestRead_sameID(t *testing.T) {
	t.Parallel()
	r := newRows()
	g := r.job.TaskGroups[0]
	g.Tasks[0].Name = "group-front"
	g.Tasks[0].Services = []cluster.Service{{Name: "web", PortLabel: "http", Tags: []string{"task"}}}
	list, _ := catalogue.Read(r, catalogue.Query{Within: func(cluster.Namespace) bool { return true }})
	must.Eq(t, []string{"web 10.0.0.1:20001 []", "web 10.0.0.1:20001 [task]"}, text(list))
	must.Eq(t, list[0].ID, list[1].ID)
	must.Less(t, 0, list[0].Compare(list[1]))
}

// Queries for a job and for an allocation read their rows alone.
func TestRead_oneRow(t *testing.T) {
	t.Parallel()
	r := newRows()
	q := catalogue.Query{Within: func(cluster.Namespace) bool { return true }, Alloc: "a1"}
	list, changed := catalogue.Read(r, q)
	must.Eq(t, []string{"web 10.0.0.1:20001 []"}, text(list))
	must.Eq(t, 9, changed)
	list, changed = catalogue.Read(r, catalogue.Query{Within: q.Within, Job: r.job.Key()})
	must.Eq(t, []string{"web 10.0.0.1:20001 []"}, text(list))
	must.Eq(t, 9, changed)
	r.job = nil
	list, _ = catalogue.Read(r, q)
	must.SliceEmpty(t, list)
	r.alloc = nil
	list, _ = catalogue.Read(r, q)
	must.SliceEmpty(t, list)
}

// While an allocation and its standby replacement run, both are listed. The replacement stays when the original goes.
func TestRead_standby(t *testing.T) {
	t.Parallel()
	r := newRows()
	healthy := &cluster.DeploymentStatus{Healthy: new(true)}
	r.service().Checks, r.alloc.DeploymentStatus = check(""), healthy
	next := *r.alloc
	next.ID, next.PreviousAllocation, next.Standby, next.ClientStatus, next.DeploymentStatus = "a2", "a1", true, cluster.ClientPending, nil
	next.Ports = &cluster.AssignedPorts{IP: "10.0.0.2", All: []cluster.AssignedPort{{Label: "http", Number: 20001}}}
	r.alloc.NextAllocation, r.next = "a2", &next
	const original, replacement = "web 10.0.0.1:20001 []", "web 10.0.0.2:20001 []"
	must.Eq(t, []string{original}, r.read(), must.Sprint("it starts"))
	next.ClientStatus = cluster.ClientRunning
	must.Eq(t, []string{original}, r.read(), must.Sprint("without a verdict"))
	next.DeploymentStatus = healthy
	must.Eq(t, []string{original, replacement}, r.read())
	r.alloc.DesiredTransition.Migrate, next.Standby = true, false
	must.Eq(t, []string{original, replacement}, r.read(), must.Sprint("marked"))
	r.alloc.DesiredStatus = cluster.DesiredStop
	must.Eq(t, []string{replacement}, r.read(), must.Sprint("stopped"))
}
