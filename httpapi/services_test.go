package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/redact"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// servingJob registers a job with the service web, which has a check.
func servingJob(w *fixture, id string) *cluster.Job {
	w.Helper()
	j := clustertest.Job(cluster.JobID(id), cluster.JobService, 4)
	j.Datacenters = []string{"dc1"}
	j.TaskGroups[0].Services = []cluster.Service{{
		Name: "web", PortLabel: "80", Address: "${node.unique.name}.example", Tags: []string{"b", "${NOMAD_JOB_ID}"},
		Checks: []cluster.ServiceCheck{{Name: "up", Type: cluster.CheckTCP, Interval: time.Second, Timeout: time.Second}},
	}}
	return w.Job(j)
}

// allocsOf are the allocations of the instances in an answer.
func allocsOf(t *testing.T, a answer) (allocs []string) {
	t.Helper()
	for _, i := range decode[[]wire.ServiceRegistration](t, a) {
		allocs = append(allocs, i.AllocID)
	}
	return allocs
}

// A follower of a service is answered by the entry that stops an allocation, with the index of that entry: before
// the client has begun the shutdown delay. Nothing else answers it: neither the mark before, nor reports of the stopped
// allocation, nor other services.
func TestServices_endWithTheStop(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxWait: 100 * time.Hour}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(2)
		job := servingJob(w, "web")
		for n := range 4 {
			w.place(n+1, job, nodeID(1))
		}
		w.place(9, w.job("other", cluster.JobService, 1), nodeID(2))
		left := []string{uuid('b', 1), uuid('b', 2), uuid('b', 3), uuid('b', 4)}
		path := "/v1/service/web"
		r := w.reads(h, path)
		must.False(t, r.waits())
		must.Eq(t, left, allocsOf(t, r.answer))
		follow := func() {
			t.Helper()
			index := r.answer.index(t)
			r = w.reads(h, at(path, index))
			must.True(t, r.waits())
		}
		follow()
		loses := func(n int) {
			t.Helper()
			must.False(t, r.waits())
			must.Eq(t, cluster.DesiredStop, w.State().Alloc(allocID(n)).DesiredStatus)
			must.Eq(t, w.Index, r.answer.index(t))
			left = left[1:]
			must.True(t, slices.Equal(left, allocsOf(t, r.answer)))
			follow()
			w.report(n, cluster.ClientComplete)
			must.True(t, r.waits(), must.Sprint("the end of a stopped allocation"))
		}

		w.drain(nodeID(1), cluster.DrainSpec{})
		w.mark(1, cluster.MarkPaced)
		w.report(9, cluster.ClientRunning)
		must.True(t, r.waits())
		w.stop(1)
		loses(1)
		w.Drain(nodeID(1), nil)

		w.must(&shims.AllocStop{At: w.Now(), Alloc: allocID(2)})
		must.True(t, r.waits())
		w.stop(2)
		loses(2)

		next := job.Copy()
		next.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
		w.Job(next)
		must.True(t, r.waits(), must.Sprint("a new version alone stops nothing"))
		w.plan([]cluster.PlanStop{{Alloc: allocID(3), Description: cluster.DescNewerVersion}})
		loses(3)

		w.must(&shims.JobDeregister{Job: job.Key()})
		must.False(t, r.waits(), must.Sprint("the stop of the job, before the plan that stops the allocation"))
		must.Eq(t, w.Index, r.answer.index(t))
		must.Eq(t, "[]", r.answer.body)
	})
}

