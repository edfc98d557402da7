package agent_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/session"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

// dataWorld is a cluster of three servers and two nodes. The data of "from" on the first node is for "to" on the second
// one.
type dataWorld struct {
	*servers
	leads, holder *agent.Agent
	nodes         [2]*cluster.Node
	from, to      *cluster.Allocation
	// data is what the first node has. It sends the second half when the half channel is closed.
	data []byte
	half chan struct{}
	// sending counts its requests in progress, and requested are the queries.
	sending   atomic.Int64
	requested chan string
}

func newDataWorld(t *testing.T) *dataWorld {
	ca := newAuthority(t)
	w := &dataWorld{data: bytes.Repeat([]byte("0123456789abcdef"), 1<<16), half: make(chan struct{}), requested: make(chan string, 100)}
	w.servers = newServers(t, 3, func(c *agent.Config) {
		c.ServerTLS = newFiles(t, ca.pem(), ca.server("global")).open().Peers()
		agent.SearchLonger(c)
	})
	w.leads = w.leader()
	eventually(t, "the newest cluster version", func() bool { return w.leads.Server().Store().Snapshot().ClusterVersion() == cluster.MaxVersion })
	w.nodes = [2]*cluster.Node{testNode(1), testNode(2)}
	w.holder = w.others(w.leads)[0]
	register(t, api(t, w.leads), w.nodes[0])
	_, _, err := api(t, w.leads).RegisterJob(t.Context(), json.RawMessage(`{"Job": {"ID": "j", "Type": "service", "Datacenters": ["*"],
		"TaskGroups": [{"Name": "g", "Count": 1, "EphemeralDisk": {"Migrate": true}, "Tasks": [{"Name": "t", "Driver": "raw_exec"}]}]}}`))
	must.NoError(t, err)
	w.from = w.alloc("")
	w.report(cluster.AllocReport{
		Alloc: w.from.ID, ClientStatus: cluster.ClientRunning, TaskStates: &cluster.TaskStates{Tasks: []cluster.TaskState{{Name: "t", State: cluster.TaskRunning, StartedAt: time.Now()}}},
	})
	register(t, api(t, w.leads), w.nodes[1])
	r := result.Of(http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+w.leads.HTTPAddr()+"/v1/allocation/"+string(w.from.ID)+"/stop", nil)).OK(t)
	response := result.Of(http.DefaultClient.Do(r)).OK(t)
	must.NoError(t, response.Body.Close())
	must.Eq(t, http.StatusOK, response.StatusCode)
	w.to = w.alloc(w.from.ID)
	must.Eq(t, w.nodes[1].ID, w.to.NodeID)
	awaitSameState(t, w.agents...)
	return w
}

// alloc waits for an allocation of the job that replaces another one, or none.
func (w *dataWorld) alloc(previous cluster.AllocID) (alloc *cluster.Allocation) {
	w.t.Helper()
	eventually(w.t, "an allocation", func() bool {
		for a := range w.leads.Server().Store().Snapshot().Allocs() {
			if a.PreviousAllocation == previous {
				alloc = a
			}
		}
		return alloc != nil
	})
	return alloc
}

// report sends a report of the client of the first node.
func (w *dataWorld) report(r cluster.AllocReport) {
	w.t.Helper()
	c := result.Of(apiclient.New(apiclient.Config{Address: w.leads.HTTPAddr(), Token: w.nodes[0].SecretID})).OK(w.t)
	defer c.Close()
	result.Of(c.NodeSide(w.nodes[0].ID).ReportAllocs(w.t.Context(), []cluster.AllocReport{r})).OK(w.t)
}

// hold opens the session of the first node with a server.
func (w *dataWorld) hold(a *agent.Agent) *session.NodeEnd {
	w.t.Helper()
	c := result.Of(apiclient.New(apiclient.Config{Address: a.HTTPAddr(), Token: w.nodes[0].SecretID})).OK(w.t)
	var end *session.NodeEnd
	eventually(w.t, "a session", func() bool {
		var err error
		end, err = c.NodeSide(w.nodes[0].ID).OpenSession(w.t.Context())
		return err == nil
	})
	// The node has its end of the session before the server has kept the other one.
	eventually(w.t, "the session in the server", func() bool { return agent.HasSession(a, w.nodes[0].ID) })
	served := make(chan struct{})
	go func() {
		defer close(served)
		end.Serve(w.t.Context(), http.HandlerFunc(w.send))
	}()
	w.t.Cleanup(func() {
		_ = end.Close()
		<-served
		c.Close()
	})
	return end
}

