package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

const surgeKey = `"nodedrain.max_surge"`

// max_surge of a group is that of its migrate block or of that of the job, else that of its meta, else that of the job's
// meta. An answer has it only if the meta gives another number.
func TestRegisterJob_maxSurge(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		job, group string
		surge      int
		answered   any
	}{
		"none":                         {"", "", 0, nil},
		"the group's meta":             {"", `"Meta":{` + surgeKey + `:"2"},`, 2, nil},
		"the job's meta":               {`"Meta":{` + surgeKey + `:"2"},`, "", 2, nil},
		"the meta of both":             {`"Meta":{` + surgeKey + `:"2"},`, `"Meta":{` + surgeKey + `:"0"},`, 0, nil},
		"the group's block":            {"", `"Migrate":{"MaxSurge":3},`, 3, 3.0},
		"the job's block":              {`"Migrate":{"MaxSurge":3},`, "", 3, 3.0},
		"the block and the meta":       {`"Meta":{` + surgeKey + `:"2"},`, `"Migrate":{"MaxSurge":0},`, 0, 0.0},
		"equal in the block":           {`"Meta":{` + surgeKey + `:"2"},`, `"Migrate":{"MaxSurge":2},`, 2, nil},
		"a block without it, and meta": {"", `"Meta":{` + surgeKey + `:"1"},"Migrate":{"MaxParallel":7},`, 1, nil},
		"more than the count":          {"", `"Meta":{` + surgeKey + `:"1000000"},`, 1_000_000, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).nodes(1)
			h := w.handler(w.backend(), httpapi.Options{})
			body := jobBody(test.job, test.group, "")
			must.Eq(t, http.StatusOK, serve(h, "PUT", "/v1/jobs", body).Code)
			job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "new"})
			must.Eq(t, test.surge, job.TaskGroups[0].Migrate.MaxSurge)
			answer := object(t, serve(h, "GET", "/v1/job/new", ""))
			migrate := answer["TaskGroups"].([]any)[0].(map[string]any)["Migrate"].(map[string]any)
			must.Eq(t, test.answered, migrate["MaxSurge"])
		})
	}
}

// A registration, a plan and a validation refuse a wrong max_surge, and name its place.
func TestRegisterJob_maxSurgeRefused(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	const disk = `"EphemeralDisk":{"Sticky":true,"Migrate":true},`
	for name, test := range map[string]struct{ job, group, refusal string }{
		"a text":                              {"", `"Meta":{` + surgeKey + `:"two"},`, `group "web": Meta.nodedrain.max_surge is "two"; it must be a whole number from 0 to 1000000`},
		"empty":                               {"", `"Meta":{` + surgeKey + `:""},`, `group "web": Meta.nodedrain.max_surge is ""; it must be a whole number from 0 to 1000000`},
		"below zero":                          {`"Meta":{` + surgeKey + `:"-1"},`, "", `job: Meta.nodedrain.max_surge is "-1"; it must be a whole number from 0 to 1000000`},
		"too large":                           {`"Meta":{` + surgeKey + `:"1000001"},`, "", `job: Meta.nodedrain.max_surge is "1000001"; it must be a whole number from 0 to 1000000`},
		"a migrating disk":                    {"", disk + `"Migrate":{"MaxSurge":1},`, `Task group "web": MaxSurge is not possible for the group: its ephemeral disk migrates`},
		"the job's meta and a migrating disk": {`"Meta":{` + surgeKey + `:"1"},`, disk, `Task group "web": MaxSurge is not possible for the group: its ephemeral disk migrates`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := jobBody(test.job, test.group, "")
			for _, path := range []string{"/v1/jobs", "/v1/job/new/plan"} {
				rec := serve(h, "PUT", path, body)
				must.Eq(t, http.StatusBadRequest, rec.Code)
				must.Eq(t, test.refusal, rec.Body.String())
			}
			must.Eq(t, any([]any{test.refusal}), object(t, serve(h, "PUT", "/v1/validate/job", body))["ValidationErrors"])
		})
	}
}

// The key has no effect in a job of another type.
func TestRegisterJob_maxSurgeWithoutEffect(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	body := jobBody(`"Type":"batch","Meta":{`+surgeKey+`:"1"},`, `"EphemeralDisk":{"Migrate":true},`, "")
	for _, path := range []string{"/v1/jobs", "/v1/job/new/plan", "/v1/validate/job"} {
		rec := serve(h, "PUT", path, body)
		must.Eq(t, http.StatusOK, rec.Code, must.Sprint(rec.Body.String()))
		must.Eq(t, any(`job: meta: key "nodedrain.max_surge" has no effect in a job of the type "batch": it is for the type service`), object(t, rec)["Warnings"])
	}
	must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "new"}).TaskGroups[0].Migrate)
}

// With the compatible API's library a user reads a job, changes its meta and registers it: the new number counts.
func TestReferenceClient_MaxSurgeOfMeta(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	jobs := w.client().Jobs()
	first := newJob(1, 100)
	first.TaskGroups[0].Meta = map[string]string{cluster.MetaMaxSurge: "1"}
	must.Eq(t, "", result.Read(jobs.Register(first, nil)).OK(t).Warnings)
	surge := func() int {
		return w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Group("web").Migrate.MaxSurge
	}
	must.Eq(t, 1, surge())
	for _, text := range []string{"2", "0"} {
		read := result.Read(jobs.Info("web", nil)).OK(t)
		read.TaskGroups[0].Meta[cluster.MetaMaxSurge] = text
		plan, _, err := jobs.Plan(read, true, nil)
		must.NoError(t, err)
		must.Eq(t, 1, plan.Annotations.DesiredTGUpdates["web"].InPlaceUpdate+plan.Annotations.DesiredTGUpdates["web"].Ignore+plan.Annotations.DesiredTGUpdates["web"].Place)
		must.Eq(t, "", result.Read(jobs.Register(read, nil)).OK(t).Warnings)
		must.Eq(t, text, map[int]string{2: "2", 0: "0"}[surge()])
	}
	read := result.Read(jobs.Info("web", nil)).OK(t)
	delete(read.TaskGroups[0].Meta, cluster.MetaMaxSurge)
	result.Read(jobs.Register(read, nil)).OK(t)
	must.Zero(t, surge())
}

func serve(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	return rec
}

func object(t *testing.T, rec *httptest.ResponseRecorder) (all map[string]any) {
	t.Helper()
	must.NoError(t, json.Unmarshal(rec.Body.Bytes(), &all), must.Sprint(rec.Body.String()))
	return all
}
