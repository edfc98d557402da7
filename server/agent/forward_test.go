package agent_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A blocking query that a follower has forwarded continues on the next leader when the first leader is
// lost.
func TestForward_queriesContinueOnTheNextLeader(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	rest := w.others(leader)
	follower := api(t, rest[0])
	id := string(testNode(1).ID)
	register(t, follower, testNode(1))
	_, a, err := follower.Node(t.Context(), id, apiclient.Query{})
	must.NoError(t, err)
	woken := make(chan error, 1)
	go func() {
		n, _, err := follower.Node(t.Context(), id, apiclient.Query{Index: a.Index})
		if err == nil && n.SchedulingEligibility != string(cluster.NodeIneligible) {
			err = errors.New("the query returned without the change")
		}
		woken <- err
	}()
	w.network.isolate(leader, true)
	w.leader(rest...)
	eventually(t, "a leader accepts a write", func() bool {
		_, _, err := api(t, rest[1]).UpdateEligibility(t.Context(), id, wire.EligibilityRequest{Eligibility: string(cluster.NodeIneligible)})
		return err == nil
	})
	must.NoError(t, <-woken)
}

// When a leader is lost, the answer to a write that has reached it states that the write may have been made.
// A write that has not reached it goes to the next leader.
func TestForward_theLeaderIsLostDuringAWrite(t *testing.T) {
	t.Parallel()
	var slow atomic.Value // the name of the server that does not finish a write
	slow.Store("")
	reached, release := make(chan struct{}, 3), make(chan struct{})
	w := newServers(t, 3, func(c *agent.Config) {
		name := c.Name
		c.OnApply = func(a shims.Applied) {
			if _, registers := a.Message.(*shims.NodeRegister); registers && slow.Load() == name {
				reached <- struct{}{}
				<-release
			}
		}
	})
	t.Cleanup(func() { close(release) })
	leader := w.leader()
	slow.Store(leader.Name())
	follower := api(t, w.others(leader)[0])
	failed := make(chan error, 1)
	go func() {
		_, err := follower.Register(t.Context(), testNode(1))
		failed <- err
	}()
	<-reached
	w.network.isolate(leader, true)
	err := <-failed
	must.ErrorContains(t, err, "500")
	must.ErrorContains(t, err, "the write may have been made")

	_, err = follower.Register(t.Context(), testNode(2)) // no leader yet, or the next one
	must.NoError(t, err)
	second := w.leader(w.others(leader)...)
	must.NotNil(t, second.Server().Store().Snapshot().Node(testNode(1).ID)) // the write was made
}

// A leader that stops answering with open connections blocks no request when another server leads. A
// write that it received may have been made. The next leader answers a read.
func TestForward_theLeaderStopsAnswering(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	rest := w.others(leader)
	follower := api(t, rest[0])
	id := testNode(1).ID
	_, err := follower.Register(t.Context(), testNode(1)) // opens a connection that stays open
	must.NoError(t, err)
	w.network.silence(leader)
	read := make(chan error, 1)
	go func() {
		_, _, err := follower.Node(t.Context(), string(id), apiclient.Query{})
		read <- err
	}()
	began := time.Now()
	_, err = follower.NodeSide(id).Heartbeat(t.Context())
	if err != nil { // it reached the silent leader
		must.ErrorContains(t, err, "the write may have been made")
	}
	must.NoError(t, <-read)
	must.Less(t, patience, time.Since(began))
	result.Of(follower.NodeSide(id).Heartbeat(t.Context())).OK(t)
}

