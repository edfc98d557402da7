package httpapi_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

type tokens map[string]httpapi.Identity

func (all tokens) Identify(token string) (httpapi.Identity, bool) {
	who, known := all[token]
	return who, known
}

func everyToken() tokens {
	return tokens{
		"reader-token": {Name: "dashboard", Read: true}, "writer-token": {Name: "ops", Read: true, Write: true, Node: true},
		"node-token": {Name: "machines", Node: true}, "odd-token": {Name: "odd", Write: true}, "idle-token": {Name: "idle"},
	}
}

// A token is in one of two headers. A node's secret allows the routes of that node, and no other.
// TestSecurity_Rights has all routes.
func TestAccess(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	own, other := "/v1/node/"+uuid('a', 1)+"/allocations", "/v1/node/"+uuid('a', 2)+"/allocations"
	secret := secretOf(nodeID(1))
	for _, test := range []struct{ path, token, text string }{
		{own, "", "Permission denied"},
		{own, "idle-token", "Permission denied"},
		{own, "unheard-of", "ACL token not found"},
		{own, secret[:len(secret)-1], "ACL token not found"},
		{own, secret, ""},
		{own, "odd-token", ""},
		{other, secret, "ACL token not found"},
		{"/v1/node/none", "", "Permission denied"}, // a caller without a right does not learn which nodes exist
	} {
		for _, header := range [][]string{{"X-Nomad-Token", test.token}, {"Authorization", "Bearer " + test.token}} {
			got := request(t, "GET", url+test.path, "", header...)
			must.Eq(t, iff(test.text == "", 200, 403), got.code, must.Sprint(test, header))
			must.True(t, test.text == "" || test.text == got.body, must.Sprint(test, header, got.body))
		}
	}
	must.Eq(t, 403, request(t, "GET", url+"/v1/nodes", "", "Authorization", "Basic writer-token").code)
}

