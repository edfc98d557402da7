package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// canary is in every environment, configuration and text of a driver of a canaryWorld.
const canary = "hunter2"

// canaryWorld has jobs with secrets in two versions, an allocation that waits for its end, one that
// waits for a node, and a drain.
func canaryWorld(t *testing.T) *fixture {
	t.Helper()
	w := newFixture(t).nodes(2)
	for range 2 {
		j := w.job("web", cluster.JobService, 1).Copy()
		task := j.TaskGroups[0].Tasks[0]
		task.Driver, task.Env = "raw_exec", map[string]string{"PASSWORD": canary}
		task.Config = json.RawMessage(`{"command":"/bin/` + canary + `","args":["-p","` + canary + `"]}`)
		j.Meta = map[string]string{"round": fmt.Sprint(w.Index)}
		j = w.Job(j)
		if w.State().Alloc(allocID(1)) == nil {
			w.place(1, j, nodeID(1))
		}
	}
	large := w.State().Job(cluster.JobKey{Namespace: "default", ID: "web"}).Copy()
	large.ID = "large"
	large.TaskGroups[0].Tasks[0].Resources.CPU = 1 << 20
	must.NotNil(t, w.schedule(w.Job(large)).Blocked)
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	w.mark(1, cluster.MarkPaced)
	w.stop(1)
	w.must(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{{
		Node: nodeID(1), Alloc: allocID(1), ClientStatus: cluster.ClientRunning, At: w.Now(),
		TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{{
			Name: "main", State: cluster.TaskRunning,
			Waiting: &cluster.TaskWait{For: cluster.WaitProcess, Detail: "pid 7 (state D): /bin/x -p " + canary},
			Events: []cluster.TaskEvent{
				{Type: "Driver Failure", Time: w.Now(), Message: "failed to start task: no such file: /bin/" + canary},
				{Type: "Started", Time: w.Now(), Message: "Task started by client"},
				{Type: "Started", Time: w.Now(), Details: map[string]string{"command": canary}},
			},
		}}},
	}}})
	return w
}

// lines reads an event stream from its first change to its newest.
func lines(t *testing.T, url, token string, newest uint64) string {
	t.Helper()
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)).OK(t)
	r.Header.Set("X-Nomad-Token", token)
	answer := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
	defer answer.Body.Close()
	must.Eq(t, 200, answer.StatusCode)
	var all strings.Builder
	for read := bufio.NewScanner(answer.Body); read.Scan(); {
		all.WriteString(read.Text())
		if strings.Contains(read.Text(), fmt.Sprintf(`"Index":%d`, newest)) {
			return all.String()
		}
	}
	t.Fatalf("the stream ended: %s", all.String())
	return ""
}

