package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/datamove"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// moving adds a job whose data moves: the n-th allocation runs on the first node, and the one after it replaces it on
// the other node.
func moving(w *fixture, n int, from, to cluster.NodeID) {
	w.Helper()
	j := clustertest.Job(cluster.JobID(fmt.Sprint("db", n)), cluster.JobService, 1)
	j.Datacenters, j.TaskGroups[0].EphemeralDisk = []string{"dc1"}, cluster.EphemeralDisk{Migrate: true, SizeMB: 100}
	j = w.Job(j)
	w.place(n, j, from)
	next := clustertest.Alloc(j, allocID(n+1), to, w.Now())
	next.PreviousAllocation = allocID(n)
	w.must(&shims.AllocStop{At: w.Now(), Alloc: allocID(n), Evals: []*cluster.Evaluation{w.eval(j, cluster.TriggerAllocStop, "")}})
	must.SliceEmpty(w, w.Plan(j, []cluster.AllocID{allocID(n)}, next).Refused)
}

// keepsData applies the report that ends the n-th allocation. Its client keeps the data.
func keepsData(w *fixture, n int) {
	w.Helper()
	reportMoves(w, n, cluster.ClientComplete, nil, &cluster.DataMove{State: cluster.DataKept})
}

// reportMoves applies a report of the n-th allocation with moves of data.
func reportMoves(w *fixture, n int, s cluster.ClientStatus, in, out *cluster.DataMove) {
	w.Helper()
	a := w.State().Alloc(allocID(n))
	r := clustertest.Report(a, s, w.Now())
	r.DataIn, r.DataOut = in, out
	w.must(&shims.AllocClientUpdate{At: w.Now(), Reports: []cluster.AllocReport{r}})
}

// scripted are nodes whose clients answer as a test decides.
type scripted struct {
	mu sync.Mutex
	// send answers a request; guarded by mu.
	send func(r *http.Request, id cluster.NodeID) (*http.Response, error)
	// sent are the requests; guarded by mu.
	sent []string
}

func (s *scripted) Hold(http.ResponseWriter, *http.Request, cluster.NodeID) error { return nil }

func (s *scripted) Admit(context.Context, cluster.NodeID, string, bool) error { return nil }

func (s *scripted) Send(r *http.Request, id cluster.NodeID) (*http.Response, error) {
	s.mu.Lock()
	s.sent = append(s.sent, fmt.Sprintf("%s %s %s %v", id, r.Method, r.URL.RequestURI(), r.Header))
	send := s.send
	s.mu.Unlock()
	return send(r, id)
}

func (s *scripted) does(send func(r *http.Request, id cluster.NodeID) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send = send
}

func (s *scripted) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

// answers lets a client answer with a code and a text.
func (s *scripted) answers(code int, text string) {
	s.does(func(*http.Request, cluster.NodeID) (*http.Response, error) {
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(text))}, nil
	})
}

// hangs lets a client send a text, and then nothing.
func (s *scripted) hangs(text string) {
	s.does(func(r *http.Request, _ cluster.NodeID) (*http.Response, error) {
		body := io.MultiReader(strings.NewReader(text), untilEnd{r.Context()})
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
	})
}

// untilEnd is a body that ends with the context of its request.
type untilEnd struct{ context.Context }

func (u untilEnd) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

// copies is a server in a bubble, with three nodes and a move of the data of the first allocation to the second one.
type copies struct {
	*fixture
	*scripted
	*httpapi.Handler
}

func bubbleOfCopies(t *testing.T, o httpapi.Options, test func(c *copies)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, nodes := newFixture(t).nodes(3), &scripted{}
		nodes.answers(http.StatusOK, "the data")
		moving(w, 1, nodeID(1), nodeID(2))
		b := guarded(w)
		b.Nodes = nodes
		test(&copies{w, nodes, w.handler(b, o)})
	})
}

func dataPath(n int) string { return "/v1/client/allocation/" + string(allocID(n)) + "/data" }

// request requests the data for the n-th allocation, with the secret of its node.
func (c *copies) request(ctx context.Context, n int, query string) *reader {
	c.Helper()
	return c.readsUntil(ctx, c.Handler, dataPath(n)+query, "X-Nomad-Token", secretOf(c.State().Alloc(allocID(n)).NodeID))
}

