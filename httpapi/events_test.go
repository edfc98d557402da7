package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/nomad/api"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// subscribe reads an event stream of the reference's client.
func (w *fixture) subscribe(topics map[api.Topic][]string, index uint64) <-chan *api.Events {
	w.Helper()
	client := w.client()
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel) // before the server is closed, which waits for the stream
	return result.Of(client.EventStream().Stream(ctx, topics, index, nil)).OK(w)
}

// take reads the next n events, each as its topic, type and key.
func take(t *testing.T, from <-chan *api.Events, n int) (lines []string) {
	t.Helper()
	for len(lines) < n {
		select {
		case got := <-from:
			must.NoError(t, got.Err)
			for _, e := range got.Events {
				must.Eq(t, got.Index, e.Index)
				lines = append(lines, string(e.Topic)+" "+e.Type+" "+e.Key)
			}
		case <-time.After(time.Minute):
			t.Fatalf("no more events after %q", lines)
		}
	}
	return lines
}

// The reference's client follows a drain.
func TestReferenceClient_events(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	node := w.subscribe(map[api.Topic][]string{api.TopicNode: {string(nodeID(1))}}, 0)
	allocs := w.subscribe(map[api.Topic][]string{api.TopicAllocation: {"web"}, api.TopicDeployment: {"*"}}, 0)
	jobs := w.subscribe(map[api.Topic][]string{api.TopicJob: nil}, 0)
	key := " " + string(nodeID(1))

	w.drain(nodeID(2), cluster.DrainSpec{Deadline: time.Hour})
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	must.Eq(t, []string{"Node NodeDrain" + key}, take(t, node, 1))
	w.mark(1, cluster.MarkPaced)
	must.Eq(t, []string{"Node NodeDrain" + key}, take(t, node, 1), must.Sprint("the drain counts its marks"))
	must.Eq(t, []string{"Allocation AllocationUpdateDesiredStatus " + uuid('b', 1)}, take(t, allocs, 1))
	w.stop(1)
	must.Eq(t, []string{"Allocation PlanResult " + uuid('b', 1)}, take(t, allocs, 1))
	w.report(1, cluster.ClientComplete)
	must.Eq(t, []string{"Allocation AllocationUpdated " + uuid('b', 1)}, take(t, allocs, 1))

	w.end(nodeID(1))
	w.must(&shims.NodeUpdateEligibility{At: w.Now(), Node: nodeID(1), Eligibility: cluster.NodeEligible})
	must.Eq(t, []string{"Node NodeDrain" + key, "Node NodeEligibility" + key}, take(t, node, 2), must.Sprint("no entry is lost in one read"))
	w.must(&shims.NodeUpdateStatus{At: w.Now(), Node: nodeID(1), Status: cluster.NodeDown})
	must.Eq(t, []string{"Node NodeStreamEvent" + key}, take(t, node, 1))
	w.must(&shims.NodeDeregister{At: w.Now(), Nodes: []cluster.NodeID{nodeID(1)}})
	must.Eq(t, []string{"Node NodeDeregistration" + key}, take(t, node, 1))

	w.must(&shims.JobDeregister{Job: cluster.JobKey{Namespace: "default", ID: "web"}, Purge: true})
	must.Eq(t, []string{"Job JobDeregistered web"}, take(t, jobs, 1))
}

// A move that is given up is an event of both allocations, with the reason. The client of the allocation that starts
// without the data reports an event of its tasks, too.
func TestEvents_dataGivenUp(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(2)
	moving(w, 1, nodeID(1), nodeID(2))
	keepsData(w, 1)
	events := w.subscribe(map[api.Topic][]string{api.TopicAllocation: {"db1"}}, 0)
	reportMoves(w, 2, cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: allocID(1), Why: "no room"}, nil)
	must.Eq(t, []string{"Allocation AllocationUpdated " + uuid('b', 1), "Allocation AllocationUpdated " + uuid('b', 2)}, take(t, events, 2))
	lines := request(t, "GET", w.serve(httpapi.Options{}).URL+"/v1/allocation/"+uuid('b', 1), "")
	must.StrContains(t, lines.body, `"DataOut":{"State":"given up","Peer":"`+uuid('b', 2)+`","Why":"no room"`)
}