// A registration that changes services alone changes the instances at once. The allocations get the new version, so that
// their clients run its checks, and their tasks run on.
func TestServices_updateInPlace(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxWait: time.Hour}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		job := servingJob(w, "web")
		w.place(1, job, nodeID(1))
		r := w.reads(h, "/v1/service/web")
		must.False(t, r.waits())
		r = w.reads(h, at("/v1/service/web", r.answer.index(t)))
		must.True(t, r.waits())

		renamed := job.Copy()
		renamed.TaskGroups[0].Services[0].Name = "api"
		renamed = w.Job(renamed)
		must.False(t, r.waits())
		must.Eq(t, "[]", r.answer.body)
		must.Eq(t, w.Index, r.answer.index(t))
		r = w.reads(h, "/v1/service/api")
		must.False(t, r.waits())
		must.Eq(t, []string{uuid('b', 1)}, allocsOf(t, r.answer))
		a := w.State().Alloc(allocID(1))
		must.Eq(t, w.Index, a.AllocModifyIndex, must.Sprint("the client reads it again"))
		must.Eq(t, "api", a.Job.TaskGroups[0].Services[0].Name)

		next := renamed.Copy()
		next.TaskGroups[0].Services[0].Name = "web"
		next.TaskGroups[0].Tasks[0].Env = map[string]string{"VERSION": "2"}
		w.Job(next)
		must.Eq(t, "api", w.State().Alloc(allocID(1)).Job.TaskGroups[0].Services[0].Name, must.Sprint("until it is replaced"))
	})
}

// The index of a follower never goes back, also when the newest row is deleted. Rows of ended allocations go without an
// answer.
func TestServices_indexNeverGoesBack(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxWait: time.Hour}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		job := servingJob(w, "web")
		w.place(1, job, nodeID(1))
		w.place(2, job, nodeID(1))
		w.plan([]cluster.PlanStop{{Alloc: allocID(2), Description: cluster.DescNewerVersion}})
		w.report(2, cluster.ClientComplete)
		r := w.reads(h, "/v1/service/web")
		must.False(t, r.waits())
		before := r.answer.index(t)
		r = w.reads(h, at("/v1/service/web", before))
		w.must(&shims.JobDeregister{Job: job.Key(), Purge: true})
		must.False(t, r.waits())
		must.Eq(t, "[]", r.answer.body)
		after := r.answer.index(t)
		must.Greater(t, before, after)
		r = w.reads(h, at("/v1/service/web", after))
		must.True(t, r.waits())
		<-r.answered // the end of the longest wait
		must.LessEq(t, r.answer.index(t), after)
		r = w.reads(h, at("/v1/service/web", w.Index+9))
		must.True(t, r.waits())
		<-r.answered
		must.Eq(t, w.Index, r.answer.index(t), must.Sprint("the exception: an index above the state's"))
		w.restore()
		must.False(t, w.reads(h, at("/v1/service/web", after-1)).waits(), must.Sprint("a reader from before the restore"))
	})
}

// The reference's client lists the services of a namespace, of a job and of an allocation.
func TestReferenceClient_Services(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	job := servingJob(w, "web")
	w.place(1, job, nodeID(1))
	w.place(2, job, nodeID(2))
	other := servingJob(w, "second").Copy()
	other.Namespace = "other"
	w.place(3, w.Job(other), nodeID(2))
	c := w.client()

	lists := result.Read(c.Services().List(&api.QueryOptions{Namespace: "*"})).OK(t)
	must.Eq(t, []*api.ServiceRegistrationListStub{
		{Namespace: "default", Services: []*api.ServiceRegistrationStub{{ServiceName: "web", Tags: []string{"b", "web"}}}},
		{Namespace: "other", Services: []*api.ServiceRegistrationStub{{ServiceName: "web", Tags: []string{"b", "second"}}}},
	}, lists)
	must.Len(t, 1, result.Read(c.Services().List(nil)).OK(t))

	instances := result.Read(c.Services().Get("web", nil)).OK(t)
	must.Len(t, 2, instances)
	first := w.State().Alloc(allocID(1))
	must.Eq(t, &api.ServiceRegistration{
		ID: "_nomad-task-" + uuid('b', 1) + "-group-web-web-80", ServiceName: "web", Namespace: "default", NodeID: uuid('a', 1), Datacenter: "dc1",
		JobID: "web", AllocID: uuid('b', 1), Tags: []string{"b", "web"}, Address: "n1.example", Port: 80,
		CreateIndex: first.CreateIndex, ModifyIndex: first.CreateIndex,
	}, instances[0])
	must.Eq(t, instances, result.Read(c.Jobs().Services("web", nil)).OK(t))
	must.Eq(t, instances[:1], result.Read(c.Allocations().Services(uuid('b', 1), nil)).OK(t))
	must.SliceEmpty(t, result.Read(c.Services().Get("none", nil)).OK(t))
	must.Len(t, 3, result.Read(c.Services().Get("web", &api.QueryOptions{Namespace: "*"})).OK(t))
	filtered := result.Read(c.Services().Get("web", &api.QueryOptions{Filter: `Address == "n2.example"`})).OK(t)
	must.Eq(t, instances[1:], filtered)

	_, err := c.Services().Delete("web", instances[0].ID, nil)
	must.ErrorContains(t, err, "the catalogue follows the allocations: stop the allocation to remove its instances")
}