func iff[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

// A node without a secret has none that an empty token could be.
func TestAccess_noSecret(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	result.Of(w.writer().RegisterNode(t.Context(), &cluster.Node{ID: "bare"})).OK(t)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	must.Eq(t, 403, request(t, "PUT", url+"/v1/client/bare/heartbeat", "").code)
	must.Eq(t, 403, request(t, "PUT", url+"/v1/client/bare/heartbeat", "", "Authorization", "Bearer ").code)
	must.Eq(t, 403, request(t, "PUT", url+"/v1/client/bare/register", `{"Node":{"SecretID":"mine"}}`, "X-Nomad-Token", "mine").code)
}

// A drain holds the name of the identity that updated it.
func TestAccess_updatedBy(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(3)
	url := w.serveAs(guarded(w), httpapi.Options{}).URL
	must.Eq(t, 200, request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", `{"DrainSpec":{}}`, "X-Nomad-Token", "writer-token").code)
	must.Eq(t, 200, request(t, "PUT", w.serve(httpapi.Options{}).URL+"/v1/node/"+uuid('a', 3)+"/drain", `{"DrainSpec":{}}`).code)
	for n, who := range map[int]string{1: "ops", 3: "token:acls-disabled"} {
		must.Eq(t, who, w.State().Node(nodeID(n)).Drain.UpdatedBy)
		must.Eq(t, who, w.State().Node(nodeID(n)).LastDrain.AccessorID)
	}
}

// No answer, log line or metric holds a token or a secret.
func TestAccess_secretsStayHidden(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(2))
	w.drain(nodeID(2), cluster.DrainSpec{})
	var mu sync.Mutex
	var logged bytes.Buffer
	observed := map[string]int{}
	url := w.serveAs(guarded(w), httpapi.Options{
		Logger: hclog.New(&hclog.LoggerOptions{Output: &logged, Level: hclog.Trace, Mutex: &mu}),
		Observe: func(route string, code int, took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			observed[fmt.Sprint(route, " ", code)]++
			must.GreaterEq(t, 0, took)
		},
	}).URL
	hidden := []string{"writer-token", "unheard-of", secretOf(nodeID(1)), secretOf(nodeID(2))}
	for _, path := range []string{
		"/v1/nodes?resources=true&os=true", "/v1/node/" + uuid('a', 1), "/v1/node/" + uuid('a', 2) + "/allocations", "/v1/node/" + uuid('a', 1) + "/drain", "/v1/drains",
		"/v1/jobs", "/v1/allocations", "/v1/evaluations", "/v1/agent/self", "/v1/agent/members", "/v1/nodes?filter=SecretID", "/v1/nodes?region=mars", "/v1/none",
	} {
		for _, token := range hidden {
			got := request(t, "GET", url+path, "", "X-Nomad-Token", token)
			for _, secret := range hidden {
				must.StrNotContains(t, got.body, secret)
				must.StrNotContains(t, fmt.Sprint(got.header), secret)
			}
		}
	}
	request(t, "PATCH", url+"/v1/nodes", "")
	w.broken = fmt.Errorf("quorum lost: %w", httpapi.ErrUnknown)
	request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", `{}`, "X-Nomad-Token", "writer-token")
	mu.Lock()
	defer mu.Unlock()
	must.StrContains(t, logged.String(), "quorum lost")
	must.StrNotContains(t, logged.String(), "mars", must.Sprint("a mistake of the client is not logged"))
	for _, secret := range hidden {
		must.StrNotContains(t, logged.String(), secret)
	}
	must.Eq(t, 1, observed["GET /v1/drains 200"])
	must.Eq(t, 3, observed["GET /v1/drains 403"])
	must.Eq(t, 1, observed["PUT /v1/node/{id}/drain 500"])
	must.Eq(t, 4, observed["other 501"])
	must.Eq(t, 1, observed["other 405"])
	for route := range observed {
		must.StrNotContains(t, route, uuid('a', 1), must.Sprint("labels do not grow with the cluster"))
	}
}

// An answer 405 lists the other methods of the path.
func TestAllow(t *testing.T) {
	t.Parallel()
	url := newFixture(t).serve(httpapi.Options{}).URL
	got := request(t, "PATCH", url+"/v1/job/x", "")
	must.Eq(t, 405, got.code)
	must.Eq(t, "DELETE, GET, POST, PUT", got.header.Get("Allow"))
	must.Eq(t, "", request(t, "HEAD", url+"/v1/nodes", "").body)
}

// NewHandler refuses a bad backend or option, and names the field.
func TestNewHandler(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	for field, test := range map[string]struct {
		edit    func(*httpapi.Backend)
		options httpapi.Options
	}{
		"Backend.Reader":               {edit: func(b *httpapi.Backend) { b.Reader = nil }},
		"Backend.Writer":               {edit: func(b *httpapi.Backend) { b.Writer = nil }},
		"Backend.Peers":                {edit: func(b *httpapi.Backend) { b.Peers = nil }},
		"Backend.Drains":               {edit: func(b *httpapi.Backend) { b.Drains = nil }},
		"Options.MaxBody":              {options: httpapi.Options{MaxBody: -1}},
		"Options.MaxBlocking":          {options: httpapi.Options{MaxBlocking: -1}},
		"Options.MaxBlockingPerClient": {options: httpapi.Options{MaxBlockingPerClient: -1}},
		"Options.MaxWait":              {options: httpapi.Options{MaxWait: -1}},
	} {
		b := w.backend()
		if test.edit != nil {
			test.edit(&b)
		}
		_, err := httpapi.NewHandler(b, test.options)
		must.ErrorContains(t, err, field)
	}
}

// follower is a server that does not lead, with an empty state. It forwards requests to the
// leader's handler.
func follower(t *testing.T, leader *fixture) (*fixture, string) {
	t.Helper()
	f := newFixture(t)
	f.follows, f.leader = true, leader.handler(leader.backend(), httpapi.Options{}).Forwarded()
	return f, f.serve(httpapi.Options{}).URL
}

// The leader answers writes and consistent reads, with its headers and body. The receiving server
// answers the other routes.
func TestForward(t *testing.T) {
	t.Parallel()
	leader := newFixture(t).nodes(2)
	leader.drain(nodeID(2), cluster.DrainSpec{})
	f, url := follower(t, leader)
	forwarded := func(method, path, body string) (answer, bool) {
		before := f.forwarded
		got := request(t, method, url+path, body)
		return got, f.forwarded > before
	}
	node := "/v1/node/" + uuid('a', 1)
	for _, test := range []struct {
		method, path, body string
		code               int
		passed             bool
	}{
		{"GET", "/v1/nodes", "", 200, true},
		{"GET", "/v1/nodes?consistent", "", 200, true},
		{"GET", "/v1/nodes?stale=false", "", 200, true},
		{"GET", "/v1/nodes?stale", "", 200, false},
		{"GET", "/v1/nodes?stale=true", "", 200, false},
		{"GET", node, "", 200, true},
		{"GET", node + "?stale", "", 404, false},
		{"GET", "/v1/node/" + uuid('a', 2) + "/drain", "", 200, true},
		{"GET", "/v1/drains?stale", "", 200, false},
		{"PUT", node + "/drain", `{"DrainSpec":{"Deadline":60000000000},"Meta":{"a":"b"}}`, 200, true},
		{"PUT", node + "/drain?stale", `{"DrainSpec":{"Deadline":60000000000}}`, 200, true},
		{"PUT", node + "/drain", "", 400, true},
		{"POST", "/v1/search", `{"Prefix":"a"}`, 200, true},
		{"POST", "/v1/search?stale", `{"Prefix":"a"}`, 200, false},
		{"GET", "/v1/nodes?index=abc", "", 400, false},
		{"GET", "/v1/agent/self", "", 200, false},
		{"GET", "/v1/status/leader", "", 200, false},
		{"GET", "/v1/operator/raft/configuration", "", 200, true},
	} {
		got, passed := forwarded(test.method, test.path, test.body)
		must.Eq(t, test.code, got.code, must.Sprint(test.method, test.path, got.body))
		must.Eq(t, test.passed, passed, must.Sprint(test.method, test.path))
	}
	must.Eq(t, time.Minute, leader.State().Node(nodeID(1)).Drain.Strategy.Deadline)
	must.Eq(t, map[string]string{"a": "b"}, leader.State().Node(nodeID(1)).Drain.Meta)

	stale, _ := forwarded("GET", "/v1/nodes?stale", "")
	must.Eq(t, "[]", stale.body)
	must.Eq(t, "42", stale.header.Get("X-Nomad-LastContact"))
	fresh, _ := forwarded("GET", "/v1/nodes", "")
	must.Eq(t, "0", fresh.header.Get("X-Nomad-LastContact"))
	must.Eq(t, leader.State().TableIndex(httpapi.TableNodes), fresh.index(t))
}

// Two servers that take each other for the leader pass a request on once, not for ever.
func TestForward_once(t *testing.T) {
	t.Parallel()
	a, b := newFixture(t), newFixture(t)
	a.follows, b.follows = true, true
	toA, toB := a.handler(a.backend(), httpapi.Options{}), b.handler(b.backend(), httpapi.Options{})
	a.leader, b.leader = toB.Forwarded(), toA.Forwarded()
	url := a.serve(httpapi.Options{}).URL
	for _, path := range []string{"/v1/nodes", "/v1/drains", "/v1/node/x/drain"} {
		got := request(t, "GET", url+path, "")
		must.Eq(t, 500, got.code)
		must.Eq(t, "No cluster leader", got.body)
	}
	must.Eq(t, 3, a.forwarded)
	must.Eq(t, 0, b.forwarded)
}

// A server that loses leadership between the check and the write forwards the request.
func TestForward_leadershipLost(t *testing.T) {
	t.Parallel()
	leader := newFixture(t).nodes(1)
	f, url := follower(t, leader)
	f.follows = false
	f.broken = fmt.Errorf("applying: %w", httpapi.ErrNotLeader)
	got := request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", `{"DrainSpec":{}}`)
	must.Eq(t, 200, got.code, must.Sprint(got.body))
	must.Eq(t, 1, f.forwarded)
	must.True(t, leader.State().Node(nodeID(1)).Draining())
}

// A forwarded reader counts for the client that sent it, not for the server that forwarded it.
func TestForward_limits(t *testing.T) {
	t.Parallel()
	bubble(t, httpapi.Options{}, func(t *testing.T, leader *fixture, _ http.Handler) {
		leader.nodes(1)
		f := newFixture(t)
		f.follows, f.leader = true, leader.handler(guarded(leader), httpapi.Options{MaxBlockingPerClient: 1}).Forwarded()
		h := f.handler(guarded(f), httpapi.Options{})
		path := at("/v1/node/"+string(nodeID(1)), leader.State().Node(nodeID(1)).ModifyIndex)
		var codes []string
		for _, token := range []string{"reader-token", "writer-token", "reader-token"} {
			r := leader.reads(h, path, "X-Nomad-Token", token)
			codes = append(codes, iff(r.waits(), "waits", fmt.Sprint(r.answer.code)))
		}
		must.Eq(t, []string{"waits", "waits", "429"}, codes)
		leader.drain(nodeID(1), cluster.DrainSpec{})
	})
}
