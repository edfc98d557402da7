package applied_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
	"github.com/seed-f9cf0b39/nodedrain/witness"
	"github.com/seed-f9cf0b39/nodedrain/witness/applied"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// log applies messages to an FSM and checks that what each changed is named.
type log struct {
	*testing.T
	fsm     *shims.FSM
	index   uint64
	seen    map[shims.MessageType]bool
	entries []witness.Entry
}

func newLog(t *testing.T) *log {
	l := &log{T: t, seen: make(map[shims.MessageType]bool)}
	l.fsm = shims.NewFSM(shims.FSMConfig{OnApply: func(a shims.Applied) {
		e := applied.Entry(a)
		must.Eq(t, a.Index, e.Index)
		l.seen[a.Type] = true
		l.entries = append(l.entries, e)
		for _, name := range changed(a.Before, a.After) {
			must.SliceContains(t, names(e), name, must.Sprintf("%s does not name %s", a.Type, name))
		}
	}})
	return l
}

func (l *log) apply(m shims.Message) shims.Response {
	l.Helper()
	data, err := shims.Encode(m)
	must.NoError(l, err)
	l.index++
	response, err := l.fsm.ApplyEntry(l.index, data)
	must.NoError(l, err)
	if refused, ok := response.(shims.Refused); ok {
		must.NoError(l, refused.Err)
	}
	return response
}

func (l *log) state() *statestore.Snapshot { return l.fsm.Store().Snapshot() }

// names are the rows an entry names, replacements naming their predecessors.
func names(e witness.Entry) (names []string) {
	for _, id := range e.Touched.Nodes {
		names = append(names, fmt.Sprint("node ", id))
	}
	for _, key := range e.Touched.Jobs {
		names = append(names, fmt.Sprint("job ", key))
	}
	for _, id := range e.Touched.Allocs {
		names = append(names, fmt.Sprint("alloc ", id))
		if a := e.After.Alloc(id); a != nil {
			names = append(names, fmt.Sprint("alloc ", a.PreviousAllocation))
		}
	}
	return names
}

