package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/scheduler"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
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
	// servers are the raft configuration; the first leads.
	servers []httpapi.Member
	// cluster is the id of the cluster.
	cluster string
	// broken is the error of every write, or nil.
	broken error
	// follows says that this server does not lead; forwarded counts the requests that it
	// passed on to leader, which may be nil.
	follows   bool
	leader    http.Handler
	forwarded int
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
	return httpapi.Backend{Reader: stateReader{w}, Writer: writer{w}, Peers: peerList{w}, Drains: explainer{w}, Planner: planner{w}}
}

// guarded is the backend with access control: see everyToken.
func guarded(w *fixture) httpapi.Backend {
	b := w.backend()
	b.Access = everyToken()
	return b
}

// serve serves the API.
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

// write applies a message as a request of the API.
func (w *fixture) write(m shims.Message) (shims.Response, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken != nil:
		return nil, 0, w.broken
	case w.follows:
		return nil, 0, fmt.Errorf("writing: %w", httpapi.ErrNotLeader)
	}
	if _, err := shims.Encode(m); err != nil {
		return nil, 0, err
	}
	response := w.Apply(m)
	if refused, is := response.(shims.Refused); is {
		return nil, w.Index, asAPI(refused.Err)
	}
	return response, w.Index, nil
}

// asAPI gives an error of the store the class of the API.
func asAPI(err error) error {
	switch {
	case errors.Is(err, statestore.ErrVolumeInUse):
		return fmt.Errorf("%w: %w", httpapi.ErrInUse, err)
	case errors.Is(err, statestore.ErrNodeNotFound), errors.Is(err, statestore.ErrJobNotFound),
		errors.Is(err, statestore.ErrVolumeNotFound), errors.Is(err, statestore.ErrClaimNotFound):
		return fmt.Errorf("applying: %w", httpapi.ErrNotFound)
	case errors.Is(err, statestore.ErrNodeDraining):
		return fmt.Errorf("applying: %w", httpapi.ErrNodeDraining)
	}
	return err
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

// writer is the fixture's httpapi.Writer.
type writer struct{ *fixture }

// nodeEvals makes an evaluation for each job with an allocation on the node.
func (w writer) nodeEvals(id cluster.NodeID) (evals []*cluster.Evaluation) {
	done := map[cluster.JobKey]bool{}
	for a := range w.State().AllocsByNode(id) {
		if !done[a.JobKey()] {
			done[a.JobKey()] = true
			evals = append(evals, w.eval(a.Job, cluster.TriggerNodeUpdate, id))
		}
	}
	return evals
}

func written(index uint64, evals []*cluster.Evaluation) cluster.Written {
	done := cluster.Written{Index: index}
	for _, e := range evals {
		done.Evals = append(done.Evals, e.ID)
	}
	return done
}

func (w writer) UpdateDrain(_ context.Context, u cluster.DrainUpdate) (cluster.DrainWritten, error) {
	w.mu.Lock()
	m := w.DrainRequest(u.Node, u.Spec)
	w.mu.Unlock()
	u.Drain, u.At = m.Drain, m.At
	m.DrainUpdate = u
	if u.Spec == nil && u.MarkEligible {
		m.Evals = w.nodeEvals(u.Node)
	}
	response, index, err := w.write(m)
	if err != nil {
		return cluster.DrainWritten{}, err
	}
	return cluster.DrainWritten{Written: written(index, m.Evals), DrainResult: response.(shims.DrainRequestApplied).DrainResult}, nil
}

func (w writer) UpdateEligibility(_ context.Context, id cluster.NodeID, e cluster.Eligibility) (cluster.Written, error) {
	if n := w.State().Node(id); n != nil && n.SchedulingEligibility == e {
		return cluster.Written{}, nil
	}
	var evals []*cluster.Evaluation
	if e == cluster.NodeEligible {
		evals = w.nodeEvals(id)
	}
	_, index, err := w.write(&shims.NodeUpdateEligibility{At: w.Now(), Node: id, Eligibility: e, Evals: evals})
	return written(index, evals), err
}

func (w writer) PurgeNode(_ context.Context, id cluster.NodeID) (cluster.Written, error) {
	evals := w.nodeEvals(id)
	response, index, err := w.write(&shims.NodeDeregister{At: w.Now(), Nodes: []cluster.NodeID{id}, Evals: evals})
	if err == nil && len(response.(shims.NodesDeregistered).Missing) > 0 {
		err = httpapi.ErrNotFound
	}
	return written(index, evals), err
}

func (w writer) EvaluateNode(_ context.Context, id cluster.NodeID) (cluster.Written, error) {
	if w.State().Node(id) == nil {
		return cluster.Written{}, httpapi.ErrNotFound
	}
	evals := w.nodeEvals(id)
	_, index, err := w.write(&shims.EvalUpdate{Evals: evals})
	return written(index, evals), err
}

func (w writer) RegisterJob(_ context.Context, j *cluster.Job, at *uint64) (cluster.Written, error) {
	evals := []*cluster.Evaluation{w.eval(j, cluster.TriggerJobRegister, "")}
	if before := w.State().Job(j.Key()); before.SameWork(j) && (at == nil || before.CheckModifyIndex(*at) == nil) {
		_, index, err := w.write(&shims.EvalUpdate{Evals: evals})
		done := written(index, evals)
		done.Unchanged = before.JobModifyIndex
		return done, err
	}
	m := &shims.JobRegister{Job: j, Evals: evals}
	if at != nil {
		m.EnforceIndex, m.JobModifyIndex = true, *at
	}
	_, index, err := w.write(m)
	return written(index, evals), err
}

func (w writer) EvaluateJob(_ context.Context, k cluster.JobKey) (cluster.Written, error) {
	j := w.State().Job(k)
	if j == nil {
		return cluster.Written{}, httpapi.ErrNotFound
	}
	evals := []*cluster.Evaluation{w.eval(j, cluster.TriggerJobRegister, "")}
	_, index, err := w.write(&shims.EvalUpdate{Evals: evals})
	return written(index, evals), err
}

func (w writer) StopAlloc(_ context.Context, id cluster.AllocID) (cluster.Written, error) {
	a := w.State().Alloc(id)
	if a == nil {
		return cluster.Written{}, httpapi.ErrNotFound
	}
	evals := []*cluster.Evaluation{w.eval(a.Job, cluster.TriggerAllocStop, "")}
	_, index, err := w.write(&shims.AllocStop{Alloc: id, Evals: evals})
	return written(index, evals), err
}

func (w writer) RegisterVolume(_ context.Context, v *cluster.Volume) (cluster.Written, error) {
	_, index, err := w.write(&shims.VolumeRegister{At: w.Now(), Volume: v})
	return cluster.Written{Index: index}, err
}

func (w writer) DeregisterVolume(_ context.Context, k cluster.VolumeKey, force bool) (cluster.Written, error) {
	_, index, err := w.write(&shims.VolumeDeregister{Volume: k, Force: force})
	return cluster.Written{Index: index}, err
}

func (w writer) DetachVolume(_ context.Context, k cluster.VolumeKey, n cluster.NodeID, force bool) (cluster.Written, error) {
	_, index, err := w.write(&shims.VolumeDetach{Volume: k, Node: n, Force: force})
	return cluster.Written{Index: index}, err
}

func (w writer) UpdateClaims(_ context.Context, changes []cluster.ClaimChange) (cluster.Written, error) {
	_, index, err := w.write(&shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{At: w.Now(), Changes: changes}})
	return cluster.Written{Index: index}, err
}

