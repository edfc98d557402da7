package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// nested is an object of that depth.
func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
}

// entries is an object with so many keys.
func entries(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// large is an object with so many values of 32 KiB, and keys that begin with the letter.
func large(letter string, n int) string {
	return strings.NewReplacer("k", letter, `"v"`, `"`+strings.Repeat("v", 32<<10)+`"`).Replace(entries(n))
}

func repeated(n int, one string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + "]"
}

// jobBody is the body of a registration, with more fields of the job, its group and its task.
func jobBody(job, group, task string) string {
	return `{"Job":{"ID":"new",` + job + `"TaskGroups":[{"Name":"web",` + group + `"Tasks":[{"Name":"main","Driver":"mock",` + task + `"User":"root"}]}]}}`
}

// A registration and a plan refuse what could stop a client or a server, and name the place. A config
// that was nested 9,993 levels deep was accepted before.
//
//race:skip one request after the other
func TestJob_limits(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	send := func(path, body string) (int, string) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("PUT", path, strings.NewReader(body)))
		return rec.Code, rec.Body.String()
	}
	long := strings.Repeat("x", 1<<20)
	const ofTask = `group "web", task "main": `
	for what, test := range map[string]struct{ body, want string }{
		"a config":                  {jobBody("", "", `"Config":`+nested(65)+`,`), ofTask + "config is nested 65 levels deep, at most 64"},
		"a config of 20 KB":         {jobBody("", "", `"Config":`+nested(9_993)+`,`), ofTask + "config is nested 9993 levels deep, at most 64"},
		"more than the decoder":     {jobBody("", "", `"Config":`+nested(20_000)+`,`), "Job.TaskGroups[0].Tasks[0].Config.a.a…: the request body is nested 20006 levels deep, at most 80"},
		"arrays":                    {jobBody("", "", `"Config":{"a":`+strings.Repeat("[", 500)+strings.Repeat("]", 500)+`},`), ofTask + "config is nested 501 levels deep"},
		"an unknown field":          {jobBody(`"Unknown":`+nested(79)+`,`, "", ""), "Job.Unknown.a.a.a.a.a.a…: the request body is nested 81 levels deep, at most 80"},
		"an unknown field at top":   {`{"Other":` + nested(9_000) + `,"Job":null}`, "Job must be specified"},
		"an affinity":               {jobBody(`"Affinities":[`+nested(100)+`],`, "", ""), "Job.Affinities[0].a"},
		"a constraint":              {jobBody(`"Constraints":[{"LTarget":`+nested(100)+`}],`, "", ""), "Job.Constraints[0].LTarget.a"},
		"meta":                      {jobBody("", `"Meta":{"a":`+nested(100)+`},`, ""), "Job.TaskGroups[0].Meta.a.a"},
		"meta that is no text":      {jobBody("", `"Meta":{"a":{}},`, ""), `Job.TaskGroups[0].Meta.a is an object; it must be a string`},
		"an answer's config":        {jobBody("", "", `"Config":{"left_out_of_the_answer":"why"},`), ofTask + "config comes from an answer"},
		"a million keys":            {jobBody("", "", `"Env":`+entries(300_000)+`,`), ofTask + "env: at most 1000 entries but found 300000"},
		"volumes":                   {jobBody("", `"Volumes":`+strings.ReplaceAll(entries(1001), `"v"`, `{}`)+`,`, ""), `group "web": volumes: at most 1000 entries but found 1001`},
		"a key of 1 MiB":            {jobBody("", "", `"Meta":{"`+long+`":"v"},`), ofTask + `meta: the key "` + long[:64] + `…" has 1048576 bytes, at most 256`},
		"a value of 1 MiB":          {jobBody("", "", `"Env":{"k":"`+long+`"},`), ofTask + `env: the value of "k" has 1048576 bytes, at most 32768`},
		"an environment":            {jobBody(`"Meta":`+large("j", 5)+`,`, `"Meta":`+large("g", 5)+`,`, `"Env":`+large("e", 5)+`,"Meta":`+large("t", 4)+`,`), ofTask + "env, and twice the meta of the job, the group and the task, have 1081718 bytes, at most 1048576"},
		"a config of 64 KiB":        {jobBody("", "", `"Config":{"k":"`+long[:64<<10]+`"},`), "Task group \"web\": Task \"main\": Config has at most 65536 bytes but found 65544"},
		"a variable's name with =":  {jobBody("", "", `"Env":{"a=b":"v"},`), ofTask + `env: "a=b" is no name of a variable`},
		"a variable without a name": {jobBody("", "", `"Env":{"":"v"},`), ofTask + `env: "" is no name of a variable`},
		"a variable with a NUL":     {jobBody("", "", `"Env":{"a":"\u0000"},`), ofTask + `env: the value of "a" contains a NUL`},
		"a million of 300 bytes":    {jobBody("", `"Count":1000000,`, `"Env":{"k":"`+long[:300]+`"},`), "the job has 301 bytes of Config, Env, Meta, Constraints and Devices, and each of its 1000000 allocations holds a copy: at most 268435456 bytes together"},
		"the name of a task":        {`{"Job":{"ID":"x","TaskGroups":[{"Name":"web","Tasks":[{"Name":"` + long + `"}]}]}}`, `group "web", task 0: the name has 1048576 bytes, at most 256`},
		"the name of a group":       {`{"Job":{"ID":"x","TaskGroups":[{"Name":"` + long + `"}]}}`, `group 0: the name has 1048576 bytes, at most 256`},
		"the id":                    {`{"Job":{"ID":"` + long + `"}}`, "Invalid job ID: it is longer than 256 bytes"},
		"a datacenter":              {jobBody(`"Datacenters":["dc1","`+long+`"],`, "", ""), "job: datacenters: name 1 has 1048576 bytes, at most 256"},
		"datacenters":               {jobBody(`"Datacenters":`+repeated(101, `"dc1"`)+`,`, "", ""), "job: datacenters: at most 100 but found 101"},
		"constraints":               {jobBody(`"Constraints":`+repeated(101, `{"LTarget":"a"}`)+`,`, "", ""), "job: constraints: at most 100 but found 101"},
		"node classes":              {jobBody("", `"Constraints":`+repeated(101, `{"LTarget":"${node.class}","RTarget":"a"}`)+`,`, ""), `group "web": constraints: at most 100 but found 101`},
		"classes of one constraint": {jobBody("", "", `"Constraints":[{"LTarget":"${node.class}","Operand":"set_contains_any","RTarget":"`+long+`"}],`), ofTask + "constraint 0: a part has 1048576 bytes, at most 1024"},
		"groups":                    {`{"Job":{"ID":"x","TaskGroups":` + repeated(1001, `{"Name":"g","Tasks":[{"Name":"t"}]}`) + `}}`, "A job has at most 1000 task groups but found 1001"},
		"tasks":                     {`{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Tasks":` + repeated(2001, `{"Name":"t"}`) + `}]}}`, "A job has at most 2000 tasks but found 2001"},
		"a huge number":             {jobBody(`"Priority":1e999,`, "", ""), "Job.Priority is the number 1e999; it must be a whole number of at most 64 bits"},
	} {
		for _, path := range []string{"/v1/jobs", "/v1/job/new/plan"} {
			code, text := send(path, test.body)
			must.Eq(t, http.StatusBadRequest, code, must.Sprint(what, path))
			must.StrContains(t, text, test.want, must.Sprint(what, path))
			must.Less(t, 2000, len(text), must.Sprint(what, path))
		}
	}
	must.Nil(t, w.State().Job(cluster.JobKey{Namespace: "default", ID: "new"}))

	for path, body := range map[string]string{
		"/v1/node/" + uuid('a', 1) + "/drain":         `{"DrainSpec":{},"Meta":{"a":` + nested(100) + `}}`,
		"/v1/node/" + uuid('a', 1) + "/eligibility":   `{"Eligibility":"eligible","X":` + nested(20_000) + `}`,
		"/v1/volume/csi/v":                            `{"Volumes":[{"Parameters":{"a":` + nested(100) + `}}]}`,
		"/v1/client/" + uuid('a', 1) + "/register":    `{"Node":{"Attributes":` + nested(100) + `}}`,
		"/v1/client/" + uuid('a', 1) + "/allocations": `{"Allocs":[{"ID":"x","TaskStates":` + nested(100) + `}]}`,
		"/v1/client/" + uuid('a', 1) + "/claims":      `{"X":` + nested(100) + `}`,
		"/v1/search":                                  `{"X":` + nested(100) + `}`,
	} {
		code, text := send(path, body)
		must.Eq(t, http.StatusBadRequest, code, must.Sprint(path))
		must.StrContains(t, text, "levels deep, at most 80", must.Sprint(path))
	}
}