// A thief of a token that may read sees no environment and no configuration of a driver: in no answer
// of any route, not by a filter, not in an event, not in the words of a client. He changes nothing.
func TestSecurity_ReadToken(t *testing.T) {
	t.Parallel()
	w := canaryWorld(t)
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	newest := w.State().Index()
	var eval string
	for e := range w.State().Evals() {
		eval = string(e.ID)
	}
	queries := []string{"", "?related=true&all=true&resources=true&os=true&diffs=true&changes=", "?filter=" + url.QueryEscape(`ID != ""`)}
	var showsWriter []string
	for _, name := range httpapi.RouteNames() {
		method, path, _ := strings.Cut(name, " ")
		id := uuid('a', 1)
		switch {
		case strings.HasPrefix(path, "/v1/job/"):
			id = "web"
		case strings.Contains(path, "/allocation/"):
			id = uuid('b', 1)
		case strings.Contains(path, "/evaluation/"):
			id = eval
		}
		path = strings.NewReplacer("{id}", id, "{profile}", "heap").Replace(path)
		if strings.HasSuffix(name, httpapi.EventStreamPath) {
			must.StrNotContains(t, lines(t, base+path+"?index=1", "reader-token", newest), canary)
			must.StrContains(t, lines(t, base+path+"?index=1", "writer-token", newest), canary)
			continue
		}
		if method != http.MethodGet && !strings.HasSuffix(path, "/search") && !strings.HasSuffix(path, "/validate/job") && path != httpapi.DrainPlanPath {
			must.Eq(t, 403, request(t, method, base+path, "{}", "X-Nomad-Token", "reader-token").code, must.Sprint(name))
			continue
		}
		for _, query := range queries {
			must.StrNotContains(t, request(t, method, base+path+query, `{"Prefix":"h"}`, "X-Nomad-Token", "reader-token").body, canary, must.Sprint(name, query))
			if strings.Contains(request(t, method, base+path+query, `{"Prefix":"h"}`, "X-Nomad-Token", "writer-token").body, canary) {
				showsWriter = append(showsWriter, name)
			}
		}
	}
	must.Eq(t, []string{
		"GET /v1/node/{id}/allocations", "GET /v1/job/{id}", "GET /v1/job/{id}/allocations", "GET /v1/job/{id}/versions",
		"GET /v1/allocations", "GET /v1/allocation/{id}", "GET /v1/node/{id}/drain",
	}, slices.Compact(showsWriter), must.Sprint("with the right to write the answers are complete"))
	for _, path := range []string{"/v1/jobs", "/v1/allocations", "/v1/node/" + uuid('a', 1) + "/allocations"} {
		for _, filter := range []string{`Job.TaskGroups.0.Tasks.0.Env.PASSWORD == "` + canary + `"`, `TaskStates.main.Waiting.Detail contains "` + canary + `"`} {
			got := request(t, "GET", base+path+"?filter="+url.QueryEscape(filter), "", "X-Nomad-Token", "reader-token")
			must.True(t, got.code != 200 || got.body == "[]", must.Sprint(path, got.body))
		}
	}
	must.StrContains(t, request(t, "GET", base+"/v1/allocation/"+uuid('b', 1), "", "X-Nomad-Token", "reader-token").body, "Task started by client")
	must.Eq(t, newest, w.State().Index())
}

// A thief of a token that registers nodes adds nodes. He replaces no known node, reads nothing, and
// does not speak for a node, also not for one that he has added: it has a secret of its own.
func TestSecurity_NodeToken(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	register := func(n int, secret string) int {
		return request(t, "PUT", base+"/v1/client/"+uuid('a', n)+"/register", `{"Node":{"SecretID":"`+secret+`","Status":"ready","SchedulingEligibility":"eligible"}}`, "X-Nomad-Token", "node-token").code
	}
	before := *w.State().Node(nodeID(1))
	must.Eq(t, 403, register(1, "another"))
	must.Eq(t, before, *w.State().Node(nodeID(1)))
	must.Eq(t, 200, register(2, "mine"))
	must.Eq(t, 403, register(2, "other"))
	must.Eq(t, 403, request(t, "PUT", base+"/v1/client/"+uuid('a', 2)+"/heartbeat", "", "X-Nomad-Token", "node-token").code)
	must.Eq(t, 403, request(t, "GET", base+"/v1/nodes", "", "X-Nomad-Token", "node-token").code)
	must.Eq(t, 200, request(t, "PUT", base+"/v1/client/"+uuid('a', 2)+"/heartbeat", "", "X-Nomad-Token", "mine").code)
}

