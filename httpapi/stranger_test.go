package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// unread is a body that fails the test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// A caller without a valid token is refused before the body is read, a wait begins or the request is
// forwarded to the leader.
func TestStranger_costsNothing(t *testing.T) {
	t.Parallel()
	leader := newFixture(t).nodes(1)
	f := newFixture(t)
	f.follows, f.leader = true, leader.handler(leader.backend(), httpapi.Options{})
	h := f.handler(guarded(f), httpapi.Options{})
	node, client := "/v1/node/"+uuid('a', 1), "/v1/client/"+uuid('a', 1)
	for _, test := range []struct{ method, path, token, text string }{
		{"PUT", "/v1/jobs", "", "Permission denied"},
		{"PUT", "/v1/jobs", "unheard-of", "ACL token not found"},
		{"PUT", "/v1/jobs", "reader-token", "Permission denied"},
		{"PUT", node + "/drain", "", "Permission denied"},
		{"PUT", client + "/allocations", "", "Permission denied"},
		{"PUT", node + "/eligibility", secretOf(nodeID(1)), "ACL token not found"},
		{"GET", "/v1/nodes?index=99", "unheard-of", "ACL token not found"},
		{"POST", "/v1/search", "", "Permission denied"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), test.method, test.path, unread{t})
		r.Header.Set("X-Nomad-Token", test.token)
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		must.Eq(t, 403, got.Code, must.Sprint(test))
		must.Eq(t, test.text, got.Body.String(), must.Sprint(test))
	}
	must.Zero(t, f.forwarded)
}

// A body that the route ignores is not read.
func TestBody_unread(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	h := w.handler(w.backend(), httpapi.Options{})
	for _, line := range []string{
		"GET /v1/nodes", "DELETE /v1/job/none", "PUT /v1/client/" + uuid('a', 1) + "/heartbeat",
		"PUT /v1/node/" + uuid('a', 1) + "/evaluate", "PUT /v1/job/none/evaluate", "PUT /v1/node/none/purge",
	} {
		method, path, _ := strings.Cut(line, " ")
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, unread{t}))
	}
}

// Each route bounds its body.
func TestBody_bounds(t *testing.T) {
	t.Parallel()
	url := newFixture(t).nodes(1).serve(httpapi.Options{}).URL
	own := "/v1/client/" + uuid('a', 1)
	for path, most := range map[string]int{
		own + "/register": 4194304, own + "/allocations": 1048576, "/v1/node/" + uuid('a', 1) + "/drain": 524288, "/v1/jobs": 4194304,
	} {
		got := request(t, "PUT", url+path, strings.Repeat(" ", most+1))
		must.Eq(t, 413, got.code, must.Sprint(path))
		must.Eq(t, fmt.Sprintf("request body is larger than %d bytes", most), got.body)
	}
	many := `{"Allocs":[` + strings.Repeat(`{"ID":"x","ClientStatus":"running"},`, 10_000) + `{"ID":"x","ClientStatus":"running"}]}`
	got := request(t, "PUT", url+own+"/allocations", many)
	must.Eq(t, 413, got.code)
	must.Eq(t, "a report holds 10000 allocations at most", got.body)
}

// A page of another site can send a browser's request to a server that it cannot reach itself.
// Other clients send no origin.
func TestStranger_ofAnotherSite(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	url := w.serve(httpapi.Options{}).URL
	drain := url + "/v1/node/" + uuid('a', 1) + "/drain"
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}} {
		got := request(t, "POST", drain, `{"DrainSpec":{}}`, header...)
		must.Eq(t, 403, got.code)
		must.Eq(t, "cross-origin request refused", got.body)
	}
	must.False(t, w.State().Node(nodeID(1)).Draining())
	must.Eq(t, 200, request(t, "POST", drain, `{"DrainSpec":{}}`, "Origin", url).code)
	must.Eq(t, 200, request(t, "POST", drain, `{"DrainSpec":{}}`).code)
}

// pipes is a listener without a network, for virtual time.
type pipes chan net.Conn

var errClosed = errors.New("closed")

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, errClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A client that is slow to send or to read is disconnected: each held a connection and memory for
// ever. A reader that waits for a change is not.
func TestSlow(t *testing.T) {
	t.Parallel()
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1") })
	for name, test := range map[string]struct {
		sends string
		reads bool
		// gone is the time of the disconnection.
		gone time.Duration
	}{
		"no body":               {"PUT /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", true, 30 * time.Second},
		"no body to throw away": {"GET /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", true, 30 * time.Second},
		"no body, no route":     {"PUT /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", true, 30 * time.Second},
		"takes nothing":         {"GET /v1/nodes HTTP/1.1\r\nHost: x\r\n\r\n", false, time.Minute},
		"takes no metrics":      {"GET /v1/metrics HTTP/1.1\r\nHost: x\r\n\r\n", false, time.Minute},
		"reads no answer":       {"GET /v1/nodes?index=9999&wait=160s HTTP/1.1\r\nHost: x\r\n\r\n", false, 220 * time.Second},
		"waits for a change":    {"PUT /v1/search?index=9999&wait=160s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 14\r\n\r\n{\"Prefix\":\"a\"}", true, 160 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t).nodes(3)
				closed := make(chan time.Time, 1)
				s := &http.Server{Handler: w.handler(w.backend(), httpapi.Options{Metrics: metrics}), ConnState: func(_ net.Conn, now http.ConnState) {
					if now == http.StateClosed {
						closed <- time.Now()
					}
				}}
				listener := make(pipes)
				go func() { _ = s.Serve(listener) }()
				client, server := net.Pipe()
				listener <- server
				start := time.Now()
				result.Of(io.WriteString(client, test.sends)).OK(t)
				if test.reads {
					go func() { _, _ = io.Copy(io.Discard, client) }()
				}
				took := (<-closed).Sub(start)
				must.Between(t, test.gone, took, test.gone+test.gone/16+time.Second, must.Sprint(took))
				must.NoError(t, client.Close())
				close(listener)
				must.NoError(t, s.Shutdown(context.Background()))
			})
		})
	}
}