// Every refusal of a registration and of a plan names the place of the mistake, and no type of this program. The
// messages of encoding/json had no index and a type; the second reason of a group had no group; a group without a
// name had no place; and the durations of a task had no group.
func TestJob_placesOfMistakes(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	third := func(task string) string {
		return `{"Job":{"ID":"new","TaskGroups":[{},{},{"Name":"web","Tasks":[{"Name":"main",` + task + `}]}]}}`
	}
	const resources = "Job.TaskGroups[2].Tasks[0].Resources."
	for body, want := range map[string]string{
		third(`"Resources":{"CPU":"100"}`):                                                                  resources + "CPU is a string; it must be a whole number of at most 64 bits",
		third(`"Resources":{"CPU":1.5}`):                                                                    resources + "CPU is the number 1.5; it must be a whole number of at most 64 bits",
		third(`"Resources":{"MemoryMB":1e1}`):                                                               resources + "MemoryMB is the number 1e1; it must be a whole number of at most 64 bits",
		third(`"Resources":{"CPU":` + strings.Repeat("9", 100_000) + `}`):                                   resources + "CPU is the number " + strings.Repeat("9", 64) + "…; it must be a whole number of at most 64 bits",
		third(`"Resources":[]`):                                                                             "Job.TaskGroups[2].Tasks[0].Resources is a list; it must be an object",
		third(`"Resources":{"Devices":[{"Name":"gpu"},{"Name":"gpu","Count":-1}]}`):                         resources + "Devices[1].Count is the number -1; it must be a whole number of at most 64 bits, not negative",
		third(`"Resources":{"Devices":[{"Name":"gpu","Affinities":[{"LTarget":"a"},{"Weight":"heavy"}]}]}`): resources + "Devices[0].Affinities[1].Weight is a string; it must be a whole number of at most 64 bits",
		third(`"KillTimeout":true`):                                                                         "Job.TaskGroups[2].Tasks[0].KillTimeout is true or false; it must be a whole number of nanoseconds, of at most 64 bits, such as 30000000000 for 30 seconds",
		third(`"Leader":"yes"`):                                                                             "Job.TaskGroups[2].Tasks[0].Leader is a string; it must be true or false",
		third(`"Env":["a"]`):                                                                                "Job.TaskGroups[2].Tasks[0].Env is a list; it must be an object",
		third(`"Env":{"PORT":80}`):                                                                          "Job.TaskGroups[2].Tasks[0].Env.PORT is a number; it must be a string",
		third(`"User":true`):                                                                                "Job.TaskGroups[2].Tasks[0].User is true or false; it must be a string",
		third(`"Name":"web"`):                                                                               "Job.TaskGroups[2].Tasks[0].Name is in the request body twice",
		third(`"VolumeMounts":{}`):                                                                          "Job.TaskGroups[2].Tasks[0].VolumeMounts is an object; it must be a list",
		third(`"Driver":mock`):                                                                              "Job.TaskGroups[2].Tasks[0].Driver: the request body is not JSON at byte 87: invalid character 'm' looking for beginning of value",
		`{"Job":[]}`:                                                                                        "Job is a list; it must be an object",
		`[]`:                                                                                                "the request body is a list; it must be an object",
		`{"Job"`:                                                                                            "the request body is not JSON at byte 6: unexpected end of JSON input",
		jobBody("", `"Migrate":{"MinHealthyTime":2,"HealthyDeadline":1},"Volumes":{"a":{"Type":"csi","AccessMode":"single-node-writer"}},`, ""): "Task group \"web\": MinHealthyTime must be less than HealthyDeadline\nTask group \"web\": Volume \"a\": Invalid source: it is empty",
		jobBody("", "", `"KillSignal":"x","Lifecycle":{"Hook":"y"},`): "Task group \"web\": Task \"main\": Invalid kill signal \"x\": it must be a name such as SIGTERM\n" +
			"Task group \"web\": Task \"main\": Invalid lifecycle hook: \"y\"\nTask group \"web\": A group needs at least 1 task without a lifecycle block",
		`{"Job":{"ID":"new","TaskGroups":[{"Tasks":[{}]}]}}`:                                          "Task group 0: Missing task group name\nTask group 0: Task 0: Invalid name: it is empty",
		`{"Job":{"ID":"new","TaskGroups":[{"Tasks":[{"Name":"` + strings.Repeat("x", 300) + `"}]}]}}`: "group 0, task 0: the name has 300 bytes, at most 256",
	} {
		for _, path := range []string{"/v1/jobs", "/v1/job/new/plan"} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("PUT", path, strings.NewReader(body)))
			must.Eq(t, http.StatusBadRequest, rec.Code, must.Sprint(body))
			must.Eq(t, want, rec.Body.String(), must.Sprint(body))
		}
	}
}