// One key gets the same instances each time, and keeps them when others go.
func TestServices_choose(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	job := servingJob(w, "web")
	for n := range 4 {
		w.place(n+1, job, nodeID(1))
	}
	base := w.serve(httpapi.Options{}).URL + "/v1/service/web?choose="
	choose := func(text string) []string {
		return allocsOf(t, request(t, "GET", base+url.QueryEscape(text), ""))
	}
	chosen := choose("1|key")
	must.Len(t, 1, chosen)
	must.Eq(t, chosen, choose("1|key"))
	must.Len(t, 3, choose("3|key"))
	must.SliceContains(t, choose("3|key"), chosen[0])
	must.Len(t, 4, choose("9|key"))
	for n := range 4 {
		if id := allocID(n + 1); string(id) != chosen[0] {
			w.plan([]cluster.PlanStop{{Alloc: id, Description: cluster.DescNewerVersion}})
			break
		}
	}
	must.Eq(t, chosen, choose("1|key"))
	for _, wrong := range []string{"1", "0|key", "x|key", "1|"} {
		a := request(t, "GET", base+url.QueryEscape(wrong), "")
		must.Eq(t, http.StatusBadRequest, a.code)
		must.StrContains(t, a.body, "choose must be a number and a key such as 2|key")
	}
}

// A page ends where the next one begins, also across namespaces.
func TestPages_services(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	for i, namespace := range []cluster.Namespace{"a", "a-b", "default"} {
		j := servingJob(w, "web").Copy()
		j.Namespace = namespace
		w.place(i+1, w.Job(j), nodeID(1))
	}
	base := w.serve(httpapi.Options{}).URL + "/v1/service/web?namespace=*&per_page=1"
	all := pages(t, base)
	must.Len(t, 3, all)
	for i, ids := range all {
		must.Eq(t, []string{"_nomad-task-" + uuid('b', i+1) + "-group-web-web-80"}, ids)
	}
}

// Pages have both instances of one allocation with the same ID.
func TestPages_sameID(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	j := servingJob(w, "web").Copy()
	g := j.TaskGroups[0]
	own := g.Services[0]
	own.Tags = nil
	g.Tasks[0].Name, g.Tasks[0].Services = "group-"+g.Name, []cluster.Service{own}
	w.place(1, w.Job(j), nodeID(1))
	base := w.serve(httpapi.Options{}).URL + "/v1/service/web?"
	for _, order := range []string{"", "&reverse=true"} {
		all := pages(t, base+"per_page=1"+order)
		must.Len(t, 2, all)
		must.Eq(t, all[0], all[1])
	}
}

// A query that waits is refused at once if its filter is wrong. It was refused after the wait.
func TestServices_filterBeforeTheWait(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{MaxWait: time.Hour}, func(t *testing.T, w *fixture, h http.Handler) {
		w.nodes(1)
		w.place(1, servingJob(w, "web"), nodeID(1))
		for _, wrong := range []string{"Address ==", `None == "x"`} {
			r := w.reads(h, at("/v1/service/web?filter="+escape(wrong), w.Index))
			must.False(t, r.waits(), must.Sprint(wrong))
			must.Eq(t, http.StatusBadRequest, r.answer.code)
		}
		right := w.reads(h, at("/v1/service/web?filter="+escape(`Port == 80`), w.Index))
		must.True(t, right.waits())
	})
}

