package main

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// applyAll applies entries one after another. Each is made from the state before it.
func applyAll(s *state, entries ...func(*state) *entry) *state {
	for _, e := range entries {
		s, _ = s.apply(e(s))
	}
	return s
}

// is returns an entry for applyAll that does not depend on the state.
func is(e *entry) func(*state) *entry { return func(*state) *entry { return e } }

func planEntry(s *state) *entry { return &entry{At: noon, Plan: s.nextPlan()} }

// draining returns the entry that starts the drain of a node, or cancels it if there is no spec.
func draining(node cluster.NodeID, spec *cluster.DrainSpec) *entry {
	return &entry{At: noon, Drain: &cluster.DrainUpdate{Node: node, Drain: cluster.DrainID("d-" + node), At: noon, Spec: spec}}
}

// A plan whose state has changed does nothing, and its evaluation stays open.
func TestState_outdatedPlan(t *testing.T) {
	t.Parallel()
	job := newJob("web", cluster.JobService, 1)
	registered := applyAll(newState(), is(nodeEntry("a")), is(nodeEntry("b")), is(&entry{At: noon, Job: job}))
	running := applyAll(registered, planEntry, func(s *state) *entry { return &entry{Reports: s.reports(noon.Add(startTime))} })
	var web *cluster.Allocation
	for _, web = range running.allocs {
	}
	marked := applyAll(running, is(draining(web.NodeID, &cluster.DrainSpec{})), func(s *state) *entry {
		drain := s.nodes[web.NodeID].Drain
		m := rules.Mark{Alloc: web.ID, Group: web.GroupKey(), Node: web.NodeID, Drain: drain.ID, Revision: drain.Revision, Class: cluster.MarkPaced}
		eval := &cluster.Evaluation{ID: "e", Namespace: job.Namespace, JobID: job.ID, Status: cluster.EvalPending}
		return &entry{At: noon, Marks: &rules.Marks{At: noon, Marks: []rules.Mark{m}, Evals: []*cluster.Evaluation{eval}}}
	})
	must.True(t, marked.allocs[web.ID].Marked())

	for name, change := range map[string]struct {
		from   *state
		entry  *entry
		placed int
	}{
		"its node drains":           {registered, draining(registered.nextPlan().Place[0].NodeID, &cluster.DrainSpec{}), 0},
		"the mark was withdrawn":    {marked, draining(web.NodeID, nil), 1},
		"it was applied before":     {marked, planEntry(marked), 2},
		"another node was added":    {registered, nodeEntry("c"), 1},
		"the same job was placed":   {applyAll(registered, is(&entry{At: noon, Job: job})), planEntry(registered), 1},
		"the client reported again": {marked, &entry{Reports: marked.reports(noon.Add(startTime))}, 2},
	} {
		after := applyAll(change.from, is(change.entry), is(planEntry(change.from)))
		must.MapLen(t, change.placed, after.allocs, must.Sprint(name))
	}
}
