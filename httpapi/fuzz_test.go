package httpapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// inhabited is a small cluster with a running drain, jobs and allocations.
func inhabited(t testing.TB) *fixture {
	w := newFixture(t).atNoon().nodes(2)
	web := w.job("web", cluster.JobService, 2)
	w.place(1, web, nodeID(1))
	w.place(2, web, nodeID(2))
	w.drain(nodeID(2), cluster.DrainSpec{Deadline: time.Hour})
	return w
}

// stateIndex matches the state's index in a dump, and stateHistory its history.
var (
	stateIndex   = regexp.MustCompile(`(?m)^&\{Entry:\d+ `)
	stateHistory = regexp.MustCompile(` History:\d+\}`)
)

// dump is the whole state without its index and its history, which move with every entry, also with a refused one.
func dump(t testing.TB, s *statestore.Snapshot) string {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, statestore.Dump(&b, s))
	text := b.String()
	must.SliceLen(t, 1, stateIndex.FindAllString(text, -1))
	must.SliceLen(t, 1, stateHistory.FindAllString(text, -1))
	return stateHistory.ReplaceAllString(stateIndex.ReplaceAllString(text, "&{"), "}")
}

// tolerable are the texts that the reference answers bad input with, and 500.
func tolerable(text string) bool {
	return text == "node not found" || text == "No path to region" || text == httpapi.ErrNodeDraining.Error() ||
		strings.HasPrefix(text, "invalid scheduling eligibility ") || strings.HasPrefix(text, "node lookup failed: index error: ")
}

// hit sends a request, and checks what must hold for every request: no panic, no 5xx except those of the
// reference's table, no change of the state unless the answer is 200, JSON if the header names it, and a
// valid index.
func hit(t *testing.T, w *fixture, method, target, body string) {
	t.Helper()
	h := w.handler(w.backend(), httpapi.Options{MaxBody: 1 << 16, MaxWait: time.Nanosecond})
	r := httptest.NewRequest(method, "/", strings.NewReader(body))
	parsed, err := url.ParseRequestURI(target)
	if err != nil {
		return // no server would see it
	}
	if parsed.Path == httpapi.EventStreamPath {
		return // its answer does not end
	}
	r.URL = parsed
	before := dump(t, w.State())
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	text := rec.Body.String()
	if rec.Code >= 500 && rec.Code != http.StatusNotImplemented && !tolerable(text) {
		t.Fatalf("%s %s %q: %d %s", method, target, body, rec.Code, text)
	}
	if rec.Code == 200 {
		if text != "" && strings.HasPrefix(parsed.Path, "/v1/") && !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("%s %s %q: no JSON: %s", method, target, body, text)
		}
		again(t, w)
		return
	}
	if after := dump(t, w.State()); before != after {
		t.Fatalf("%s %s %q: %d %s, and the state changed from\n%s\nto\n%s", method, target, body, rec.Code, text, before, after)
	}
}