// A request waits until the old allocation has ended. Its client gets the parameters, and nothing else of the caller.
func TestCopyData(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
		r := c.request(c.Context(), 2, "?after=alloc%2Fdata%2Fx&offset=7&folder=alloc/data&folder=web/local&secret=s")
		must.True(c, r.waits())
		time.Sleep(time.Minute)
		keepsData(c.fixture, 1)
		must.False(c, r.waits())
		must.Eq(c, 200, r.answer.code)
		must.Eq(c, "the data", r.answer.body)
		must.Eq(c, string(allocID(1)), r.answer.header.Get("X-Nodedrain-Data-Source"))
		must.Eq(c, []string{string(nodeID(1)) + " GET " + dataPath(1) + "?after=alloc%2Fdata%2Fx&folder=alloc%2Fdata&folder=web%2Flocal&offset=7 map[]"}, c.requests())
		must.Eq(c, datamove.Counts{Bytes: 8}, c.DataCopies())

		for _, query := range []string{"?offset=-1", "?offset=x"} {
			must.Eq(c, 400, c.request(c.Context(), 2, query).answer.code)
		}
		reportMoves(c.fixture, 2, cluster.ClientPending, &cluster.DataMove{State: cluster.DataCopied, Peer: allocID(1)}, nil)
		r = c.request(c.Context(), 2, "")
		must.Eq(c, 410, r.answer.code)
		must.Eq(c, "the move of the data has ended: copied", r.answer.body)
	})
}

// A request that waits for the end of the old allocation is answered after five minutes. Others that wait use
// no slot of other requests.
func TestCopyData_waits(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{MaxBlocking: 1, MaxBlockingPerClient: 1}, func(c *copies) {
		began := time.Now()
		var all []*reader
		for n := 3; n <= 10; n++ {
			moving(c.fixture, 10*n, nodeID(1), nodeID(2))
			all = append(all, c.request(c.Context(), 10*n+1, ""))
		}
		left, leave := context.WithCancel(c.Context())
		gone := c.request(left, 2, "")
		leave()
		must.False(c, gone.waits())
		time.Sleep(5*time.Minute - time.Second)
		must.True(c, all[0].waits())
		time.Sleep(time.Second)
		for i, r := range all {
			must.False(c, r.waits())
			must.Eq(c, 503, r.answer.code)
			from := allocID(10 * (i + 3))
			must.Eq(c, fmt.Sprintf("allocation %s on node n1 has not ended", from), r.answer.body)
			must.Eq(c, string(from), r.answer.header.Get("X-Nodedrain-Data-Source"))
			must.Eq(c, "1", r.answer.header.Get("Retry-After"))
			must.Eq(c, 5*time.Minute, r.at.Sub(began))
		}
		must.SliceEmpty(c, c.requests())
	})
}

// What ends a wait for ever.
func TestCopyData_gone(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*copies){
		"is on node n1, which is down": func(c *copies) {
			c.must(&shims.NodeUpdateStatus{At: c.Now(), Node: nodeID(1), Status: cluster.NodeDown})
		},
		"was on node n1, which is deleted":      func(c *copies) { c.must(&shims.NodeDeregister{At: c.Now(), Nodes: []cluster.NodeID{nodeID(1)}}) },
		"has ended, and its client has kept no": func(c *copies) { c.report(1, cluster.ClientFailed) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
				r := c.request(c.Context(), 2, "")
				must.True(c, r.waits())
				end(c)
				must.False(c, r.waits())
				must.Eq(c, 410, r.answer.code)
				must.StrContains(c, r.answer.body, name)
				must.SliceEmpty(c, c.requests())
			})
		})
	}
}

