package shims_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// logsJob is a system job.
func logsJob() *cluster.Job {
	job := &cluster.Job{ID: "logs", Type: cluster.JobSystem, TaskGroups: []*cluster.TaskGroup{{Name: "logs", Tasks: []*cluster.Task{{Name: "logs"}}}}}
	job.Canonicalize()
	return job
}

// evalsOf returns the evaluations that a response names.
func evalsOf(t testing.TB, r shims.Response) []cluster.EvalID {
	t.Helper()
	switch r := r.(type) {
	case shims.ChangeApplied:
		return r.Evals
	case shims.NodesDeregistered:
		return r.Evals
	case shims.DrainRequestApplied:
		return r.Evals
	}
	t.Fatalf("%T has no evaluations", r)
	return nil
}

// Each of these changes was proposed from a state without the previous entry, so it carries no
// evaluation. The FSM must add one for each affected job. Without it, a replacement stayed on a
// node that was down, and the drain that waited for the replacement never ended.
func TestFSM_AChangeEvaluatesEveryJobThatItConcerns(t *testing.T) {
	t.Parallel()
	two := func(h *history) {
		h.apply(node("n1"), node("n2"), &shims.JobRegister{Job: webJob(2), Evals: []*cluster.Evaluation{jobEval("e1")}})
	}
	placed := func(h *history) { two(h); h.apply(h.place("e1", "n1", "n2")) }
	placedNow := func(h *history) {
		placed(h)
		h.apply(&shims.RaiseClusterVersion{Version: cluster.VersionOfConfirmation})
	}
	down := func(h *history) {
		placed(h)
		h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n2", Status: cluster.NodeDown})
	}
	out := func(h *history) {
		two(h)
		h.apply(&shims.NodeUpdateEligibility{At: noon, Node: "n2", Eligibility: cluster.NodeIneligible}, &shims.JobRegister{Job: logsJob()})
	}
	drained := func(h *history) {
		two(h)
		h.apply(startDrain("n2", "d1", time.Hour), &shims.JobRegister{Job: logsJob()})
	}
	status := func(s cluster.NodeStatus) shims.Message {
		return &shims.NodeUpdateStatus{At: noon, Node: "n2", Status: s}
	}
	eligible := func(e cluster.Eligibility) shims.Message {
		return &shims.NodeUpdateEligibility{At: noon, Node: "n2", Eligibility: e}
	}
	cancel := func(markEligible bool) shims.Message {
		return &shims.NodeUpdateDrain{DrainUpdate: cluster.DrainUpdate{Node: "n2", MarkEligible: markEligible, At: noon}}
	}
	ends := func(s cluster.ClientStatus) shims.Message {
		return &shims.AllocClientUpdate{Reports: []cluster.AllocReport{{Alloc: "a1", Node: "n2", ClientStatus: s, At: noon}}}
	}
	for name, c := range map[string]struct {
		before  func(*history)
		change  shims.Message
		trigger cluster.EvalTrigger
		jobs    []cluster.JobID
	}{
		"a node goes down under a placement":         {placed, status(cluster.NodeDown), cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node disconnects under a placement":       {placed, status(cluster.NodeDisconnected), cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node comes back with an allocation":       {down, status(cluster.NodeReady), cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node keeps its status":                    {placed, status(cluster.NodeReady), "", nil},
		"a node is deleted under a placement":        {placed, &shims.NodeDeregister{At: noon, Nodes: []cluster.NodeID{"n1", "n2"}}, cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node registers after a system job":        {out, node("n3"), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a node becomes eligible for a system job":   {out, eligible(cluster.NodeEligible), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a node stays ineligible":                    {out, eligible(cluster.NodeIneligible), "", nil},
		"a node returns from a drain":                {drained, cancel(true), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a drain ends and its node does not return":  {drained, cancel(false), "", nil},
		"a job is stopped that has just registered":  {two, &shims.JobDeregister{Job: webJob(1).Key()}, cluster.TriggerJobDeregister, []cluster.JobID{"web"}},
		"a job is purged":                            {placed, &shims.JobDeregister{Job: webJob(1).Key(), Purge: true}, "", nil},
		"a job is purged while it runs":              {placedNow, &shims.JobDeregister{Job: webJob(1).Key(), Purge: true, At: noon}, cluster.TriggerJobDeregister, []cluster.JobID{"web"}},
		"an allocation fails that was just placed":   {placed, ends(cluster.ClientFailed), cluster.TriggerAllocFailure, []cluster.JobID{"web"}},
		"a service completes that was just placed":   {placed, ends(cluster.ClientComplete), cluster.TriggerAllocFailure, []cluster.JobID{"web"}},
		"an allocation runs":                         {placed, ends(cluster.ClientRunning), "", nil},
		"an unknown allocation ends":                 {two, ends(cluster.ClientFailed), "", nil},
		"a node goes down with a carried evaluation": {placed, &shims.NodeUpdateStatus{At: noon, Node: "n2", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{jobEval("mine")}}, "", []cluster.JobID{"web"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var responses [3]shims.Response
			var dumps [3]string
			for i := range responses {
				h := newHistory(t, shims.FSMConfig{})
				c.before(h)
				if i == 2 { // restore this replica from a snapshot
					restore(t, h.fsm, persist(t, h.fsm))
				}
				responses[i] = h.apply(c.change)
				dumps[i] = dump(t, h.fsm)
				if i > 0 {
					continue
				}
				var jobs []cluster.JobID
				for _, id := range evalsOf(t, responses[i]) {
					e := h.state().Eval(id)
					jobs = append(jobs, e.JobID)
					must.Eq(t, cluster.EvalPending, e.Status)
					must.Eq(t, h.next-1, e.CreateIndex)
					if c.trigger != "" {
						must.Eq(t, c.trigger, e.TriggeredBy)
						_, err := uuid.Parse(string(id))
						must.NoError(t, err)
					}
				}
				must.Eq(t, c.jobs, jobs)
			}
			for i := range responses {
				must.Eq(t, responses[0], responses[i])
				must.True(t, dumps[0] == dumps[i], must.Sprintf("replica %d has another state", i))
			}
		})
	}
}

// Each affected job gets one evaluation, carried by the entry or created by the FSM, and no id is
// used twice.
func TestFSM_EvaluationsAreCreatedOnce(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	h.apply(&shims.JobRegister{Job: logsJob()})
	ids := map[cluster.EvalID]bool{}
	for _, s := range []cluster.NodeStatus{cluster.NodeDown, cluster.NodeReady, cluster.NodeDisconnected, cluster.NodeReady} {
		carried := jobEval(cluster.EvalID(fmt.Sprint("carried ", s, len(ids))))
		evals := evalsOf(t, h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: s, Evals: []*cluster.Evaluation{carried}}))
		must.SliceLen(t, 2, evals)
		must.Eq(t, carried.ID, evals[0])
		must.Eq(t, "logs", h.state().Eval(evals[1]).JobID)
		for _, id := range evals {
			must.False(t, ids[id])
			ids[id] = true
		}
	}
	// A carried evaluation that is not pending does not replace the required one.
	complete := jobEval("complete")
	complete.Status = cluster.EvalComplete
	evals := evalsOf(t, h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{complete}}))
	must.SliceLen(t, 3, evals)
}

// An entry carries a blocked evaluation of a job. This evaluation waits for capacity, so the FSM
// also creates a pending one for the change of the entry.
func TestFSM_ABlockedEvaluationDoesNotReplaceAPendingOne(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	blocked := jobEval("blocked")
	blocked.Status = cluster.EvalBlocked
	evals := evalsOf(t, h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{blocked}}))
	must.SliceLen(t, 2, evals)
	must.Eq(t, blocked.ID, evals[0])
	must.Eq(t, cluster.EvalPending, h.state().Eval(evals[1]).Status)
	must.Eq(t, blocked.JobID, h.state().Eval(evals[1]).JobID)
}

// Of two concurrent registrations with different secrets, the first is accepted.
func TestFSM_TheFirstSecretOfANodeCounts(t *testing.T) {
	t.Parallel()
	h := newHistory(t, shims.FSMConfig{})
	first, second := node("n1"), node("n1")
	first.Node.SecretID, second.Node.SecretID = "mine", "theirs"
	h.apply(first)
	refused, is := h.apply(second).(shims.Refused)
	must.True(t, is)
	must.ErrorIs(t, refused.Err, statestore.ErrNodeSecret)
	must.Eq(t, "mine", h.state().Node("n1").SecretID)
	must.Eq(t, shims.ChangeApplied{}, h.apply(first).(shims.ChangeApplied))
	h.apply(&shims.NodeDeregister{At: noon, Nodes: []cluster.NodeID{"n1"}})
	must.Eq(t, shims.ChangeApplied{}, h.apply(second).(shims.ChangeApplied))
}