// send is the client of the first node.
func (w *dataWorld) send(rw http.ResponseWriter, r *http.Request) {
	w.sending.Add(1)
	defer w.sending.Add(-1)
	if r.URL.Path != "/v1/client/allocation/"+string(w.from.ID)+"/data" {
		http.NotFound(rw, r)
		return
	}
	w.requested <- r.URL.RawQuery
	_, _ = rw.Write(w.data[:len(w.data)/2])
	_ = http.NewResponseController(rw).Flush()
	select {
	case <-w.half:
		_, _ = rw.Write(w.data[len(w.data)/2:])
	case <-r.Context().Done():
	}
}

// copied is what the client of the second node gets for a request.
type copied struct {
	code int
	body []byte
	err  error
}

// request sends a request of the client of the second node to a server.
func (w *dataWorld) request(a *agent.Agent, query string) <-chan copied {
	w.t.Helper()
	r := result.Of(http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://"+a.HTTPAddr()+"/v1/client/allocation/"+string(w.to.ID)+"/data"+query, nil)).OK(w.t)
	r.Header.Set("X-Nomad-Token", w.nodes[1].SecretID)
	done := make(chan copied, 1)
	go func() {
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			done <- copied{err: err}
			return
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		done <- copied{response.StatusCode, body, err}
	}()
	return done
}

func (w *dataWorld) ends() {
	w.report(cluster.AllocReport{Alloc: w.from.ID, ClientStatus: cluster.ClientComplete, DataOut: &cluster.DataMove{State: cluster.DataKept}})
}

// The data of an allocation moves through every server, whichever has the session of its node.
func TestData_everyServer(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	w.hold(w.holder)
	close(w.half)
	var all []<-chan copied
	for _, a := range w.agents {
		all = append(all, w.request(a, "?folder=alloc%2Fdata&after=x&offset=5"))
	}
	w.ends()
	for i, c := range all {
		got := <-c
		must.NoError(t, got.err)
		must.Eq(t, http.StatusOK, got.code, must.Sprint(i, string(got.body[:min(100, len(got.body))])))
		must.True(t, bytes.Equal(w.data, got.body), must.Sprint(i))
		must.Eq(t, "after=x&folder=alloc%2Fdata&offset=5", <-w.requested)
	}
}

// When the client of the old node is killed half-way, the receiver gets no complete answer. It continues over the next
// session of the node.
func TestData_sessionLost(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	w.ends()
	for _, a := range []*agent.Agent{w.holder, w.leads} { // a session of this server and of another one
		end := w.hold(w.holder)
		cut := w.request(a, "")
		<-w.requested
		must.NoError(t, end.Close())
		got := <-cut
		must.True(t, got.err != nil || got.code == http.StatusBadGateway, must.Sprint(got.code)) // cut, or not begun
		eventually(t, "the end of the session", func() bool {
			got := <-w.request(a, "")
			return got.code == http.StatusBadGateway
		})
	}
	w.hold(w.others(w.leads)[1])
	close(w.half)
	eventually(t, "the next session", func() bool {
		got := <-w.request(w.holder, "")
		return got.err == nil && got.code == http.StatusOK && bytes.Equal(w.data, got.body)
	})
}

// A server that stops waits neither for copies nor for requests that wait. Its request to the old node ends, and another
// server begins the copy.
func TestData_serverStops(t *testing.T) {
	t.Parallel()
	w := newDataWorld(t)
	other := w.others(w.leads)[1]
	waits := w.request(other, "")
	w.hold(w.leads)
	w.ends()
	<-w.requested
	queued := w.request(other, "")
	began := time.Now()
	must.NoError(t, stop(other))
	must.Less(t, patience/3, time.Since(began))
	for _, c := range []<-chan copied{waits, queued} {
		got := <-c
		must.True(t, got.err != nil || got.code >= 500, must.Sprint(got.code))
	}
	eventually(t, "the end of the request to the node", func() bool { return w.sending.Load() == 0 })
	close(w.half)
	got := <-w.request(w.holder, "")
	must.NoError(t, got.err)
	must.True(t, bytes.Equal(w.data, got.body))
}