// The answers when the client of the old node does not send the data.
func TestCopyData_noData(t *testing.T) {
	t.Parallel()
	const n1 = "n1 (a0000001-aaaa-bbbb-cccc-000000000000)"
	fails := func(err error) func(*scripted) {
		return func(s *scripted) {
			s.does(func(*http.Request, cluster.NodeID) (*http.Response, error) { return nil, err })
		}
	}
	for name, test := range map[string]struct {
		client func(*scripted)
		code   int
		text   string
		took   time.Duration
	}{
		"it sends other data": {func(s *scripted) {
			s.does(func(*http.Request, cluster.NodeID) (*http.Response, error) {
				return &http.Response{StatusCode: 503, Header: http.Header{"Retry-After": {"5"}}, Body: io.NopCloser(strings.NewReader("later"))}, nil
			})
		}, 503, "the client of node " + n1 + " answers 503: later", 0},
		"it is overloaded":   {func(s *scripted) { s.answers(503, "x") }, 502, "the client of node " + n1 + " answers 503: x", 0},
		"no session":         {fails(httpapi.ErrNoSession), 502, "no path to node " + n1 + ": its client has no session with a server", 0},
		"a busy session":     {fails(httpapi.ErrTooManyStreams), 502, "too many requests to node " + n1 + " are open", 0},
		"a lost session":     {fails(session.ErrEnded), 502, "the session of node " + n1 + " ended before the answer (the session of the node has ended)", 0},
		"it has it no more":  {func(s *scripted) { s.answers(410, " the data was deleted\n") }, 410, "the client of node " + n1 + " answers 410: the data was deleted", 0},
		"it has no route":    {func(s *scripted) { s.answers(404, "not found") }, 502, "the client of node " + n1 + " answers 404: not found", 0},
		"it is broken":       {func(s *scripted) { s.answers(199, "x") }, 502, "the client of node " + n1 + " sends no valid answer", 0},
		"a redirect":         {func(s *scripted) { s.answers(302, "\xff") }, 502, "the client of node " + n1 + " answers 302: ", 0},
		"a text without end": {func(s *scripted) { s.answers(500, strings.Repeat("x", 1<<20)) }, 502, "the client of node " + n1 + " answers 500: " + strings.Repeat("x", 4000), 0},
		"no answer": {func(s *scripted) {
			s.does(func(r *http.Request, _ cluster.NodeID) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		}, 502, "the client of node " + n1 + " does not answer", time.Minute},
		"a text that hangs": {func(s *scripted) {
			s.does(func(r *http.Request, _ cluster.NodeID) (*http.Response, error) {
				return &http.Response{StatusCode: 500, Body: io.NopCloser(untilEnd{r.Context()})}, nil
			})
		}, 502, "the client of node " + n1 + " answers 500: ", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
				keepsData(c.fixture, 1)
				test.client(c.scripted)
				began := time.Now()
				r := c.request(c.Context(), 2, "")
				<-r.answered
				must.Eq(c, test.code, r.answer.code)
				must.StrHasPrefix(c, test.text, r.answer.body)
				must.Less(c, 5000, len(r.answer.body))
				must.Eq(c, test.took, r.at.Sub(began))
				must.Eq(c, string(allocID(1)), r.answer.header.Get("X-Nodedrain-Data-Source"))
				must.Eq(c, iff(test.code == 503, "1", ""), r.answer.header.Get("Retry-After"))
				must.Eq(c, datamove.Counts{}, c.DataCopies())
			})
		})
	}
}

// A node sends one copy at a time. A copy without progress ends after a minute, and the next one begins. A request
// that has waited for its turn reads the state once more.
func TestCopyData_turns(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
		for n := 3; n < 9; n += 2 {
			moving(c.fixture, n, nodeID(1), nodeID(3))
			keepsData(c.fixture, n)
		}
		keepsData(c.fixture, 1)
		c.hangs("some")
		began := time.Now()
		first, second, third := c.request(c.Context(), 2, ""), c.request(c.Context(), 4, ""), c.request(c.Context(), 6, "")
		left, leave := context.WithCancel(c.Context())
		leaves := c.request(left, 8, "")
		must.Eq(c, datamove.Counts{Running: 1, Waiting: 3, Bytes: 4}, c.DataCopies())
		leave()
		must.False(c, leaves.waits())
		must.Eq(c, datamove.Counts{Running: 1, Waiting: 2, Bytes: 4}, c.DataCopies())

		reportMoves(c.fixture, 6, cluster.ClientPending, &cluster.DataMove{State: cluster.DataGivenUp, Peer: allocID(5), Why: "no room"}, nil)
		c.answers(http.StatusOK, "the data")
		<-first.answered
		must.Eq(c, time.Minute, first.at.Sub(began))
		must.Eq(c, "some", first.answer.body)
		<-second.answered
		must.Eq(c, "the data", second.answer.body)
		<-third.answered
		must.Eq(c, 410, third.answer.code)
		must.Len(c, 2, c.requests())
		must.Eq(c, datamove.Counts{Bytes: 12}, c.DataCopies())
	})
}

// The bound on copies is configurable. A server with bounds that cannot work is refused.
func TestCopyData_options(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{MaxDataCopies: 1, DataRate: 1 << 20}, func(c *copies) {
		moving(c.fixture, 3, nodeID(2), nodeID(3))
		keepsData(c.fixture, 1)
		keepsData(c.fixture, 3)
		c.answers(http.StatusOK, strings.Repeat("x", 10<<20))
		began := time.Now()
		first, second := c.request(c.Context(), 2, ""), c.request(c.Context(), 4, "")
		must.Eq(c, 1, c.DataCopies().Waiting)
		<-first.answered
		must.Between(c, 9*time.Second, first.at.Sub(began), 10*time.Second)
		<-second.answered
		must.Between(c, 19*time.Second, second.at.Sub(began), 20*time.Second)
	})
	for field, o := range map[string]httpapi.Options{
		"MaxDataCopies is -1":               {MaxDataCopies: -1},
		"DataRate is -1":                    {DataRate: -1},
		"DataRate is 1, and must be at lea": {DataRate: 1},
	} {
		w := newFixture(t)
		_, err := httpapi.NewHandler(w.backend(), o)
		must.ErrorContains(t, err, field)
	}
}