// changed are the rows that differ between two states in what a witness reads.
func changed(before, after *statestore.Snapshot) (names []string) {
	rows := func(s *statestore.Snapshot) map[string]string {
		rows := make(map[string]string)
		for n := range s.Nodes() {
			var drain cluster.DrainID
			if n.Drain != nil {
				drain = n.Drain.ID
			}
			rows[fmt.Sprint("node ", n.ID)] = fmt.Sprint(n.Status, drain)
		}
		for j := range s.Jobs() {
			rows[fmt.Sprint("job ", j.Key())] = fmt.Sprint(j.ModifyIndex)
		}
		for a := range s.Allocs() {
			rows[fmt.Sprint("alloc ", a.ID)] = fmt.Sprint(a.ModifyIndex)
		}
		return rows
	}
	was, is := rows(before), rows(after)
	for name, row := range was {
		if is[name] != row {
			names = append(names, name)
		}
	}
	for name := range is {
		if _, old := was[name]; !old {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func eval(id cluster.EvalID) *cluster.Evaluation {
	return &cluster.Evaluation{
		ID: id, Namespace: "default", JobID: "web", Type: cluster.JobService, Priority: 50, Status: cluster.EvalPending,
	}
}

// Every type of message names everything that a witness would see change.
func TestEntry_namesWhatChanged(t *testing.T) {
	t.Parallel()
	l := newLog(t)
	for _, id := range []cluster.NodeID{"n1", "n2", "n3"} {
		n := &cluster.Node{ID: id, Status: cluster.NodeReady, Resources: cluster.Resources{CPU: 1000}}
		n.Canonicalize()
		l.apply(&shims.NodeRegister{At: epoch, Node: n})
	}
	job := &cluster.Job{ID: "web", TaskGroups: []*cluster.TaskGroup{{Name: "g", Count: 2, Tasks: []*cluster.Task{{Name: "t"}}}}}
	job.Canonicalize()
	l.apply(&shims.JobRegister{Job: job, Evals: []*cluster.Evaluation{eval("e1")}})
	l.apply(&shims.EvalUpdate{Evals: []*cluster.Evaluation{eval("e2")}})

	place := func(id, previous cluster.AllocID, on cluster.NodeID, name string) *cluster.Allocation {
		return &cluster.Allocation{
			ID: id, Namespace: "default", JobID: "web", Job: l.state().Job(job.Key()), TaskGroup: "g", NodeID: on, Name: name,
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientPending, PreviousAllocation: previous, CreateTime: epoch,
		}
	}
	done := func(id cluster.EvalID) *cluster.Evaluation {
		e := eval(id)
		e.Status = cluster.EvalComplete
		return e
	}
	plan := func(p cluster.Plan) {
		p.At, p.SnapshotIndex = epoch, l.index
		response := l.apply(&shims.ApplyPlan{Plan: p}).(shims.PlanApplied)
		must.SliceEmpty(t, response.Refused)
	}
	plan(cluster.Plan{Eval: done("e1"), Places: []*cluster.Allocation{place("a1", "", "n1", "web.g[0]"), place("a2", "", "n2", "web.g[1]")}})
	healthy := true
	report := func(id cluster.AllocID, on cluster.NodeID, status cluster.ClientStatus) cluster.AllocReport {
		return cluster.AllocReport{Alloc: id, Node: on, ClientStatus: status, Healthy: &healthy, HealthyAt: epoch, At: epoch}
	}
	l.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{
		report("a1", "n1", cluster.ClientRunning), report("a2", "n2", cluster.ClientRunning),
	}})

	drain := func(id cluster.DrainID, spec *cluster.DrainSpec) {
		l.apply(&shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: "n1", Drain: id, Spec: spec, At: epoch, MarkEligible: true}})
	}
	mark := func(id cluster.DrainID, e cluster.EvalID) {
		n := l.state().Node("n1")
		response := l.apply(&shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
			At: epoch, Evals: []*cluster.Evaluation{eval(e)},
			Marks: []rules.Mark{{
				Alloc: "a1", Node: "n1", Group: cluster.GroupKey{Job: job.Key(), Name: "g"},
				Drain: id, Revision: n.Drain.Revision, Class: cluster.MarkPaced,
			}},
		}}).(shims.MarksApplied)
		must.SliceLen(t, 1, response.Accepted)
	}
	drain("d1", &cluster.DrainSpec{})
	mark("d1", "e3")
	drain("", nil) // withdraws the mark
	must.False(t, l.state().Alloc("a1").Marked())
	drain("d2", &cluster.DrainSpec{})
	mark("d2", "e4")
	plan(cluster.Plan{
		Eval:   done("e4"),
		Stops:  []cluster.PlanStop{{Alloc: "a1", Migrate: true}},
		Places: []*cluster.Allocation{place("b1", "a1", "n3", "web.g[0]")},
	})
	l.apply(&shims.AllocClientUpdate{Reports: []cluster.AllocReport{report("a1", "n1", cluster.ClientComplete)}})
	completed := l.apply(&shims.NodesDrainComplete{Completions: rules.Completions{At: epoch, Completions: []rules.Completion{
		{Node: "n1", Drain: "d2", Revision: l.state().Node("n1").Drain.Revision},
	}}}).(shims.CompletionsApplied)
	must.SliceLen(t, 1, completed.Ended)
	l.apply(&shims.NodeUpdateEligibility{At: epoch, Node: "n1", Eligibility: cluster.NodeEligible})
	l.apply(&shims.NodeUpdateStatus{At: epoch, Node: "n2", Status: cluster.NodeDown})
	l.apply(&shims.NodeDeregister{At: epoch, Nodes: []cluster.NodeID{"n3"}})
	l.apply(&shims.JobDeregister{Job: job.Key(), Purge: true})
	l.apply(&shims.RaiseClusterVersion{Version: 2})

	for i := range 256 {
		kind := shims.MessageType(i)
		known := kind.String() != fmt.Sprintf("message type %d", i)
		must.Eq(t, known, l.seen[kind], must.Sprintf("%s has no entry in this test", kind))
	}

	w := witness.New(witness.Options{})
	for _, e := range l.entries {
		w.Observe(e)
	}
	must.SliceEmpty(t, w.Audit(l.state()))
	found := w.Report()
	must.SliceEmpty(t, found.Findings)
	must.SliceLen(t, 2, found.Drains)
	must.Eq(t, cluster.OutcomeCancelled, found.Drains[0].Outcome)
	must.Eq(t, 1, found.Drains[0].Withdrawn)
	must.Eq(t, cluster.OutcomeComplete, found.Drains[1].Outcome)
	must.Eq(t, 1, found.Drains[1].Moved)
}
