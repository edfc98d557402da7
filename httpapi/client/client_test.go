package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
)

// request is a request that a server received.
type request struct {
	method, path, query, token, body string
}

// answering is a server that gives one answer and records the last request.
func answering(t *testing.T, c client.Config, status int, header map[string]string, body string) (*client.Client, *request) {
	t.Helper()
	last := new(request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		*last = request{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("X-Nomad-Token"), string(text)}
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	c.Address = server.URL
	answered := result.Of(client.New(c)).OK(t)
	t.Cleanup(answered.Close)
	return answered, last
}

// A read sends all its parameters and its token.
func TestClient_read(t *testing.T) {
	t.Parallel()
	c, last := answering(t, client.Config{Token: "secret", Region: "eu", Namespace: "web"}, http.StatusOK, map[string]string{
		"X-Nomad-Index": "17", "X-Nomad-LastContact": "250", "X-Nomad-KnownLeader": "true", "X-Nomad-NextToken": "n2",
	}, `[{"ID":"n1","Drain":true}]`)
	nodes, answer, err := c.Nodes(t.Context(), client.NodesQuery{OS: true, Query: client.Query{
		Index: 12, Wait: time.Minute, Stale: true, Prefix: "ab", Filter: `Name == "a b"`, NextToken: "n1", PerPage: 3, Namespace: "shop",
	}})
	must.NoError(t, err)
	must.Eq(t, request{
		method: "GET", path: "/v1/nodes", token: "secret",
		query: "filter=Name+%3D%3D+%22a+b%22&index=12&namespace=shop&next_token=n1&os=true&per_page=3&prefix=ab&region=eu&stale=&wait=60000ms",
	}, *last)
	must.Eq(t, client.Answer{Index: 17, LastContact: 250 * time.Millisecond, KnownLeader: true, NextToken: "n2"}, answer)
	must.SliceLen(t, 1, nodes)
	must.Eq(t, "n1", nodes[0].ID)
	must.True(t, nodes[0].Drain)
}

// Zero parameters are not sent: they would mean something else.
func TestClient_readPlain(t *testing.T) {
	t.Parallel()
	c, last := answering(t, client.Config{}, http.StatusOK, nil, `{}`)
	_, answer, err := c.Node(t.Context(), "a/b?c", client.Query{})
	must.NoError(t, err)
	must.Eq(t, request{method: "GET", path: "/v1/node/a%2Fb%3Fc"}, *last)
	must.Eq(t, client.Answer{}, answer)
}

func TestClient_write(t *testing.T) {
	t.Parallel()
	c, last := answering(t, client.Config{}, http.StatusOK, map[string]string{"X-Nomad-Index": "9"},
		`{"Index":9,"Withdrawn":2,"StillStopping":["a1"]}`)
	written, answer, err := c.UpdateDrain(t.Context(), "n1", wire.DrainRequest{
		DrainSpec: &wire.DrainSpec{Deadline: time.Minute}, Meta: map[string]string{},
	}, "monday & all")
	must.NoError(t, err)
	must.Eq(t, 9, answer.Index)
	must.Eq(t, []string{"a1"}, written.StillStopping)
	must.Eq(t, "PUT", last.method)
	must.Eq(t, "/v1/node/n1/drain", last.path)
	must.Eq(t, "idempotency_token=monday+%26+all", last.query)
	must.Eq(t, `{"NodeID":"","DrainSpec":{"Deadline":60000000000,"IgnoreSystemJobs":false},"MarkEligible":false,"Meta":{}}`, last.body)
}

// Each call sends its method, path and body.
func TestClient_calls(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for want, call := range map[string]func(*client.Client) error{
		"GET /v1/node/n/allocations": func(c *client.Client) error { _, _, err := c.NodeAllocations(ctx, "n", client.Query{}); return err },
		"GET /v1/node/n/drain":       func(c *client.Client) error { _, _, err := c.NodeDrain(ctx, "n", client.Query{}); return err },
		"GET /v1/jobs":               func(c *client.Client) error { _, _, err := c.Jobs(ctx, client.Query{}); return err },
		"GET /v1/job/a%2Fb":          func(c *client.Client) error { _, _, err := c.Job(ctx, "a/b", client.Query{}); return err },
		"GET /v1/job/%2E%2E":         func(c *client.Client) error { _, _, err := c.Job(ctx, "..", client.Query{}); return err },
		"GET /v1/job/j/summary":      func(c *client.Client) error { _, _, err := c.JobSummary(ctx, "j", client.Query{}); return err },
		"GET /v1/job/j/allocations":  func(c *client.Client) error { _, _, err := c.JobAllocations(ctx, "j", client.Query{}); return err },
		"GET /v1/job/j/evaluations":  func(c *client.Client) error { _, _, err := c.JobEvaluations(ctx, "j", client.Query{}); return err },
		"PUT /v1/jobs":               func(c *client.Client) error { _, _, err := c.RegisterJob(ctx, []byte("{}")); return err },
		"PUT /v1/job/j/plan":         func(c *client.Client) error { _, _, err := c.JobFile([]byte("{}")).Plan(ctx, "j"); return err },
		"PUT /v1/validate/job":       func(c *client.Client) error { _, _, err := c.JobFile([]byte("{}")).Validate(ctx); return err },
		"DELETE /v1/job/j?eval_priority=9&purge=true": func(c *client.Client) error {
			_, _, err := c.StopJob(ctx, "j", cluster.JobStop{Purge: true, EvalPriority: 9})
			return err
		},
		"GET /v1/allocations":                        func(c *client.Client) error { _, _, err := c.Allocations(ctx, client.Query{}); return err },
		"GET /v1/allocation/a":                       func(c *client.Client) error { _, _, err := c.Allocation(ctx, "a", client.Query{}); return err },
		"GET /v1/evaluations":                        func(c *client.Client) error { _, _, err := c.Evaluations(ctx, client.Query{}); return err },
		"GET /v1/evaluation/e":                       func(c *client.Client) error { _, _, err := c.Evaluation(ctx, "e", client.Query{}); return err },
		"GET /v1/drains":                             func(c *client.Client) error { _, _, err := c.Drains(ctx, client.Query{}); return err },
		"PUT /v1/drains/plan":                        func(c *client.Client) error { _, _, err := client.PlanDrains(ctx, c, drainplan.Request{}); return err },
		"GET /v1/agent/self":                         func(c *client.Client) error { _, err := c.Servers().Self(ctx); return err },
		"GET /v1/agent/members":                      func(c *client.Client) error { _, err := c.Servers().Members(ctx); return err },
		"GET /v1/operator/raft/configuration?stale=": func(c *client.Client) error { _, err := c.Servers().RaftConfiguration(ctx); return err },
		"POST /v1/operator/raft/join":                func(c *client.Client) error { return c.Servers().Join(ctx, wire.JoinRequest{ID: "s2"}) },
		"DELETE /v1/operator/raft/peer?id=s2":        func(c *client.Client) error { return c.Servers().Remove(ctx, "s2") },
		"PUT /v1/search":                             func(c *client.Client) error { _, err := c.Search(ctx, wire.SearchRequest{}); return err },
		"PUT /v1/node/n/drain": func(c *client.Client) error {
			_, _, err := c.UpdateDrain(ctx, "n", wire.DrainRequest{}, "")
			return err
		},
		"PUT /v1/drain/d%2F1/confirm": func(c *client.Client) error {
			_, _, err := c.ConfirmDrain(ctx, "d/1")
			return err
		},
		"PUT /v1/node/n/drain/pause": func(c *client.Client) error {
			_, _, err := client.PauseDrains(ctx, c, "n")
			return err
		},
		"PUT /v1/node/n/drain/resume": func(c *client.Client) error {
			_, _, err := client.ResumeDrains(ctx, c, "n")
			return err
		},
		"PUT /v1/drains/pause": func(c *client.Client) error {
			_, _, err := client.PauseDrains(ctx, c, "")
			return err
		},
		"PUT /v1/drains/resume": func(c *client.Client) error {
			_, _, err := client.ResumeDrains(ctx, c, "")
			return err
		},
		"GET /v1/drains/pause": func(c *client.Client) error {
			_, _, err := client.DrainPause(ctx, c, client.Query{})
			return err
		},
		"PUT /v1/node/n/eligibility": func(c *client.Client) error {
			_, _, err := c.UpdateEligibility(ctx, "n", wire.EligibilityRequest{})
			return err
		},
		"PUT /v1/node/n/purge": func(c *client.Client) error {
			_, _, err := client.PurgeNode(ctx, c, "n")
			return err
		},
	} {
		c, last := answering(t, client.Config{}, http.StatusOK, nil, "null")
		must.NoError(t, call(c))
		got := last.method + " " + last.path
		if last.query != "" {
			got += "?" + last.query
		}
		must.Eq(t, want, got)
	}
}

// The error of a refused request has the server's text, and reports whether a retry can help.
func TestClient_errors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status            int
		body, want        string
		notFound, refused bool
	}{
		{404, "node not found", "Unexpected response code: 404 (node not found)", true, true},
		{403, "Permission denied\n", "Unexpected response code: 403 (Permission denied): no token was sent", false, true},
		{500, "No cluster leader", "Unexpected response code: 500 (No cluster leader)", false, false},
		{429, "", "Unexpected response code: 429 ()", false, false},
	} {
		c, _ := answering(t, client.Config{}, test.status, map[string]string{"X-Nomad-Index": "4"}, test.body)
		_, answer, err := c.Node(t.Context(), "n", client.Query{})
		must.EqError(t, err, test.want)
		must.Eq(t, test.notFound, client.NotFound(err))
		must.Eq(t, test.refused, client.Refused(err))
		must.Eq(t, 4, answer.Index)
		refused, is := errors.AsType[*client.Error](err)
		must.True(t, is)
		must.Eq(t, test.status, refused.Status)
		must.EqError(t, c.Servers().Remove(t.Context(), "s"), test.want)
	}
}