// One node cannot keep others from their data: an allocation has one request, and a node one copy.
func TestCopyData_bounds(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
		for n := 3; n < 11; n += 2 {
			moving(c.fixture, n, nodeID(1), nodeID(2))
		}
		moving(c.fixture, 11, nodeID(1), nodeID(3))
		for n := 1; n <= 11; n += 2 {
			keepsData(c.fixture, n)
		}
		c.hangs("some")
		stalls := c.request(c.Context(), 2, "")
		var all []*reader
		for range 100 {
			all = append(all, c.request(c.Context(), 4, ""))
		}
		waits := c.request(c.Context(), 12, "")
		for _, r := range all[:99] {
			must.False(c, r.waits())
			must.Eq(c, 409, r.answer.code)
			must.Eq(c, "a newer request for the data of this allocation has come", r.answer.body)
		}
		must.Eq(c, datamove.Counts{Running: 1, Waiting: 2, Bytes: 4}, c.DataCopies())
		c.answers(200, "the data")
		began := time.Now()
		next := c.request(c.Context(), 2, "") // its first request had the turn
		must.False(c, stalls.waits())
		must.False(c, next.waits())
		must.Eq(c, "the data", next.answer.body)
		must.Eq(c, "the data", waits.answer.body)
		must.Eq(c, began, time.Now())
	})
}

// Only the node of the replacement gets the data.
func TestCopyData_rights(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
		keepsData(c.fixture, 1)
		codes := func(h http.Handler, path string) (codes []int) {
			for _, token := range []string{"", "reader-token", "writer-token", "node-token", secretOf(nodeID(1)), secretOf(nodeID(3)), "invented"} {
				codes = append(codes, c.reads(h, path, "X-Nomad-Token", token).answer.code)
			}
			return codes
		}
		must.Eq(c, []int{403, 403, 403, 403, 403, 403, 403}, codes(c.Handler, dataPath(2)))
		must.Eq(c, []int{403, 403, 404, 404, 403, 403, 403}, codes(c.Handler, dataPath(9)))
		open := c.backend()
		open.Nodes = c.scripted
		h := c.handler(open, httpapi.Options{})
		must.Eq(c, []int{403, 403, 403, 403, 403, 403, 403}, codes(h, dataPath(2)), must.Sprint("without access control"))
		must.SliceEmpty(c, c.requests())
		must.Eq(c, 200, c.reads(h, dataPath(2), "X-Nomad-Token", secretOf(nodeID(2))).answer.code)
		must.Eq(c, 501, c.reads(c.handler(c.backend(), httpapi.Options{}), dataPath(2), "X-Nomad-Token", secretOf(nodeID(2))).answer.code)
		c.must(&shims.NodeDeregister{At: c.Now(), Nodes: []cluster.NodeID{nodeID(2)}})
		must.Eq(c, 403, c.reads(c.Handler, dataPath(2), "X-Nomad-Token", secretOf(nodeID(2))).answer.code)
	})
}

// A server that does not lead copies data itself.
func TestCopyData_follower(t *testing.T) {
	t.Parallel()
	bubbleOfCopies(t, httpapi.Options{}, func(c *copies) {
		keepsData(c.fixture, 1)
		c.fixture.mu.Lock()
		c.follows = true
		c.fixture.mu.Unlock()
		must.Eq(c, "the data", c.request(c.Context(), 2, "").answer.body)
		must.Eq(c, 0, c.forwarded)
	})
}

// The receiver notices a copy that is cut, over a real connection.
func TestCopyData_cut(t *testing.T) {
	t.Parallel()
	w, nodes := newFixture(t).nodes(2), &scripted{}
	moving(w, 1, nodeID(1), nodeID(2))
	keepsData(w, 1)
	b := w.backend()
	b.Nodes = nodes
	url := w.serveAs(b, httpapi.Options{}).URL
	for name, test := range map[string]struct {
		end  error
		cuts bool
	}{"complete": {io.EOF, false}, "cut": {io.ErrUnexpectedEOF, true}, "session ended": {session.ErrEnded, true}} {
		nodes.does(func(*http.Request, cluster.NodeID) (*http.Response, error) {
			body := io.MultiReader(strings.NewReader(strings.Repeat("x", 1<<20)), fails{test.end})
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		})
		r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodGet, url+dataPath(2), nil)).OK(t)
		r.Header.Set("X-Nomad-Token", secretOf(nodeID(2)))
		response := result.Of(http.DefaultTransport.RoundTrip(r)).OK(t)
		body, err := io.ReadAll(response.Body)
		must.NoError(t, response.Body.Close())
		must.Eq(t, test.cuts, err != nil, must.Sprint(name))
		if !test.cuts {
			must.Len(t, 1<<20, body)
		}
	}
}

type fails struct{ err error }

func (f fails) Read([]byte) (int, error) { return 0, f.err }

// CheckClient refuses no process.
func (*scripted) CheckClient(cluster.NodeID, string) error { return nil }
