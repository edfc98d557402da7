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

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

var _ httpapi.State = (*statestore.Snapshot)(nil)

// town is a cluster of one server without raft: the real FSM over the real store, with
// entries applied as they are asked for. It is every part of a backend at once.
type town struct {
	t testing.TB
	// now is the time of writes, or nil for the clock.
	now func() time.Time

	mu  sync.Mutex // guards what follows
	fsm *shims.FSM
	// index is of the last entry.
	index uint64
	// drains counts the drains that began, and evals the evaluations.
	drains, evals int
	// servers are the raft configuration; peers has the first lead.
	servers []httpapi.Member
	// broken is what writes fail with, or nil.
	broken error
	// follows says that this server does not lead; forwarded counts what it passed on
	// to leader, which may be nil.
	follows   bool
	leader    http.Handler
	forwarded int
	// catchUp has the state show what earlier leaders wrote, when that is first waited
	// for; or nil.
	catchUp func()
}

func newTown(t testing.TB) *town {
	return &town{
		t: t, fsm: shims.NewFSM(shims.FSMConfig{}), index: 9,
		servers: []httpapi.Member{{ID: "s1", Address: "127.0.0.1:4647", Leader: true, Voter: true, Understands: cluster.Versions{Min: 1, Max: 2}}},
	}
}

// backend is all of a backend, without access control.
func (w *town) backend() httpapi.Backend {
	return httpapi.Backend{Reader: w, Writer: w, Peers: w, Drains: w}
}

// serve answers the API of the town.
func (w *town) serve(o httpapi.Options) *httptest.Server { return w.serveAs(w.backend(), o) }

func (w *town) serveAs(b httpapi.Backend, o httpapi.Options) *httptest.Server {
	w.t.Helper()
	s := httptest.NewServer(w.handler(b, o))
	w.t.Cleanup(s.Close)
	return s
}

func (w *town) handler(b httpapi.Backend, o httpapi.Options) *httpapi.Handler {
	w.t.Helper()
	h, err := httpapi.NewHandler(b, o)
	must.NoError(w.t, err)
	return h
}

func (w *town) time() time.Time {
	if w.now != nil {
		return w.now()
	}
	return time.Now().UTC()
}

// snap is the present state.
func (w *town) snap() *statestore.Snapshot { return w.fsm.Store().Snapshot() }

// write applies a message as the next entry.
func (w *town) write(m shims.Message) (shims.Response, uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.broken != nil:
		return nil, 0, w.broken
	case w.follows:
		return nil, 0, fmt.Errorf("writing: %w", httpapi.ErrNotLeader)
	}
	data, err := shims.Encode(m)
	if err != nil {
		return nil, 0, err
	}
	w.index++
	response, err := w.fsm.ApplyEntry(w.index, data)
	if err != nil {
		return nil, 0, err
	}
	if refused, is := response.(shims.Refused); is {
		return nil, w.index, asAPI(refused.Err)
	}
	return response, w.index, nil
}

// asAPI says an error of the store in the words of the API.
func asAPI(err error) error {
	switch {
	case errors.Is(err, statestore.ErrNodeNotFound), errors.Is(err, statestore.ErrJobNotFound):
		return fmt.Errorf("applying: %w", httpapi.ErrNotFound)
	case errors.Is(err, statestore.ErrNodeDraining):
		return fmt.Errorf("applying: %w", httpapi.ErrNodeDraining)
	}
	return err
}

// must applies a message that has to succeed, and returns its index.
func (w *town) must(m shims.Message) uint64 {
	w.t.Helper()
	_, index, err := w.write(m)
	must.NoError(w.t, err)
	return index
}

// Read reads the store, again when it changes.
func (w *town) Read(ctx context.Context, minIndex uint64, query func(httpapi.State) (uint64, error)) error {
	_, err := w.fsm.Store().Blocking(ctx, minIndex, func(snap *statestore.Snapshot) (uint64, error) { return query(snap) })
	if errors.Is(err, statestore.ErrAbandoned) {
		return fmt.Errorf("reading: %w", httpapi.ErrReplaced)
	}
	return err
}