// The facts of a node are bounded, and the answer names the one that is too large.
func TestRegisterNode_limits(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	h := w.handler(w.backend(), httpapi.Options{})
	for fields, want := range map[string]string{
		`"Attributes":` + entries(4_096):                               "",
		`"Attributes":` + entries(4_097):                               "attributes: at most 4096 entries but found 4097",
		`"Meta":{"` + strings.Repeat("k", 40_000) + `":"v"}`:           `meta: the key "` + strings.Repeat("k", 64) + `…" has 40000 bytes, at most 32768`,
		`"Links":{"a":"` + strings.Repeat("v", 40_000) + `"}`:          `links: the value of "a" has 40000 bytes, at most 32768`,
		`"NodeClass":"` + strings.Repeat("c", 257) + `"`:               "the node class has 257 bytes, at most 256",
		`"Datacenter":"` + strings.Repeat("c", 257) + `"`:              "the datacenter has 257 bytes, at most 256",
		`"NodePool":"` + strings.Repeat("c", 257) + `","NodeClass":""`: "the node pool has 257 bytes, at most 256",
	} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/client/"+uuid('a', 1)+"/register", strings.NewReader(`{"Node":{"SecretID":"s",`+fields+`}}`)))
		if want == "" {
			must.Eq(t, http.StatusOK, rec.Code)
			continue
		}
		must.Eq(t, http.StatusBadRequest, rec.Code, must.Sprint(want))
		must.Eq(t, want, rec.Body.String())
	}
}