// A thief of the secret of a node acts as that node: he reads its allocations with their environments,
// reports them, and registers the node again. He speaks for no other node, and neither ends a
// quarantine nor a drain.
func TestSecurity_NodeSecret(t *testing.T) {
	t.Parallel()
	w := canaryWorld(t)
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	send := func(method, path, body string) answer {
		return request(t, method, base+path, body, "X-Nomad-Token", secretOf(nodeID(1)))
	}
	must.StrContains(t, send("GET", "/v1/node/"+uuid('a', 1)+"/allocations", "").body, canary)
	must.Eq(t, 403, send("GET", "/v1/node/"+uuid('a', 2)+"/allocations", "").code)
	must.Eq(t, 403, send("GET", "/v1/job/web", "").code)
	must.Eq(t, 403, send("PUT", "/v1/client/"+uuid('a', 2)+"/register", `{"Node":{"SecretID":"`+secretOf(nodeID(1))+`"}}`).code)

	again := `{"Node":{"SecretID":"` + secretOf(nodeID(1)) + `","Status":"ready","SchedulingEligibility":"eligible","NodeClass":"vault"}}`
	must.Eq(t, 200, send("PUT", "/v1/client/"+uuid('a', 1)+"/register", again).code)
	n := w.State().Node(nodeID(1))
	must.True(t, n.Draining())
	must.Eq(t, cluster.NodeIneligible, n.SchedulingEligibility)
	must.Eq(t, "vault", n.NodeClass, must.Sprint("he lies about the node, and jobs come to it that it should not have"))
	must.Eq(t, 403, send("PUT", "/v1/client/"+uuid('a', 1)+"/register", `{"Node":{"SecretID":"stolen"}}`).code, must.Sprint("he does not lock the node out"))

	w.place(2, w.job("plain", cluster.JobService, 1), nodeID(2))
	report := `{"Allocs":[{"ID":"` + uuid('b', 2) + `","ClientStatus":"failed"}]}`
	must.Eq(t, 200, send("PUT", "/v1/client/"+uuid('a', 1)+"/allocations", report).code)
	must.Eq(t, cluster.ClientRunning, w.State().Alloc(allocID(2)).ClientStatus, must.Sprint("the allocation of another node"))

	result.Of(w.writer().PurgeNode(t.Context(), nodeID(1))).OK(t)
	must.Eq(t, 403, send("PUT", "/v1/client/"+uuid('a', 1)+"/register", again).code, must.Sprint("a purge ends it"))
	must.Eq(t, 403, send("PUT", "/v1/client/"+uuid('a', 1)+"/heartbeat", "").code)
}

// A thief of a token that may write sees and changes everything. No answer but the file with the whole
// state has the secret of a node, and there is no route that shows or makes a token.
func TestSecurity_WriteToken(t *testing.T) {
	t.Parallel()
	w := canaryWorld(t)
	base := w.serveAs(guarded(w), httpapi.Options{}).URL
	for _, name := range httpapi.RouteNames() {
		method, path, _ := strings.Cut(name, " ")
		must.StrNotContains(t, path, "token")
		must.StrNotContains(t, path, "/acl")
		if method != http.MethodGet || strings.HasSuffix(name, httpapi.EventStreamPath) || path == httpapi.SnapshotPath {
			continue
		}
		path = strings.NewReplacer("{id}", uuid('a', 1), "{profile}", "cmdline").Replace(path)
		must.StrNotContains(t, request(t, method, base+path, "", "X-Nomad-Token", "writer-token").body, secretOf(nodeID(1)), must.Sprint(name))
	}
	must.StrNotContains(t, lines(t, base+httpapi.EventStreamPath+"?index=1", "writer-token", w.State().Index()), secretOf(nodeID(1)))
}

// lent are tokens of which one can be taken away.
type lent struct {
	mu  sync.Mutex
	all tokens // guarded by mu
}

func (l *lent) Identify(token string) (httpapi.Identity, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Identify(token)
}

func (l *lent) set(token string, who httpapi.Identity) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[token] = who
}

// An event stream does not outlive a right of its token.
func TestSecurity_RemovedToken(t *testing.T) {
	t.Parallel()
	w := canaryWorld(t)
	b := w.backend()
	access := &lent{all: everyToken()}
	b.Access = access
	base := w.serveAs(b, httpapi.Options{}).URL
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, base+httpapi.EventStreamPath+"?index=1", nil)).OK(t)
	r.Header.Set("X-Nomad-Token", "writer-token")
	answer := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
	defer answer.Body.Close()
	read := bufio.NewReader(answer.Body)
	result.Of(read.ReadString('\n')).OK(t)
	access.set("writer-token", httpapi.Identity{Name: "ops", Read: true})
	w.job("late-"+canary, cluster.JobService, 1)
	must.StrNotContains(t, string(result.Of(io.ReadAll(read)).OK(t)), "late-"+canary)
	must.Eq(t, 403, request(t, "PUT", base+"/v1/system/gc", "", "X-Nomad-Token", "writer-token").code)
}