func (w *town) CaughtUp(ctx context.Context) error {
	if w.catchUp != nil {
		w.catchUp()
		w.catchUp = nil
	}
	return w.Consistent(ctx)
}

func (w *town) Consistent(context.Context) error {
	if !w.Leads() {
		return fmt.Errorf("verifying leadership: %w", httpapi.ErrNotLeader)
	}
	return nil
}

// nodeEvals makes an evaluation for each job with an allocation on the node.
func (w *town) nodeEvals(id cluster.NodeID) (made []*cluster.Evaluation) {
	seen := map[cluster.JobKey]bool{}
	for a := range w.snap().AllocsByNode(id) {
		if !seen[a.JobKey()] {
			seen[a.JobKey()] = true
			made = append(made, w.eval(a.Job, cluster.TriggerNodeUpdate, id))
		}
	}
	return made
}

func (w *town) eval(j *cluster.Job, trigger cluster.EvalTrigger, node cluster.NodeID) *cluster.Evaluation {
	w.mu.Lock()
	w.evals++
	id := fmt.Sprintf("e%07d-0000-0000-0000-000000000000", w.evals)
	w.mu.Unlock()
	now := w.time()
	return &cluster.Evaluation{
		ID: cluster.EvalID(id), Namespace: j.Namespace, JobID: j.ID, Type: j.Type, Priority: j.Priority, TriggeredBy: trigger, NodeID: node,
		Status: cluster.EvalPending, CreateTime: now, ModifyTime: now,
	}
}

func written(index uint64, evals []*cluster.Evaluation) httpapi.Written {
	done := httpapi.Written{Index: index}
	for _, e := range evals {
		done.Evals = append(done.Evals, e.ID)
	}
	return done
}

func (w *town) UpdateDrain(_ context.Context, r httpapi.DrainRequest) (httpapi.DrainWritten, error) {
	w.mu.Lock()
	w.drains++
	id := cluster.DrainID(fmt.Sprintf("d%d", w.drains))
	w.mu.Unlock()
	var evals []*cluster.Evaluation
	if r.Spec == nil && r.MarkEligible {
		evals = w.nodeEvals(r.Node)
	}
	response, index, err := w.write(&shims.NodeUpdateDrain{Evals: evals, DrainUpdate: statestore.DrainUpdate{
		Node: r.Node, Spec: r.Spec, Drain: id, MarkEligible: r.MarkEligible, At: w.time(), Key: r.Key, Meta: r.Meta, UpdatedBy: r.UpdatedBy,
	}})
	if err != nil {
		return httpapi.DrainWritten{}, err
	}
	u := response.(shims.DrainRequestApplied)
	return httpapi.DrainWritten{
		Written: written(index, evals), Drain: u.Drain, Repeated: u.Repeated, Withdrawn: u.Withdrawn, Stopping: u.Stopping,
	}, nil
}

func (w *town) UpdateEligibility(_ context.Context, id cluster.NodeID, e cluster.Eligibility) (httpapi.Written, error) {
	if n := w.snap().Node(id); n != nil && n.SchedulingEligibility == e {
		return httpapi.Written{}, nil
	}
	var evals []*cluster.Evaluation
	if e == cluster.NodeEligible {
		evals = w.nodeEvals(id)
	}
	_, index, err := w.write(&shims.NodeUpdateEligibility{At: w.time(), Node: id, Eligibility: e, Evals: evals})
	return written(index, evals), err
}

func (w *town) PurgeNode(_ context.Context, id cluster.NodeID) (httpapi.Written, error) {
	evals := w.nodeEvals(id)
	response, index, err := w.write(&shims.NodeDeregister{At: w.time(), Nodes: []cluster.NodeID{id}, Evals: evals})
	if err == nil && len(response.(shims.NodesDeregistered).Missing) > 0 {
		err = httpapi.ErrNotFound
	}
	return written(index, evals), err
}