// again checks that the state can be answered, persisted and restored.
func again(t *testing.T, w *fixture) {
	t.Helper()
	h := w.handler(w.backend(), httpapi.Options{})
	for _, path := range []string{"/v1/nodes", "/v1/jobs?namespace=*", "/v1/allocations?namespace=*", "/v1/drains", "/v1/node/" + uuid('a', 2), "/v1/node/" + uuid('a', 2) + "/drain"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		if rec.Code != 200 || !json.Valid(rec.Body.Bytes()) {
			t.Fatalf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
	w.restore()
}

// bodies are the routes that take a body, by number, with bodies they take.
func bodies() (routes []string, samples [][]string) {
	for _, one := range []struct {
		route   string
		samples []string
	}{
		{"/v1/node/" + uuid('a', 1) + "/drain", []string{
			`{"NodeID":"x","DrainSpec":{"Deadline":3600000000000,"IgnoreSystemJobs":true},"MarkEligible":true,"Meta":{"message":"m"}}`,
			`{"DrainSpec":null,"MarkEligible":true,"Meta":{}}`, `{"DrainSpec":{"Deadline":-9223372036854775808}}`, `{"DrainSpec":{"Deadline":9223372036854775807}}`,
			`{"DrainSpec":{"Deadline":1e999}}`, `null`, ``, `[]`, `{"DrainSpec":[]}`, `{"Meta":{"\u0000":"\ud800"}}`,
		}},
		{"/v1/node/" + uuid('a', 2) + "/eligibility", []string{`{"NodeID":"x","Eligibility":"eligible"}`, `{"Eligibility":"ineligible"}`, `{"Eligibility":5}`}},
		{"/v1/jobs", []string{
			`{"Job":{"ID":"x","Type":"system","Priority":80,"TaskGroups":[{"Name":"g","Count":1,"Tasks":[{"Name":"t","KillTimeout":5,"Resources":{"CPU":1,"Devices":[{"Name":"gpu","Count":1}]},"CSIPluginConfig":{}}]}]}}`,
			`{"Job":{"ID":"web","Namespace":"a/b","TaskGroups":[{"Name":"web","Migrate":{"MaxParallel":0,"MinHealthyTime":9223372036854775807},"Disconnect":{"LostAfter":-1},"Constraints":[{"LTarget":"${node.class}","RTarget":"x"}],"Tasks":[{"ShutdownDelay":1}]}]}}`,
			`{"Job":{"ID":"x","Periodic":{}}}`, `{"Job":{"TaskGroups":[null,{"Tasks":[null]}]}}`, `{"Job":{"ID":"\u0000","TaskGroups":[{"Name":"","Count":-1}]}}`,
		}},
		{"/v1/client/" + uuid('a', 1) + "/register", []string{
			`{"Node":{"SecretID":"` + secretOf(nodeID(1)) + `","Name":"again","Status":"ready","NodeResources":{"Cpu":{"CpuShares":9223372036854775807}},"Events":[{"Timestamp":"x"}]}}`,
			`{"Node":{"SecretID":"` + secretOf(nodeID(1)) + `","Drain":true,"DrainStrategy":{"Deadline":5},"DrainID":"d9","SchedulingEligibility":"ineligible","Attributes":{"a":"b"}}}`,
		}},
		{"/v1/client/" + uuid('a', 1) + "/allocations", []string{
			`{"Allocs":[{"ID":"` + uuid('b', 1) + `","ClientStatus":"complete","Healthy":false,"HealthyAt":"2026-11-20T23:02:20Z"}]}`,
			`{"Allocs":[{"ID":"` + uuid('b', 2) + `","ClientStatus":"failed"},{"ID":"` + uuid('b', 1) + `","ClientStatus":"running","HealthyAt":"0000-01-01T00:00:00Z","Healthy":true}]}`,
		}},
		{"/v1/operator/raft/join", []string{`{"ID":"s2","Address":"[::1]:1"}`, `{"ID":"s2","Address":":"}`}},
		{"/v1/search", []string{`{"Prefix":"a","Context":"nodes"}`, `{"Context":"all"}`, `{"Context":5}`}},
		{"/v1/node/" + uuid('a', 1) + "/purge", []string{`{}`}},
		{"/v1/node/" + uuid('a', 1) + "/evaluate", []string{`x`}},
		{"/v1/job/web/evaluate", []string{`{"JobID":"x"}`}},
		{"/v1/client/" + uuid('a', 1) + "/heartbeat", []string{``}},
	} {
		routes, samples = append(routes, one.route), append(samples, one.samples)
	}
	return routes, samples
}

func FuzzBody(f *testing.F) {
	routes, samples := bodies()
	for i := range routes {
		for _, sample := range samples[i] {
			f.Add(uint8(i), sample)
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, body string) {
		hit(t, inhabited(t), "PUT", routes[int(n)%len(routes)], body)
	})
}

//race:skip one goroutine
func FuzzQuery(f *testing.F) {
	node := "/v1/node/" + uuid('a', 1)
	for _, target := range []string{
		"/v1/nodes?index=3&wait=1ms&stale&consistent=x&prefix=a0&per_page=1&next_token=x&reverse=true&pretty&os=true&resources=true&namespace=*&region=global",
		"/", "/v1/nodes?prefix=zz", "/v1/nodes?prefix=-", "/v1/nodes?per_page=2147483648", "/v1/nodes?index=18446744073709551615", "/v1/nodes?wait=-9223372036854775808ns",
		"/v1/jobs?namespace=a%2Fb&prefix=%00&next_token=%25zz/%25", "/v1/job/a%2Fb", "/v1/job/%00?namespace=%FF", "/v1/job/web/allocations?all=true", "/v1/job/web/allocations?all=x",
		"/v1/evaluations?job=web&status=pending&filter=Status==complete", "/v1/allocation/%2e%2e", "/v1/drains?next_token=end.x.y&per_page=1", "/v1/drains?next_token=node.",
		node + "?index=1", node + "/drain?index=99999&wait=1ns", node + "/allocations?index=1", "/v1/node//drain", "//v1/nodes", "/v1/../nodes", "/v1/nodes/",
		"/v1/operator/raft/peer?id=", "/v1/agent/self?pretty=0", "/v1/search?stale=&index=5&wait=1ns",
	} {
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			f.Add(method, target)
		}
	}
	f.Fuzz(func(t *testing.T, method, target string) {
		if method == "" || strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' }) || !strings.HasPrefix(target, "/") {
			return // no method, or no target of a server
		}
		hit(t, inhabited(t), method, target, `{}`)
	})
}

//race:skip one goroutine
func FuzzFilter(f *testing.F) {
	for _, filter := range []string{
		`Status=="ready"`, `Attributes["os.name"] != debian`, `"os.name" in Attributes and not (Drain == true or Name matches "^n")`, `LastDrain.Status is empty`,
		`all Events as e { e.Message == "x" }`, `any Events as i, e { e.CreateIndex == 0 }`, `DeploymentStatus.Healthy == true`, `Job.TaskGroups.0.Count == 1`, `"/Job/ID" == "web"`,
		`Drivers is not empty`, `DrainStrategy.Deadline == 1h`, `Job.Periodic == 1`, `NodeResources.Cpu.ReservableCpuCores contains 1`, `Name matches "("`, `Job.Region == x`,
		`((((((((((Name == a))))))))))`, `DesiredTransition.Migrate == true`, `HostNetworks.x.y == 1`, `Events.99.Message == x`, `LastDrain == 1`, `Time == 1`,
	} {
		for n := range 5 {
			f.Add(uint8(n), filter)
		}
	}
	lists := []string{"/v1/nodes", "/v1/allocations?namespace=*", "/v1/jobs?namespace=*", "/v1/evaluations?namespace=*", "/v1/drains"}
	f.Fuzz(func(t *testing.T, n uint8, filter string) {
		sign := "?"
		if strings.Contains(lists[int(n)%len(lists)], "?") {
			sign = "&"
		}
		hit(t, inhabited(t), "GET", lists[int(n)%len(lists)]+sign+"filter="+url.QueryEscape(filter), "")
	})
}