// A job has its services back as its owner has registered them, with the checks as the reference's client fills them in.
// A caller that may only read does not see what a check sends.
func TestReferenceClient_ServicesOfAJob(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	j := newJob(1, 100)
	group := j.TaskGroups[0]
	task := group.Tasks[0]
	group.Networks = []*api.NetworkResource{{DynamicPorts: []api.Port{{Label: "http"}}}}
	group.Services = []*api.Service{{
		Provider: "nomad", PortLabel: "http", Tags: []string{"a", "b"}, Address: "${node.unique.name}", OnUpdate: "ignore_warnings",
		CheckRestart: &api.CheckRestart{Limit: 3, Grace: new(time.Minute)},
		Checks: []api.ServiceCheck{
			{Type: "http", Protocol: "https", Path: "/up", Method: "POST", Body: "secret", Header: map[string][]string{"Authorization": {"secret"}},
				TLSServerName: "x", TLSSkipVerify: true, Interval: time.Minute, Timeout: time.Second, SuccessBeforePassing: 2, FailuresBeforeCritical: 3},
			{Type: "tcp", Name: "second", PortLabel: "80", Interval: time.Second, Timeout: time.Second, OnUpdate: "ignore", CheckRestart: &api.CheckRestart{Limit: 5, IgnoreWarnings: true}},
			{Type: "script", Command: "/bin/true", Args: []string{"secret"}, TaskName: task.Name, Interval: time.Second, Timeout: time.Second},
		},
	}}
	task.Services = []*api.Service{{Provider: "nomad", Name: "own"}}
	c := w.client()
	raw := result.Of(json.Marshal(j)).OK(t)
	result.Read(c.Jobs().Register(j, nil)).OK(t)
	back := result.Read(c.Jobs().Info(*j.ID, nil)).OK(t)

	var want api.Job
	must.NoError(t, json.Unmarshal(raw, &want))
	want.Canonicalize()
	s := want.TaskGroups[0].Services[0]
	s.CheckRestart, s.OnUpdate = nil, "require_healthy" // both are in the checks
	s.Checks[0].Name, s.Checks[2].Name = `service: "web-web" check`, `service: "web-web" check 3`
	must.Eq(t, want.TaskGroups[0].Services, back.TaskGroups[0].Services)
	must.Eq(t, want.TaskGroups[0].Tasks[0].Services, back.TaskGroups[0].Tasks[0].Services)
	again := result.Read(c.Jobs().Register(back, nil)).OK(t)
	must.Eq(t, back.JobModifyIndex, new(again.JobModifyIndex), must.Sprint("the answer is the same work"))

	shown := redact.Job(w.State().Job(cluster.JobKey{Namespace: "default", ID: cluster.JobID(*j.ID)}))
	must.StrNotContains(t, string(result.Of(json.Marshal(shown)).OK(t)), "secret")
}