// largest are jobs just below the limits, by what they have most of.
func largest() map[string]string {
	tasks := make([]string, 2_000)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"Name":"%0256d","Driver":"mock"}`, i)
	}
	groups := make([]string, 1_000)
	for i := range groups {
		groups[i] = fmt.Sprintf(`{"Name":"%0256d","Tasks":[{"Name":"main","Driver":"mock"}]}`, i)
	}
	var texts []string // 15 configs of 64 KiB, of characters that JSON escapes
	for i := range 15 {
		texts = append(texts, fmt.Sprintf(`{"Name":"t%d","Driver":"mock","Config":{"k":"%s"},"Env":{"%s":"\u0001"}}`, i, strings.Repeat(`\u0001`, (64<<10-8)/6), strings.Repeat("k", 256)))
	}
	values := make([]string, 30) // 30 values of 32 KiB, which need six times as much in JSON
	for i := range values {
		values[i] = fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat(`\u0001`, 20_000))
	}
	return map[string]string{
		"depth":   jobBody("", "", `"Config":`+nested(64)+`,`),
		"entries": jobBody("", `"Meta":`+entries(1000)+`,`, `"Env":`+entries(1000)+`,"Meta":`+entries(1000)+`,`),
		"tasks":   `{"Job":{"ID":"new","TaskGroups":[{"Name":"web","Tasks":[` + strings.Join(tasks, ",") + `]}]}}`,
		"groups":  `{"Job":{"ID":"new","TaskGroups":[` + strings.Join(groups, ",") + `]}}`,
		"bytes":   `{"Job":{"ID":"new","TaskGroups":[{"Name":"web","Tasks":[` + strings.Join(texts, ",") + `]}]}}`,
		"escapes": jobBody("", "", `"Env":{`+strings.Join(values, ",")+`},`),
		"constraints": jobBody(`"Datacenters":`+repeated(100, `"dc1"`)+`,"Constraints":`+repeated(100, `{"LTarget":"${attr.a}","Operand":"!=","RTarget":"`+strings.Repeat("x", 1024)+`"}`)+`,`,
			"", ""),
		"odd": jobBody("", "", `"Config":{"n":1e999,"d":{"x":2},"u":"`+"\xff"+`\ud800","z":[-0.0,123456789012345678901234567890]},"Env":{"a":"`+"\xff"+`"},`),
	}
}

// A job just below each limit arrives at the client as the servers have it.
//
//race:skip one request after the other
func TestJob_belowTheLimits(t *testing.T) {
	t.Parallel()
	for what, body := range largest() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t).nodes(1)
			h := w.handler(w.backend(), httpapi.Options{})
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/jobs", strings.NewReader(body)))
			must.Eq(t, http.StatusOK, rec.Code, must.Sprint(rec.Body))
			job := w.State().Job(cluster.JobKey{Namespace: "default", ID: "new"})
			entry := result.Of(shims.Encode(&shims.JobRegister{Job: job})).OK(t)
			must.Less(t, shims.MaxRequestEntry, len(entry))
			w.place(1, job, nodeID(1))
			w.restore()
			changes := changesOf(t, h)
			must.SliceEmpty(t, changes.Unreadable)
			must.Len(t, 1, changes.Allocs)
			must.Eq(t, w.State().Job(job.Key()), changes.Allocs[0].Job)
		})
	}
}

// The limit of an environment counts an entry of a meta map once if a task replaces it, and once if its key has
// capital letters only.
func TestJob_environmentWithReplacedMeta(t *testing.T) {
	t.Parallel()
	h := newFixture(t).nodes(1)
	for what, body := range map[string]string{
		"replaced": jobBody(`"Meta":`+large("m", 10)+`,`, `"Meta":`+large("m", 10)+`,`, `"Meta":`+large("m", 10)+`,`),
		"capitals": jobBody(`"Meta":`+large("M", 10)+`,`, `"Meta":`+large("N", 10)+`,`, `"Meta":`+large("O", 10)+`,`),
	} {
		rec := httptest.NewRecorder()
		h.handler(h.backend(), httpapi.Options{}).ServeHTTP(rec, httptest.NewRequest("PUT", "/v1/jobs", strings.NewReader(body)))
		must.Eq(t, http.StatusOK, rec.Code, must.Sprint(what, rec.Body))
	}
}

// changesOf reads all allocations of the first node, as its client does.
func changesOf(t testing.TB, h http.Handler) client.Changes {
	t.Helper()
	s := httptest.NewServer(h)
	defer s.Close()
	c := result.Of(client.New(client.Config{Address: s.URL})).OK(t)
	defer c.Close()
	return result.Of(c.NodeSide(nodeID(1)).Changes(t.Context(), client.Since{}, 0)).OK(t)
}

// deepJob is a job that only a server of an older release accepts.
func deepJob(w *fixture, id string, levels int) *cluster.Job {
	j := &cluster.Job{Namespace: cluster.DefaultNamespace, ID: cluster.JobID(id), TaskGroups: []*cluster.TaskGroup{{
		Name: "web", Count: 9, Tasks: []*cluster.Task{{Name: "main", Driver: "mock", Config: json.RawMessage(nested(levels))}},
	}}}
	return w.Job(j)
}