func (w *town) EvaluateNode(_ context.Context, id cluster.NodeID) (httpapi.Written, error) {
	if w.snap().Node(id) == nil {
		return httpapi.Written{}, httpapi.ErrNotFound
	}
	evals := w.nodeEvals(id)
	_, index, err := w.write(&shims.EvalUpdate{Evals: evals})
	return written(index, evals), err
}

func (w *town) RegisterJob(_ context.Context, j *cluster.Job) (httpapi.Written, error) {
	evals := []*cluster.Evaluation{w.eval(j, cluster.TriggerJobRegister, "")}
	_, index, err := w.write(&shims.JobRegister{Job: j, Evals: evals})
	return written(index, evals), err
}

func (w *town) EvaluateJob(_ context.Context, k cluster.JobKey) (httpapi.Written, error) {
	j := w.snap().Job(k)
	if j == nil {
		return httpapi.Written{}, httpapi.ErrNotFound
	}
	evals := []*cluster.Evaluation{w.eval(j, cluster.TriggerJobRegister, "")}
	_, index, err := w.write(&shims.EvalUpdate{Evals: evals})
	return written(index, evals), err
}

func (w *town) StopJob(_ context.Context, k cluster.JobKey, purge bool) (httpapi.Written, error) {
	_, index, err := w.write(&shims.JobDeregister{Job: k, Purge: purge})
	return httpapi.Written{Index: index}, err
}

func (w *town) RegisterNode(_ context.Context, n *cluster.Node) (time.Duration, error) {
	_, _, err := w.write(&shims.NodeRegister{At: w.time(), Node: n})
	return 10 * time.Second, err
}

func (w *town) Heartbeat(_ context.Context, id cluster.NodeID) (time.Duration, error) {
	if w.snap().Node(id) == nil {
		return 0, httpapi.ErrNotFound
	}
	return 10 * time.Second, nil
}

func (w *town) ReportAllocs(_ context.Context, reports []cluster.AllocReport) (httpapi.Written, error) {
	_, index, err := w.write(&shims.AllocClientUpdate{Reports: reports})
	return httpapi.Written{Index: index}, err
}

func (w *town) Leads() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.follows
}

func (w *town) Forward(rw http.ResponseWriter, r *http.Request) {
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

func (w *town) Leader() string {
	for _, m := range w.Members() {
		if m.Leader {
			return m.Address
		}
	}
	return ""
}

func (w *town) Members() []httpapi.Member {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.servers)
}

func (w *town) LastContact() time.Duration {
	if w.Leads() {
		return 0
	}
	return 42 * time.Millisecond
}

func (w *town) Name() string { return "s1" }

func (w *town) Join(_ context.Context, id, address string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers = append(w.servers, httpapi.Member{ID: id, Address: address, Voter: true})
	return nil
}

func (w *town) Remove(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := len(w.servers)
	w.servers = slices.DeleteFunc(w.servers, func(m httpapi.Member) bool { return m.ID == id })
	if len(w.servers) == before {
		return httpapi.ErrNotFound
	}
	return nil
}

func (w *town) Explain(id cluster.NodeID) (rules.Report, error) {
	if !w.Leads() {
		return rules.Report{}, rules.ErrNotEnabled
	}
	return rules.Explain(w.snap(), rules.Pending{}, id, w.time(), rules.Policy{})
}

func (w *town) Status() ([]rules.Status, error) {
	if !w.Leads() {
		return nil, rules.ErrNotEnabled
	}
	var all []rules.Status
	for n := range w.snap().DrainingNodes() {
		report, _ := rules.Explain(w.snap(), rules.Pending{}, n.ID, w.time(), rules.Policy{})
		all = append(all, report.Status)
	}
	return all, nil
}