// A registration warns of a service that no node can list, and of a check that fails on each node.
//
// Bug: variables of checks had no warning.
func TestServices_warnings(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	check := func(c api.ServiceCheck) []api.ServiceCheck {
		c.Interval, c.Timeout = time.Second, time.Second
		return []api.ServiceCheck{c}
	}
	j := newJob(1, 100)
	j.TaskGroups[0].Services = []*api.Service{
		{Name: "web-${NOMAD_ALLOC_INDEX}-${node.datacenter}", Provider: "nomad", Tags: []string{"${NOMAD_META_none}"}},
		{Name: "web-${node.unique.id}", Provider: "nomad", Address: "${attr.os.name}"},
		{Name: "${BASE}", Provider: "nomad"},
		{Name: "dots-${attr.nomad.version}", Provider: "nomad"},
		{Name: "words", Provider: "nomad", Address: "${attr.os.name} ${NOMAD_JOB_ID}"},
		{Name: "http", Provider: "nomad", PortLabel: "80", Checks: check(api.ServiceCheck{
			Type: "http", Path: "/${NOMAD_META_none}", Header: map[string][]string{"X-${attr.none}": {"${meta.none}"}}, Body: "${NOMAD_TASK_DIR}${env.OWN}",
		})},
		{Name: "tcp", Provider: "nomad", PortLabel: "80", Address: "${attr.os.nmae}", Checks: check(api.ServiceCheck{Type: "tcp", Name: "of ${NOMAD_JOB_ID}"})},
		{Name: "open", Provider: "nomad", Checks: check(api.ServiceCheck{Type: "script", Command: "/bin/true", Args: []string{"a", "${NOMAD_JOB_ID"}})},
		{Name: "script-${NOMAD_JOB_ID}", Provider: "nomad", Checks: check(api.ServiceCheck{Type: "script", Command: "${NOMAD_TASK_DIR}/a", Args: []string{"$${none}", "${NOMAD_TASK_NMAE}"}})},
	}
	j.TaskGroups[0].Tasks[0].Env = map[string]string{"OWN": "1"}
	answer := result.Read(w.client().Jobs().Register(j, nil)).OK(t)
	must.Eq(t, strings.Split(`group "web": service "http": check "service: \"http\" check": no node has the variable ${NOMAD_META_none} now, so the check always fails
group "web": service "http": check "service: \"http\" check": no node has the variable ${attr.none} now, so the check always fails
group "web": service "http": check "service: \"http\" check": no node has the variable ${meta.none} now, so the check always fails
group "web": service "tcp": check "of ${NOMAD_JOB_ID}": no node has the variable ${attr.os.nmae} now, so the check always fails
group "web": service "tcp": check "of ${NOMAD_JOB_ID}": ${NOMAD_JOB_ID} stays as it is: variables in the name of a check are not replaced
group "web": service "open": check "service: \"open\" check": a variable in "${NOMAD_JOB_ID" has no closing brace, so the check always fails
group "web": service "script-${NOMAD_JOB_ID}": check "service: \"script-${NOMAD_JOB_ID}\" check": no node has the variable ${NOMAD_TASK_NMAE} now, so the check always fails
group "web": service "web-${NOMAD_ALLOC_INDEX}-${node.datacenter}": "${NOMAD_META_none}": there is no variable ${NOMAD_META_none}, so the tag stays as it is
group "web": service "${BASE}": "${BASE}": there is no variable ${BASE}, so no node lists the service
group "web": service "dots-${attr.nomad.version}": "dots-${attr.nomad.version}": the catalogue lists no service with the name "dots-2.0.6", because a name has 1 to 63 letters, digits and hyphens
group "web": service "words": "${attr.os.name} ${NOMAD_JOB_ID}": the catalogue lists no service with the address "debian web", because it is neither an IP address nor the name of a host
group "web": service "tcp": "${attr.os.nmae}": there is no variable ${attr.os.nmae}, so no node lists the service`, "\n"), strings.Split(answer.Warnings, "\n"))

	j.TaskGroups[0].Services = j.TaskGroups[0].Services[5:6]
	j.TaskGroups[0].Services[0].Checks[0].Header, j.TaskGroups[0].Services[0].Checks[0].Path = nil, "/"
	j.TaskGroups[0].AddTask(api.NewTask("beside", "mock"))
	answer = result.Read(w.client().Jobs().Register(j, nil)).OK(t)
	must.StrContains(t, answer.Warnings, "no node has the variable ${NOMAD_TASK_DIR} now", must.Sprint("the check belongs to no task"))
	must.StrContains(t, answer.Warnings, "no node has the variable ${env.OWN} now")
}

// Texts that no service can have are refused. Bug: a service without checks had any on_update, and any text as address.
func TestServices_wrongTexts(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	for text, s := range map[string]*api.Service{
		`Service "web": invalid on_update: "sometimes"`:                          {OnUpdate: "sometimes"},
		`Service "web": invalid address: "a b" is neither an IP address`:         {Address: "a b"},
		`service "web".address_mode "alloc" is not supported: a service has the`: {AddressMode: "alloc"},
		`Service "web": the tag "a\nb" contains a control character`:             {Tags: []string{"a\nb"}},
	} {
		j := newJob(1, 100)
		s.Name, s.Provider = "web", "nomad"
		j.TaskGroups[0].Services = []*api.Service{s}
		_, _, err := w.client().Jobs().Register(j, nil)
		must.ErrorContains(t, err, text)
	}
}
