package httpapi_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var _ httpapi.State = (*statestore.Snapshot)(nil)

// fixture is a cluster of one server, and the backend of its API.
type fixture struct {
	*clustertest.Replica

	mu sync.Mutex // guards the entries of the replica and what follows
	// evals counts the evaluations.
	evals int
	// written counts the writes without a message.
	written int
	// servers are the raft configuration; the first leads.
	servers []httpapi.Member
	cluster string
	// broken is the error of every write, or nil.
	broken error
	// removed is true if another server has removed this one.
	removed bool
	// trouble states why this server cannot lead, or is empty.
	trouble string
	// follows is true if this server does not lead; forwarded counts the requests that it passed on to
	// leader, which may be nil.
	follows   bool
	leader    http.Handler
	forwarded int
	// follower is the server to which this one passes requests, or nil; passed counts them.
	follower http.Handler
	passed   int
	// catchUp makes the state show the entries of earlier leaders, at the first call of
	// CaughtUp; or nil.
	catchUp func()
}

func newFixture(t testing.TB) *fixture {
	w := newOldFixture(t)
	w.Index--
	w.must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	return w
}

// newOldFixture returns a fixture of cluster version 1.
func newOldFixture(t testing.TB) *fixture {
	w := &fixture{
		Replica: clustertest.NewReplica(t, shims.FSMConfig{}),
		cluster: "c1",
		servers: []httpapi.Member{{ID: "s1", Address: "127.0.0.1:4647", Leader: true, Voter: true, Understands: cluster.Versions{Min: 1, Max: 2}}},
	}
	w.Index = 9
	w.Now = func() time.Time { return time.Now().UTC() }
	w.Propose = func(m shims.Message) shims.Response {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.Apply(m)
	}
	return w
}

// backend is all of a backend, without access control.
func (w *fixture) backend() httpapi.Backend {
	return httpapi.Backend{Reader: stateReader{w}, Writer: w.writer(), Peers: peerList{w}, Drains: explainer{w}, Planner: planner{w}}
}

// guarded is the backend with access control: see everyToken.
func guarded(w *fixture) httpapi.Backend {
	b := w.backend()
	b.Access = everyToken()
	return b
}

func (w *fixture) serve(o httpapi.Options) *httptest.Server { return w.serveAs(w.backend(), o) }

func (w *fixture) serveAs(b httpapi.Backend, o httpapi.Options) *httptest.Server {
	w.Helper()
	s := httptest.NewServer(w.handler(b, o))
	w.Cleanup(s.Close)
	return s
}

func (w *fixture) handler(b httpapi.Backend, o httpapi.Options) *httpapi.Handler {
	w.Helper()
	o.Hosts = append(o.Hosts, "example.com") // the host of requests of package httptest
	return result.Of(httpapi.NewHandler(b, o)).OK(w)
}

// must applies a message that the FSM must not refuse, and returns its index.
func (w *fixture) must(m shims.Message) uint64 {
	w.Helper()
	w.Must(m)
	return w.Index
}

func (w *fixture) leads() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.follows
}

// stateReader is the fixture's httpapi.Reader.
type stateReader struct{ *fixture }

func (w stateReader) Read(ctx context.Context, minIndex uint64, query func(httpapi.State) (uint64, error)) error {
	_, err := w.FSM.Store().Blocking(ctx, minIndex, func(snap *statestore.Snapshot) (uint64, error) { return query(snap) })
	if errors.Is(err, statestore.ErrAbandoned) {
		return fmt.Errorf("reading: %w", httpapi.ErrReplaced)
	}
	return err
}

func (w stateReader) CaughtUp(ctx context.Context) error {
	if w.catchUp != nil {
		w.catchUp()
		w.catchUp = nil
	}
	return w.Consistent(ctx)
}

func (w stateReader) Consistent(context.Context) error {
	if !w.leads() {
		return fmt.Errorf("verifying leadership: %w", httpapi.ErrNotLeader)
	}
	return nil
}

// writer is the fixture's httpapi.Writer: the requests of a server.
type writer struct{ server.Requests }

func (w *fixture) writer() writer {
	return writer{server.Requests{
		Replica: replica{w}, Log: log{w}, Now: func() time.Time { return w.Now() }, NewID: func() string { return string(w.evalID()) },
	}}
}

func (w writer) RegisterNode(ctx context.Context, n *cluster.Node) (time.Duration, error) {
	_, err := w.Requests.RegisterNode(ctx, n)
	return 10 * time.Second, err
}

func (w writer) Heartbeat(_ context.Context, id cluster.NodeID) (time.Duration, error) {
	if w.Replica.Store().Snapshot().Node(id) == nil {
		return 0, httpapi.ErrNotFound
	}
	return 10 * time.Second, nil
}

// replica is the state of the writer.
type replica struct{ *fixture }

func (w replica) Store() *statestore.Store { return w.FSM.Store() }

