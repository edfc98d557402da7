package shims_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// noon is the time of the tests' messages.
var noon = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// history is an FSM and the index of its next entry.
type history struct {
	t   testing.TB
	fsm *shims.FSM
	// next is the raft index of the next entry.
	next uint64
}

func newHistory(t testing.TB, config shims.FSMConfig) *history {
	return &history{t: t, fsm: shims.NewFSM(config), next: 1}
}

// apply applies messages, and returns the response to the last.
func (h *history) apply(messages ...shims.Message) (response shims.Response) {
	h.t.Helper()
	for _, m := range messages {
		var err error
		response, err = h.fsm.ApplyEntry(h.next, encode(h.t, m))
		must.NoError(h.t, err)
		h.next++
	}
	return response
}

func (h *history) state() *statestore.Snapshot { return h.fsm.Store().Snapshot() }

func node(id cluster.NodeID) *shims.NodeRegister {
	return &shims.NodeRegister{At: noon, Node: clustertest.Node(id)}
}

// webJob is a service of count allocations with max_parallel 1.
func webJob(count int) *cluster.Job { return clustertest.Job("web", cluster.JobService, count) }

func jobEval(id cluster.EvalID) *cluster.Evaluation { return clustertest.Eval(webJob(0), id, noon) }

// place is a plan that answers an evaluation with the job's allocations a0, a1, ... on the
// nodes.
func (h *history) place(evalID cluster.EvalID, nodes ...cluster.NodeID) *shims.ApplyPlan {
	job := h.state().Job(webJob(0).Key())
	answered := jobEval(evalID)
	answered.Status = cluster.EvalComplete
	plan := &shims.ApplyPlan{Plan: cluster.Plan{At: noon, Eval: answered, SnapshotIndex: h.next - 1}}
	for i, on := range nodes {
		a := clustertest.Alloc(job, cluster.AllocID(fmt.Sprint("a", i)), on, noon)
		a.EvalID, a.Name, a.NodeName = answered.ID, fmt.Sprintf("web.web[%d]", i), string(on)
		plan.Places = append(plan.Places, a)
	}
	return plan
}

// healthy reports that allocations are healthy.
func healthy(on cluster.NodeID, ids ...cluster.AllocID) *shims.AllocClientUpdate {
	m := new(shims.AllocClientUpdate)
	for _, id := range ids {
		m.Reports = append(m.Reports, clustertest.Report(&cluster.Allocation{ID: id, NodeID: on}, cluster.ClientRunning, noon))
	}
	return m
}

func startDrain(on cluster.NodeID, id cluster.DrainID, deadline time.Duration) *shims.NodeUpdateDrain {
	return &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{
		Node: on, Drain: id, Spec: &cluster.DrainSpec{Deadline: deadline}, At: noon,
	}}
}

// mark is an entry of marks of allocations of the web job on n1.
func mark(class cluster.MarkClass, drain cluster.DrainID, revision cluster.Revision, ids ...cluster.AllocID) *shims.AllocUpdateDesiredTransition {
	m := &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{At: noon, Evals: []*cluster.Evaluation{jobEval("e-mark")}}}
	for _, id := range ids {
		m.Marks.Marks = append(m.Marks.Marks, rules.Mark{
			Alloc: id, Group: clustertest.Group(webJob(0)), Node: "n1", Drain: drain, Revision: revision, Class: class,
		})
	}
	return m
}

// twoOnOneNode is a job of two healthy allocations on n1, with an empty n2.
func twoOnOneNode(t testing.TB) *history {
	h := newHistory(t, shims.FSMConfig{})
	h.apply(node("n1"), node("n2"), &shims.JobRegister{Job: webJob(2), Evals: []*cluster.Evaluation{jobEval("e1")}})
	applied := h.apply(h.place("e1", "n1", "n1")).(shims.PlanApplied)
	must.SliceEmpty(t, applied.Refused)
	must.SliceEmpty(t, applied.Dropped)
	h.apply(healthy("n1", "a0", "a1"))
	return h
}

// dump returns every field of every row of the FSM's state.
func dump(t testing.TB, fsm *shims.FSM) string {
	t.Helper()
	return dumpOf(t, fsm.Store().Snapshot())
}

func dumpOf(t testing.TB, snapshot *statestore.Snapshot) string {
	t.Helper()
	var out bytes.Buffer
	must.NoError(t, statestore.Dump(&out, snapshot))
	return out.String()
}

// persist returns the FSM's snapshot.
func persist(t testing.TB, fsm *shims.FSM) []byte {
	t.Helper()
	snapshot, err := fsm.Snapshot()
	must.NoError(t, err)
	defer snapshot.Release()
	sink := new(memorySink)
	must.NoError(t, snapshot.Persist(sink))
	must.True(t, sink.closed)
	return sink.Bytes()
}

// memorySink is a snapshot file in memory.
type memorySink struct {
	bytes.Buffer
	closed, cancelled bool
	// fail is the error of every Write, or nil.
	fail error
}

func (s *memorySink) Write(b []byte) (int, error) {
	if s.fail != nil {
		return 0, s.fail
	}
	return s.Buffer.Write(b)
}

func (s *memorySink) ID() string    { return "memory" }
func (s *memorySink) Close() error  { s.closed = true; return nil }
func (s *memorySink) Cancel() error { s.cancelled = true; return nil }

// restore restores a snapshot into an FSM.
func restore(t testing.TB, fsm *shims.FSM, snapshot []byte) {
	t.Helper()
	must.NoError(t, fsm.Restore(io.NopCloser(bytes.NewReader(snapshot))))
}
