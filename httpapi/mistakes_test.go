package httpapi_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
)

// A drain request without DrainSpec cancels the drain, with null or without the key, as in the
// compatible API. A misspelled key cancels nothing, and neither does a body without an object.
func TestDrain_cancelIsMeant(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	path := w.serve(httpapi.Options{}).URL + "/v1/node/" + uuid('a', 1) + "/drain"
	for _, body := range []string{`{}`, `{"DrainSpec":null}`, `{"MarkEligible":false}`, `{"NodeID":"x","Meta":{"a":"b"}}`} {
		must.Eq(t, 200, request(t, "PUT", path, `{"DrainSpec":{},"Other":1}`).code)
		must.Eq(t, 200, request(t, "PUT", path, body).code, must.Sprint(body))
		must.False(t, w.State().Node(nodeID(1)).Draining(), must.Sprint(body))
	}
	w.drain(nodeID(1), cluster.DrainSpec{})
	for body, want := range map[string]string{
		``: "Request body is empty", `null`: "Request body is empty",
		`{"DrianSpec":{"Deadline":1}}`:                 `unknown field "DrianSpec"`,
		`{"DrainSpec":null,"Deadline":1}`:              `unknown field "Deadline"`,
		`{"DrainSpec":{},"Drainspec":null}`:            "twice",
		`[]`:                                           "the request body is a list; it must be an object",
		`{"DrainSpec":{"Deadline":31536000000000001}}`: "must be at most 8760h0m0s",
	} {
		got := request(t, "PUT", path, body)
		must.Eq(t, 400, got.code, must.Sprint(body))
		must.StrContains(t, got.body, want)
		must.True(t, w.State().Node(nodeID(1)).Draining(), must.Sprint(body))
	}
}

// A duration above a year is refused, and the answer names it.
func TestJob_durationsAreBounded(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	url := w.serve(httpapi.Options{}).URL + "/v1/jobs"
	job := func(group, task string) string {
		return `{"Job":{"ID":"web","Type":"service","TaskGroups":[{"Name":"main","Count":1,` + group + `"Tasks":[{"Name":"main"` + task + `}]}]}}`
	}
	const year, most = "31536000000000000", "9223372036854775807"
	migrate := func(d string) string {
		return `"Migrate":{"MaxParallel":1,"HealthCheck":"checks","MinHealthyTime":1,"HealthyDeadline":` + d + `},`
	}
	must.Eq(t, 200, request(t, "PUT", url, job(migrate(year), `,"KillTimeout":`+year)).code)
	for _, test := range []struct{ group, task, want string }{
		{migrate(most), "", `group "main": Migrate.HealthyDeadline is 2562047h47m16.854775807s; the most is 8760h0m0s`},
		{`"ShutdownDelay":` + most + `,`, "", `group "main": ShutdownDelay is`},
		{"", `,"KillTimeout":` + most, `group "main", task "main": KillTimeout is`},
		{"", `,"ShutdownDelay":` + most, `group "main", task "main": ShutdownDelay is`},
	} {
		got := request(t, "PUT", url, job(test.group, test.task))
		must.Eq(t, 400, got.code, must.Sprint(test))
		must.StrContains(t, got.body, test.want)
	}
	must.Eq(t, 365*24*time.Hour, w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).TaskGroups[0].Migrate.HealthyDeadline)
}
