package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// answer is a server's answer.
type answer struct {
	code   int
	body   string
	header http.Header
}

// index is the answer's X-Nomad-Index.
func (a answer) index(t testing.TB) uint64 {
	t.Helper()
	return result.Of(strconv.ParseUint(a.header.Get("X-Nomad-Index"), 10, 64)).OK(t)
}

// request sends a request with pairs of header names and values.
func request(t testing.TB, method, url, body string, header ...string) answer {
	t.Helper()
	r := result.Of(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))).OK(t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
	defer response.Body.Close()
	b := result.Of(io.ReadAll(response.Body)).OK(t)
	return answer{response.StatusCode, string(b), response.Header}
}

// The error table of the reference (E.2), byte for byte, and ours where it is silent.
func TestErrors(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	w.drain(nodeID(2), cluster.DrainSpec{})
	w.job("web", cluster.JobService, 1)
	url := w.serve(httpapi.Options{MaxBody: 500}).URL
	n1, n2 := "/v1/node/"+uuid('a', 1), "/v1/node/"+uuid('a', 2)
	const unknown = "/v1/node/7c6b3110-d0f8-951f-b791-e76fce97e405"
	before := w.State().Index()

	for _, test := range []struct {
		method, path, body string
		code               int
		text               string
	}{
		{"GET", unknown, "", 404, "node not found"},
		{"PUT", unknown + "/drain", `{"DrainSpec":{"Deadline":1}}`, 500, "node not found"},
		{"PUT", unknown + "/drain", `{}`, 500, "node not found"},
		{"PUT", unknown + "/eligibility", `{"Eligibility":"eligible"}`, 500, "node not found"},
		{"PUT", n1 + "/drain", "", 400, "Request body is empty"},
		{"PUT", n1 + "/drain", "{bad", 400, "the request body is not JSON at byte 2: invalid character 'b' looking for beginning of object key string"},
		{"PUT", n1 + "/drain", `{"DrainSpec":{"Deadline":"1h"}}`, 400, "DrainSpec.Deadline is a string; it must be a whole number of nanoseconds, of at most 64 bits, such as 30000000000 for 30 seconds"},
		{"DELETE", "/v1/nodes", "", 405, "Invalid method"},
		{"PUT", n1, "", 405, "Invalid method"},
		{"DELETE", n1 + "/drain", "", 405, "Invalid method"},
		{"PUT", n1 + "/eligibility", `{"Eligibility":"maybe"}`, 500, `invalid scheduling eligibility "maybe"`},
		{"PUT", n2 + "/eligibility", `{"Eligibility":"eligible"}`, 500, "can not set node's scheduling eligibility to eligible while it is draining"},
		{"GET", "/v1/nodes?index=abc", "", 400, "Invalid index"},
		{"GET", "/v1/nodes?index=-1", "", 400, "Invalid index"},
		{"GET", "/v1/nodes?wait=zz", "", 400, "Invalid wait time"},
		{"GET", "/v1/nodes?stale=maybe", "", 400, "Expect `true` or `false` for `stale` query string parameter"},
		{"GET", "/v1/nodes?per_page=abc", "", 400, "Expect a number for `per_page` query string parameter"},
		{"GET", "/v1/nodes?os=maybe", "", 400, `Failed to parse node list fields: Failed to parse value of "os" (maybe) as a bool: strconv.ParseBool: parsing "maybe": invalid syntax`},
		{"GET", "/v1/nodes?resources=2", "", 400, `Failed to parse node list fields: Failed to parse value of "resources" (2) as a bool: strconv.ParseBool: parsing "2": invalid syntax`},
		{"GET", "/v1/nodes?prefix=zz", "", 500, "node lookup failed: index error: Invalid UUID: encoding/hex: invalid byte: U+007A 'z'"},
		{"GET", "/v1/nodes?prefix=123", "", 500, "node lookup failed: index error: Input (without hyphens) must be even length"},
		{"GET", "/v1/nodes?region=mars", "", 500, "No path to region"},
		{"PUT", n1 + "/drain?region=mars", "{}", 500, "No path to region"},
		{"GET", unknown + "/allocations", "", 200, "[]"},
		{"GET", "/v1/nothing", "", 501, "GET /v1/nothing is not implemented: docs/api.md lists the routes of this server"},
		{"GET", "/index.html", "", 404, ""},

		// Ours, where the reference is silent.
		{"PUT", n1 + "/drain", "null", 400, "Request body is empty"},
		{"PUT", n1 + "/drain", " \n", 400, "Request body is empty"},
		{"PUT", n1 + "/drain", "{} {}", 400, "the request body is not JSON at byte 4: invalid character '{' after top-level value"},
		{"PUT", n1 + "/drain", `{"DrainSpec":{"Deadline":9223372036854775808}}`, 400, "DrainSpec.Deadline is the number 9223372036854775808; it must be a whole number of nanoseconds, of at most 64 bits, such as 30000000000 for 30 seconds"},
		{"PUT", n1 + "/drain?idempotency_token=" + strings.Repeat("x", 257), "{}", 400, "idempotency_token is longer than 256 bytes"},
		{"PUT", n1 + "/drain?idempotency_token=", "{}", 400, "idempotency_token is empty: without a key the request would not be applied only once"},
		{"PUT", n1 + "/drain?idempotency_token=%20", "{}", 400, "idempotency_token is empty: without a key the request would not be applied only once"},
		{"PUT", n1 + "/drain", `{"Meta":{"x":"` + strings.Repeat("x", 600) + `"}}`, 413, "request body is larger than 500 bytes"},
		{"GET", "/v1/nodes?index=99999999999999999999", "", 400, "Invalid index"},
		{"GET", "/v1/nodes?reverse=maybe", "", 400, "Expect `true` or `false` for `reverse` query string parameter"},
		{"GET", "/v1/nodes?per_page=-1", "", 400, "Expect a number for `per_page` query string parameter"},
		{"GET", "/v1/nodes?filter=" + strings.Repeat("x", 4097), "", 400, "failed to create result paginator: failed to read filter expression: it is longer than 4096 bytes"},
		{"PUT", unknown + "/purge", "", 404, "node not found"},
		{"PUT", unknown + "/evaluate", "", 404, "node not found"},
		{"GET", unknown + "/drain", "", 404, "node not found"},
		{"GET", "/v1/job/none", "", 404, "job not found"},
		{"GET", "/v1/job/web?namespace=other", "", 404, "job not found"},
		{"GET", "/v1/job/web?namespace=*", "", 404, "job not found"},
		{"GET", "/v1/job/none/summary", "", 404, "job not found"},
		{"PUT", "/v1/job/none/evaluate", "", 404, "job not found"},
		{"PUT", "/v1/allocation/none/stop", "", 404, "alloc not found"},
		{"PUT", "/v1/allocation/none/stop?no_shutdown_delay=true", "", 400, "no_shutdown_delay is not supported: the tasks get the shutdown delays of their job"},
		{"DELETE", "/v1/job/none", "", 404, "job not found"},
		{"DELETE", "/v1/job/web?purge=maybe", "", 400, "Expect `true` or `false` for `purge` query string parameter"},
		{"GET", "/v1/allocation/none", "", 404, "alloc not found"},
		{"GET", "/v1/evaluation/none", "", 404, "eval not found"},
		{"GET", "/v1/metrics", "", 404, "this server has no metrics"},
		{"GET", "/metrics", "", 404, "this server has no metrics"},
		{"PUT", "/v1/jobs", `{}`, 400, "Job must be specified"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Periodic":{}}}`, 400, "job: periodic is not supported: the servers start no jobs by the clock"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","ParameterizedJob":{}}}`, 400, "job: parameterized is not supported: the servers dispatch no jobs"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Multiregion":{}}}`, 400, "job: multiregion is not supported: a job has one region"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x"}}`, 400, "Missing job task groups"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","TaskGroups":[null]}}`, 400, "group: element 0 is null: give it a value, or leave it out"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","Type":"batch","TaskGroups":[{"Name":"g","Migrate":{},"Tasks":[{"Name":"t"}]}]}}`, 400, `Task group "g": Job type "batch" does not allow migrate block`},
		{"PUT", "/v1/job/web", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`, 400, "Job ID does not match"},
		{"PUT", "/v1/jobs?namespace=*", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`, 400, "a job needs one namespace"},
		{"POST", "/v1/search", `{"Context":"variables"}`, 400, `context must be one of ["nodes" "jobs" "allocs" "evals" "plugins" "volumes"] or "all", not "variables"`},
		{"PUT", "/v1/client/n9/register", `{}`, 400, "missing Node"},
		{"PUT", "/v1/client/n9/register", `{"Node":{"ID":"n8","SecretID":"s"}}`, 400, "the node's ID differs from the path's"},
		{"PUT", "/v1/client/n9/register", `{"Node":{}}`, 400, "missing SecretID"},
		{"PUT", "/v1/client/a%00b/register", `{"Node":{"SecretID":"s"}}`, 400, "invalid node ID: it contains a control character"},
		{"PUT", "/v1/client/a%FFb/register", `{"Node":{"SecretID":"s"}}`, 400, "invalid node ID: it is not valid UTF-8"},
		{"PUT", "/v1/client/%2E%2E/register", `{"Node":{"SecretID":"s"}}`, 400, "invalid node ID: it is a step in a path"},
		{"PUT", "/v1/client/" + strings.Repeat("x", 257) + "/register", `{"Node":{"SecretID":"s"}}`, 400, "invalid node ID: it is longer than 256 bytes"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"a\u0000b","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`, 400, "Invalid job ID: it contains a control character"},
		{"PUT", "/v1/jobs?namespace=a%0Ab", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`, 400, "Invalid namespace: it contains a control character"},
		{"PUT", "/v1/jobs", `{"Job":{"ID":"x","TaskGroups":[{"Name":"g","Count":600000,"Tasks":[{"Name":"t"}]},{"Name":"h","Count":600000,"Tasks":[{"Name":"t"}]}]}}`, 400, "Counts of a job add up to at most 1000000"},
		{"POST", "/v1/operator/raft/join", `{"ID":"a\nb","Address":"x:1"}`, 400, "invalid ID: it contains a control character"},
		{"PUT", "/v1/client/n9/register", `{"Node":{"SecretID":"s","Status":"asleep"}}`, 400, "invalid node status"},
		{"PUT", "/v1/client/n9/register", `{"Node":{"SecretID":"s","NodeResources":{"Cpu":{"CpuShares":-1}}}}`, 400, "a node's resources must be >= 0"},
		{"PUT", "/v1/client/" + uuid('a', 1) + "/register", `{"Node":{"SecretID":"another"}}`, 403, "the node is registered with another secret: an operator must purge it first"},
		{"PUT", "/v1/client/none/heartbeat", "", 404, "node not found"},
		{"PUT", "/v1/client/none/allocations", `{"Allocs":[]}`, 404, "node not found"},
		{"PUT", "/v1/client/" + uuid('a', 1) + "/allocations", `{"Allocs":[{"ID":"x","ClientStatus":"lost"}]}`, 400, `report 0: a client cannot report the status "lost"`},
		{"PUT", "/v1/client/" + uuid('a', 1) + "/allocations", `{"Allocs":[{"ClientStatus":"running"}]}`, 400, "report 0: missing allocation ID"},
		{"PUT", "/v1/client/" + uuid('a', 1) + "/allocations", `{"Allocs":[{"ID":"x","HealthyAt":"9999-12-31T23:59:59-12:00"}]}`, 400, `the year of time "9999-12-31T23:59:59-12:00" is not between 0 and 9999 in UTC`},
		{"DELETE", "/v1/operator/raft/peer", "", 400, "Must specify ?id with the server to remove"},
		{"DELETE", "/v1/operator/raft/peer?id=none", "", 404, "server not found"},
		{"POST", "/v1/operator/raft/join", `{"Address":"x:1"}`, 400, "missing ID"},
		{"POST", "/v1/operator/raft/join", `{"ID":"s9","Address":"x"}`, 400, "Address is not host:port"},
	} {
		t.Run(fmt.Sprintf("%s %.60s %.40s", test.method, test.path, test.body), func(t *testing.T) {
			got := request(t, test.method, url+test.path, test.body)
			must.Eq(t, test.text, got.body)
			must.Eq(t, test.code, got.code)
			if test.code != 200 && test.text != "" {
				must.Eq(t, "text/plain; charset=utf-8", got.header.Get("Content-Type"))
			}
		})
	}
	// A refusal at apply moves the index and nothing else: two drains of a node that does not exist, its
	// eligibility and its purge, and the draining node's eligibility.
	must.Eq(t, before+5, w.State().Index())
	must.Eq(t, 2, len(slices.Collect(w.State().Nodes())))
	must.Eq(t, cluster.NodeEligible, w.State().Node(nodeID(1)).SchedulingEligibility)
	must.True(t, w.State().Node(nodeID(2)).Draining())
	must.Len(t, 1, slices.Collect(w.State().Jobs()))
}

// The answer for an unknown node has the headers of a read, and a reader may wait for the node.
func TestErrors_notFoundHasHeaders(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL
	got := request(t, "GET", url+"/v1/node/none", "")
	must.Eq(t, w.State().TableIndex(httpapi.TableNodes), got.index(t))
	must.Eq(t, "true", got.header.Get("X-Nomad-KnownLeader"))
	must.Eq(t, "0", got.header.Get("X-Nomad-LastContact"))
	must.Eq(t, 1, request(t, "GET", newFixture(t).serve(httpapi.Options{}).URL+"/v1/node/none", "").index(t), must.Sprint("never zero, also in an empty state"))
	must.Eq(t, 1, request(t, "GET", newFixture(t).serve(httpapi.Options{}).URL+"/v1/node/none/allocations", "").index(t))
}

// A bad filter is the client's mistake, in the reference's words as far as they go.
func TestErrors_filter(t *testing.T) {
	t.Parallel()
	url := newFixture(t).nodes(1).serve(httpapi.Options{}).URL
	got := request(t, "GET", url+"/v1/nodes?filter=Status+%3D%3D", "")
	must.Eq(t, 400, got.code)
	must.StrHasPrefix(t, "failed to create result paginator: failed to read filter expression: ", got.body)
	got = request(t, "GET", url+"/v1/nodes?filter=Colour+%3D%3D+red", "")
	must.Eq(t, 400, got.code)
	must.StrHasPrefix(t, "failed to read result page: ", got.body)
	deep := strings.Repeat("(", 9) + "Name == a" + strings.Repeat(")", 9)
	got = request(t, "GET", url+"/v1/nodes?filter="+escape(deep), "")
	must.Eq(t, 400, got.code)
	must.StrContains(t, got.body, "max number of expressions parsed")
	must.Eq(t, 200, request(t, "GET", url+"/v1/nodes?filter="+escape(deep[4:len(deep)-4]), "").code)
	must.Eq(t, 200, request(t, "GET", url+"/v1/nodes?filter="+escape("Name == a"+strings.Repeat(" and Name == a", 100)), "").code)
	secret := request(t, "GET", url+"/v1/nodes?filter=SecretID+%3D%3D+%22"+secretOf(nodeID(1))+"%22", "")
	must.Eq(t, "[]", secret.body, must.Sprint("a filter cannot guess secrets"))
}

// One request with any and all within one another kept a processor busy for ever: each
// goes through its list once for every element of the one around it.
func TestErrors_filterNested(t *testing.T) {
	t.Parallel()
	url := newFixture(t).nodes(1).serve(httpapi.Options{}).URL + "/v1/nodes?filter="
	const has = `any Events as e { e.Message == "x" }`
	for filter, code := range map[string]int{
		has: 200, "(" + has + ") and (" + has + ")": 200, "Name == a or " + has: 200,
		strings.Repeat("any Events as e { ", 12) + `e.Message == "x"` + strings.Repeat(" }", 12): 400,
		"all Events as e { e.Message == x or " + has + " }":                                      400,
		"Name == a or any Events as e { " + has + " }":                                           400,
	} {
		got := request(t, "GET", url+escape(filter), "")
		must.Eq(t, code, got.code, must.Sprint(filter, got.body))
		if code == 400 {
			must.StrHasSuffix(t, "any and all cannot be nested", got.body)
		}
	}
}

// Filtering ends when the client disconnects.
func TestErrors_filterGone(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	got := httptest.NewRecorder()
	w.handler(w.backend(), httpapi.Options{}).ServeHTTP(got, httptest.NewRequestWithContext(ctx, "GET", "/v1/nodes?filter=Name+==+n1", nil))
	must.Eq(t, context.Canceled.Error(), got.Body.String())
}

// An error text that repeats the request is cut.
func TestErrors_areCut(t *testing.T) {
	t.Parallel()
	url := newFixture(t).serve(httpapi.Options{}).URL
	got := request(t, "PUT", url+"/v1/jobs", `{"Job":{"ID":"x","Type":"`+strings.Repeat("é", 1<<20)+`","TaskGroups":[{"Name":"g","Tasks":[{"Name":"t"}]}]}}`)
	must.Eq(t, 400, got.code)
	must.StrHasPrefix(t, `Invalid job type: "é`, got.body)
	must.StrHasSuffix(t, "é…", got.body)
	must.Between(t, 4<<10, len(got.body), 4<<10+3)

	groups := strings.Repeat(`{"Name":""},`, 999) + `{"Name":""}`
	got = request(t, "PUT", url+"/v1/jobs", `{"Job":{"ID":"x","TaskGroups":[`+groups+`]}}`)
	must.Eq(t, 400, got.code)
	must.StrHasSuffix(t, "\nand more is wrong", got.body)
}

// Keys that differ only in case are refused: the decoder would take the last, so a drain and null
// would end the drain.
func TestErrors_keysTwice(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	w.drain(nodeID(1), cluster.DrainSpec{})
	url := w.serve(httpapi.Options{}).URL
	for _, body := range []string{
		`{"DrainSpec":{"Deadline":1},"drainspec":null}`, `{"DrainSpec":{},"Meta":{},"DrainSpec":null}`, ` {"DrainSpec":{},"DrainSpec":null}`, `{"DrainSpec":{},"Drainſpec":null}`,
	} {
		got := request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", body)
		must.Eq(t, 400, got.code, must.Sprint(body))
		must.StrHasSuffix(t, "is in the request body twice", got.body)
	}
	must.True(t, w.State().Node(nodeID(1)).Draining())
	must.Eq(t, 200, request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", `{"DrainSpec":{},"Meta":{"a":"1","A":"2"}}`).code)
}

// The error of a write states whether to retry.
func TestErrors_writer(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL
	for _, test := range []struct {
		err  error
		code int
		text string
	}{
		{fmt.Errorf("no quorum: %w", httpapi.ErrUnavailable), 503, "no quorum: the server is not available, and nothing has changed"},
		{fmt.Errorf("timed out: %w", httpapi.ErrUnknown), 500, "timed out: the outcome of the write is not known"},
		{fmt.Errorf("registering: %w", httpapi.ErrTooLarge), 413, "registering: too large"},
		{fmt.Errorf("registering: %w", httpapi.ErrForbidden), 403, "Permission denied"},
	} {
		w.broken = test.err
		got := request(t, "PUT", url+"/v1/node/"+uuid('a', 1)+"/drain", "{}")
		must.Eq(t, test.code, got.code)
		must.Eq(t, test.text, got.body)
		must.Eq(t, test.code == 503, got.header.Get("Retry-After") == "1")
	}
}