// A server without a leader may have the reason.
func TestClient_noLeader(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		is  bool
		why string
	}{
		"No cluster leader":                     {true, ""},
		"No cluster leader: the disk is full":   {true, "the disk is full"},
		"No cluster leaders":                    {false, ""},
		"the leader was lost: the disk is full": {false, ""},
	} {
		err := error(&client.Error{Status: 500, Body: body})
		must.Eq(t, want.is, client.NoLeader(err), must.Sprint(body))
		must.Eq(t, want.why, client.WhyNoLeader(err), must.Sprint(body))
		must.False(t, client.NoLeader(&client.Error{Status: 404, Body: body}))
	}
	must.False(t, client.NoLeader(errors.New("No cluster leader")))
	must.Eq(t, "", client.WhyNoLeader(errors.New("No cluster leader: x")))
}

// A refused request with a token does not add that it had none.
func TestClient_refusedToken(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, client.Config{Token: "reader"}, http.StatusForbidden, nil, "Permission denied")
	_, err := c.Servers().Self(t.Context())
	must.EqError(t, err, "Unexpected response code: 403 (Permission denied)")
}

// An answer may be as long as it likes, an error's body is not read for ever.
func TestClient_longError(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, client.Config{}, http.StatusInternalServerError, nil, strings.Repeat("x", 1<<20))
	_, err := c.Servers().Self(t.Context())
	must.ErrorContains(t, err, "xxx")
	must.Less(t, 20<<10, len(err.Error()))
}

func TestClient_noAnswer(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, client.Config{}, http.StatusOK, nil, "<html>")
	_, err := c.Servers().Self(t.Context())
	must.EqError(t, err, c.Address()+" answers GET /v1/agent/self with text that is not the expected JSON: "+
		"invalid character '<' looking for beginning of value")
	must.False(t, client.Refused(err))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Servers().Self(ctx)
	must.ErrorIs(t, err, context.Canceled)
}