func (w replica) CaughtUp(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.follows {
		return cmp.Or(w.broken, fmt.Errorf("writing: %w", httpapi.ErrNotLeader))
	}
	return w.broken
}

func (w replica) Consistent(ctx context.Context) error { return w.CaughtUp(ctx) }

// log is the log of the writer. It applies each entry at once.
type log struct{ *fixture }

func (w log) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	if _, err := shims.Encode(m); err != nil {
		reply(shims.Answer{Outcome: raftwrite.Rejected, Err: err})
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	response := w.Apply(m)
	reply(shims.Answer{Outcome: raftwrite.Applied, Response: response, Index: w.Index})
	return true
}

func (w log) Barrier(func(shims.Answer)) (queued bool) { return false }

// peerList are the fixture's httpapi.Peers.
type peerList struct{ *fixture }

func (w peerList) Leads() bool { return w.leads() }

func (w peerList) Forward(rw http.ResponseWriter, r *http.Request) (forwarded bool) {
	w.mu.Lock()
	w.forwarded++
	leader := w.leader
	w.mu.Unlock()
	if leader == nil {
		http.Error(rw, "No cluster leader", http.StatusInternalServerError)
		return true
	}
	leader.ServeHTTP(rw, r)
	return true
}

func (w peerList) Pass(rw http.ResponseWriter, r *http.Request) (answered bool) {
	w.mu.Lock()
	w.passed++
	follower := w.follower
	w.mu.Unlock()
	if follower == nil {
		return false
	}
	answer := httptest.NewRecorder()
	follower.ServeHTTP(answer, r)
	if answer.Code != http.StatusOK {
		return false
	}
	maps.Copy(rw.Header(), answer.Header())
	rw.WriteHeader(http.StatusOK)
	_, _ = rw.Write(answer.Body.Bytes())
	return true
}

func (w peerList) Leader() string {
	for _, m := range w.Members() {
		if m.Leader {
			return m.Address
		}
	}
	return ""
}

func (w peerList) Members() []httpapi.Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.servers)
}

// Survey reports every server but s3 alive.
func (w peerList) Survey(context.Context) []httpapi.Member {
	members := w.Members()
	for i := range members {
		if m := &members[i]; m.ID != "s3" {
			m.Alive, m.Started, m.Build, m.Newest, m.Applied = true, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "1.2.3", 40, 40-3*uint64(i)
		}
	}
	return members
}

func (w peerList) Removed() bool { return w.removed }

func (w peerList) Trouble() string { return w.trouble }

func (w peerList) LastContact() time.Duration {
	if w.leads() {
		return 0
	}
	return 42 * time.Millisecond
}

func (w peerList) Name() string { return "s1" }

func (w peerList) Cluster() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cluster
}

func (w peerList) Join(_ context.Context, id, address string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(w.servers, httpapi.Member{ID: id, Address: address, Voter: true})
	return nil
}

func (w peerList) Remove(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.servers)
	w.servers = slices.DeleteFunc(w.servers, func(m httpapi.Member) bool { return m.ID == id })
	if len(w.servers) == before {
		return httpapi.ErrNotFound
	}
	return nil
}

// planner is the fixture's httpapi.Planner.
type planner struct{ *fixture }

func (w planner) PlanJob(_ context.Context, j *cluster.Job, most int) (*cluster.Plan, httpapi.State, error) {
	state := w.State()
	return scheduler.Preview(state.WorkView(), j, w.Now(), most), state, nil
}

func (w planner) PlanDrains(ctx context.Context, q httpapi.DrainQuestion, more func(int) bool) (*drainplan.Answer, error) {
	return plan.Answer(ctx, w.FSM.Store(), plan.Question{
		Nodes: q.Nodes, Spec: q.Spec, OneByOne: q.OneByOne, At: w.Now(),
	}, plan.Settings{}, q.Plays, more)
}

func (w planner) Rollouts(k cluster.JobKey) []cluster.GroupRollout {
	return scheduler.Rollouts(w.State().WorkView(), k)
}

func (w planner) GivenUp(k cluster.JobKey) []cluster.AllocID {
	return scheduler.GivenUp(w.State().WorkView(), k)
}

// explainer is the fixture's httpapi.Explainer.
type explainer struct{ *fixture }

func (w explainer) Explain(id cluster.NodeID) (rules.Report, error) {
	if !w.leads() {
		return rules.Report{}, rules.ErrNotEnabled
	}
	return rules.Explain(w.State().DrainView(), rules.TermState{}, id, w.Now(), rules.Policy{})
}

func (w explainer) Status() ([]rules.Status, error) {
	if !w.leads() {
		return nil, rules.ErrNotEnabled
	}
	var all []rules.Status
	for n := range w.State().DrainView().DrainingNodes() {
		report, _ := rules.Explain(w.State().DrainView(), rules.TermState{}, n.ID, w.Now(), rules.Policy{})
		all = append(all, report.Status)
	}
	return all, nil
}