// A client that leaves a forwarded query is no fault of the leader: the log has no warning.
func TestForward_aClientLeaves(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var logged strings.Builder // guarded by mu
	w := newServers(t, 2, func(c *agent.Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: &logged, Mutex: &mu})
	})
	follower := api(t, w.others(w.leader())[0])
	register(t, follower, testNode(1))
	id := string(testNode(1).ID)
	_, a, err := follower.Node(t.Context(), id, apiclient.Query{})
	must.NoError(t, err)
	ctx, leave := context.WithTimeout(t.Context(), time.Second)
	defer leave()
	_, _, err = follower.Node(ctx, id, apiclient.Query{Index: a.Index})
	must.ErrorIs(t, err, context.DeadlineExceeded)
	var line string
	eventually(t, "a line about the query", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for one := range strings.Lines(logged.String()) {
			if strings.Contains(one, "the leader did not answer a request") {
				line = one
			}
		}
		return line != ""
	})
	must.StrContains(t, line, "[DEBUG]")
}

// A request is passed to the servers one after the other, with its whole body, until one answers 200: not one
// that is lost, older, or busy.
func TestPass(t *testing.T) {
	t.Parallel()
	ids := []string{"s1", "s2", "s3", "s4", "s5"}
	answers := map[string]int{"s2": http.StatusNotFound, "s3": http.StatusTooManyRequests, "s4": http.StatusOK, "s5": http.StatusOK}
	var tried []string
	send := func(r *http.Request, id string) (*http.Response, error) {
		tried = append(tried, id)
		body, err := io.ReadAll(r.Body)
		must.NoError(t, err)
		must.Eq(t, "the body", string(body))
		must.Eq(t, id, r.URL.Host)
		code, answers := answers[id]
		if !answers {
			return nil, errors.New("the connection was lost")
		}
		header := http.Header{"X-Nomad-Lastcontact": {"7"}}
		return &http.Response{StatusCode: code, Header: header, Body: io.NopCloser(strings.NewReader(id))}, nil
	}
	pass := func(ids []string) (*httptest.ResponseRecorder, bool) {
		r := httptest.NewRequest(http.MethodPut, "/v1/drains/plan", strings.NewReader("the body"))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("the body")), nil }
		a := httptest.NewRecorder()
		return a, agent.Pass(a, r, ids, send)
	}
	a, answered := pass(ids)
	must.True(t, answered)
	must.Eq(t, "s4", a.Body.String())
	must.Eq(t, "7", a.Header().Get("X-Nomad-LastContact"))
	must.Eq(t, []string{"s1", "s2", "s3", "s4"}, tried)

	for _, none := range [][]string{{"s1", "s2"}, nil} {
		a, answered = pass(none)
		must.False(t, answered)
		must.Eq(t, 0, a.Body.Len())
		must.MapEmpty(t, a.Header())
	}
}

// The leader passes a plan to the first of the other servers that answers. The
// plan has the node that was registered just before.
func TestPass_plans(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var answered []string // guarded by mu
	w := newServers(t, 3, func(c *agent.Config) {
		name := c.Name
		c.API.Observe = func(route string, code int, _ time.Duration) {
			if strings.HasSuffix(route, " /v1/drains/plan") && code == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				answered = append(answered, name)
			}
		}
	})
	leader := w.leader()
	others := w.others(leader)
	first, second := others[0], others[1]
	if first.Name() > second.Name() {
		first, second = second, first
	}
	count := 0
	planned := func() (by []string) {
		count++
		node := testNode(count)
		register(t, api(t, leader), node)
		mu.Lock()
		answered = nil
		mu.Unlock()
		plan, _, err := apiclient.PlanDrains(t.Context(), api(t, leader), drainplan.Request{Nodes: []string{string(node.ID)}, DrainSpec: &wire.DrainSpec{}})
		must.NoError(t, err)
		must.Eq(t, string(node.ID), plan.Nodes[0].ID)
		mu.Lock()
		defer mu.Unlock()
		return answered
	}
	is := func(a *agent.Agent) func() bool {
		return func() bool { by := planned(); return len(by) > 0 && by[0] == a.Name() }
	}
	eventually(t, "the first follower answers", is(first))
	must.NoError(t, stop(first))
	eventually(t, "the second follower answers", is(second))
}