func (w writer) StopJob(_ context.Context, k cluster.JobKey, purge bool) (cluster.Written, error) {
	_, index, err := w.write(&shims.JobDeregister{Job: k, Purge: purge})
	return cluster.Written{Index: index}, err
}

func (w writer) Collect(context.Context) (collected cluster.Collected, err error) {
	round := collect.Everything(w.Now())
	for request := round.Next(w.State().WorkView()); request != nil; request = round.Next(w.State().WorkView()) {
		response, _, err := w.write(&shims.Collect{At: w.Now(), Request: *request})
		if err != nil {
			return collected, err
		}
		d := response.(shims.CollectApplied).Deleted
		collected = collected.Plus(cluster.Collected{Allocs: len(d.Allocs), Evals: len(d.Evals), Jobs: len(d.Jobs)})
	}
	return collected, nil
}

func (w writer) RegisterNode(_ context.Context, n *cluster.Node) (time.Duration, error) {
	_, _, err := w.write(&shims.NodeRegister{At: w.Now(), Node: n})
	return 10 * time.Second, err
}

func (w writer) Heartbeat(_ context.Context, id cluster.NodeID) (time.Duration, error) {
	if w.State().Node(id) == nil {
		return 0, httpapi.ErrNotFound
	}
	return 10 * time.Second, nil
}

func (w writer) ReportAllocs(_ context.Context, reports []cluster.AllocReport) (cluster.Written, error) {
	_, index, err := w.write(&shims.AllocClientUpdate{Reports: reports})
	return cluster.Written{Index: index}, err
}

// peerList are the fixture's httpapi.Peers.
type peerList struct{ *fixture }

func (w peerList) Leads() bool { return w.leads() }

func (w peerList) Forward(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.forwarded++
	leader := w.leader
	w.mu.Unlock()
	if leader == nil {
		http.Error(rw, "No cluster leader", http.StatusInternalServerError)
		return
	}
	leader.ServeHTTP(rw, r)
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
	for n := range w.State().DrainingNodes() {
		report, _ := rules.Explain(w.State().DrainView(), rules.TermState{}, n.ID, w.Now(), rules.Policy{})
		all = append(all, report.Status)
	}
	return all, nil
}
