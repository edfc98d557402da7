package shims_test

import (
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

// evalsOf are the evaluations that a response says were made.
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
	t.Fatalf("%T says nothing of evaluations", r)
	return nil
}

// Evaluations were once those that the proposer of a change knew of. Each of these
// changes was proposed from a state without the entry before it, so it carries none,
// and nobody looked at the jobs that it concerns: a replacement stayed on a node that
// was down, and a drain that waited for it never ended.
func TestFSM_ChangesHaveEveryJobLookedAtThatTheyConcern(t *testing.T) {
	t.Parallel()
	two := func(h *history) {
		h.apply(node("n1"), node("n2"), &shims.JobRegister{Job: webJob(2), Evals: []*cluster.Evaluation{jobEval("e1")}})
	}
	placed := func(h *history) { two(h); h.apply(h.place("e1", "n1", "n2")) }
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
		return &shims.NodeUpdateDrain{DrainUpdate: statestore.DrainUpdate{Node: "n2", MarkEligible: markEligible, At: noon}}
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
		"a node is out of touch under a placement":   {placed, status(cluster.NodeDisconnected), cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node comes back with an allocation":       {down, status(cluster.NodeReady), cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node is what it was":                      {placed, status(cluster.NodeReady), "", nil},
		"a node is deleted under a placement":        {placed, &shims.NodeDeregister{At: noon, Nodes: []cluster.NodeID{"n1", "n2"}}, cluster.TriggerNodeUpdate, []cluster.JobID{"web"}},
		"a node registers after a system job":        {out, node("n3"), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a node becomes eligible for a system job":   {out, eligible(cluster.NodeEligible), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a node is not eligible as before":           {out, eligible(cluster.NodeIneligible), "", nil},
		"a node returns from a drain":                {drained, cancel(true), cluster.TriggerNodeUpdate, []cluster.JobID{"logs"}},
		"a drain ends and its node does not return":  {drained, cancel(false), "", nil},
		"a job is stopped that has just registered":  {two, &shims.JobDeregister{Job: webJob(1).Key()}, cluster.TriggerJobDeregister, []cluster.JobID{"web"}},
		"a job is purged":                            {placed, &shims.JobDeregister{Job: webJob(1).Key(), Purge: true}, "", nil},
		"an allocation fails that was just placed":   {placed, ends(cluster.ClientFailed), cluster.TriggerAllocFailure, []cluster.JobID{"web"}},
		"a service completes that was just placed":   {placed, ends(cluster.ClientComplete), cluster.TriggerAllocFailure, []cluster.JobID{"web"}},
		"an allocation runs":                         {placed, ends(cluster.ClientRunning), "", nil},
		"an allocation ends that nobody knows":       {two, ends(cluster.ClientFailed), "", nil},
		"a node goes down with what it carries else": {placed, &shims.NodeUpdateStatus{At: noon, Node: "n2", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{jobEval("mine")}}, "", []cluster.JobID{"web"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var responses [3]shims.Response
			var dumps [3]string
			for i := range responses {
				h := newHistory(t, shims.FSMConfig{})
				c.before(h)
				if i == 2 { // this one comes from a snapshot
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

// An evaluation of each job that a change concerns is made once, whether the entry
// carries it or not, and ids are never had twice.
func TestFSM_EvaluationsAreMadeOnce(t *testing.T) {
	t.Parallel()
	h := twoOnOneNode(t)
	h.apply(&shims.JobRegister{Job: logsJob()})
	seen := map[cluster.EvalID]bool{}
	for _, s := range []cluster.NodeStatus{cluster.NodeDown, cluster.NodeReady, cluster.NodeDisconnected, cluster.NodeReady} {
		carried := jobEval("carried " + string(s) + string(rune('a'+len(seen))))
		made := evalsOf(t, h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: s, Evals: []*cluster.Evaluation{carried}}))
		must.SliceLen(t, 2, made)
		must.Eq(t, carried.ID, made[0])
		must.Eq(t, "logs", h.state().Eval(made[1]).JobID)
		for _, id := range made {
			must.False(t, seen[id])
			seen[id] = true
		}
	}
	// One that asks nobody to look is not enough.
	complete := jobEval("complete")
	complete.Status = cluster.EvalComplete
	made := evalsOf(t, h.apply(&shims.NodeUpdateStatus{At: noon, Node: "n1", Status: cluster.NodeDown, Evals: []*cluster.Evaluation{complete}}))
	must.SliceLen(t, 3, made)
}

// Of two registrations on their way with two secrets the first has the node.
func TestFSM_ANodeIsWhoseSecretCameFirst(t *testing.T) {
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