// The events of a past drain have the node as it drained. Bug: all of them had the current row, so that nothing
// showed a short drain.
func TestReferenceClient_eventsOfPastDrain(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	start := w.Index + 1
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Hour})
	w.end(nodeID(1))
	w.must(&shims.NodeUpdateEligibility{At: w.Now(), Node: nodeID(1), Eligibility: cluster.NodeEligible})
	w.drain(nodeID(1), cluster.DrainSpec{Deadline: time.Minute})
	events := w.subscribe(map[api.Topic][]string{api.TopicNode: {"*"}}, start)
	type payload struct {
		drain       bool
		eligibility string
		events      int
	}
	var got []payload
	for len(got) < 4 {
		line := <-events
		must.NoError(t, line.Err)
		for _, e := range line.Events {
			n := result.Of(e.Node()).OK(t)
			must.Eq(t, e.Index, n.ModifyIndex)
			must.Eq(t, n.Drain, n.DrainStrategy != nil)
			got = append(got, payload{n.Drain, n.SchedulingEligibility, len(n.Events)})
		}
	}
	must.Eq(t, []payload{{true, "ineligible", 2}, {false, "ineligible", 3}, {false, "eligible", 4}, {true, "ineligible", 5}}, got)
}

// A stream from an earlier index begins with the rows that have changed since. Payloads decode.
func TestReferenceClient_eventsSince(t *testing.T) {
	t.Parallel()
	w := newFixture(t).nodes(1)
	start := w.Index + 1
	w.place(1, w.job("web", cluster.JobService, 1), nodeID(1))
	events := w.subscribe(map[api.Topic][]string{api.TopicAll: {"*"}}, start)
	received := map[api.Topic]bool{}
	for len(received) < 3 {
		got := <-events
		must.NoError(t, got.Err)
		for _, e := range got.Events {
			received[e.Topic] = true
			must.GreaterEq(t, start, e.Index)
			switch e.Topic {
			case api.TopicAllocation:
				a := result.Of(e.Allocation()).OK(t)
				must.Eq(t, uuid('b', 1), a.ID)
				must.Nil(t, a.Job)
			case api.TopicJob:
				j := result.Of(e.Job()).OK(t)
				must.Eq(t, "web", *j.ID)
			case api.TopicEvaluation:
				eval := result.Of(e.Evaluation()).OK(t)
				must.Eq(t, "web", eval.JobID)
			}
		}
	}
}

// A restored state has a higher index, and its rows have lower ones: a stream would not see that they
// are others. It ends at once, and the reader reads everything again.
func TestEvents_restore(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"Node", "Allocation", "Deployment"} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newFixture(t).nodes(1)
				h := w.handler(w.backend(), httpapi.Options{})
				got, ended := httptest.NewRecorder(), make(chan time.Time, 1)
				go func() {
					h.ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, httpapi.EventStreamPath+"?topic="+topic, nil))
					ended <- time.Now()
				}()
				time.Sleep(time.Second)
				restored := time.Now()
				w.restore()
				must.LessEq(t, time.Second, (<-ended).Sub(restored))
				must.Eq(t, "", got.Body.String())
			})
		})
	}
}

// Streams send `{}` every ten seconds. They end without a leader. They are bounded, in all and for each
// client: one client with many streams keeps no other out.
func TestEvents_ends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t).nodes(1)
		h := w.handler(w.backend(), httpapi.Options{})
		open := func(from, query string) *httptest.ResponseRecorder {
			got, request := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, httpapi.EventStreamPath+query, nil)
			request.RemoteAddr = from + ":5000"
			h.ServeHTTP(got, request)
			return got
		}
		must.Eq(t, `unknown topic "Nod"`, open("192.0.2.1", "?topic=Nod").Body.String())
		ended := make(chan *httptest.ResponseRecorder)
		openMany := func(from string) {
			for range 32 {
				go func() { ended <- open(from, "?topic=Job") }()
			}
			synctest.Wait()
			must.Eq(t, 429, open(from, "?topic=Job").Code)
		}
		openMany("192.0.2.1")
		openMany("192.0.2.2")
		must.Eq(t, 429, open("192.0.2.3", "?topic=Job").Code)
		time.Sleep(25 * time.Second)
		w.mu.Lock()
		w.servers[0].Leader = false
		w.mu.Unlock()
		for range 64 {
			got := <-ended
			must.Eq(t, 200, got.Code)
			must.Eq(t, "{}\n{}\n", got.Body.String())
		}
	})
}
