package drainertest

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

func TestTestFSM_reference(t *testing.T) {
	t.Parallel()
	must.NoError(t, TestFSM(func() FSM { return newReferenceFSM() }))
}

// The story has accepted and refused entries of each kind. The test pins its refusals.
func TestTestFSM_story(t *testing.T) {
	t.Parallel()
	f := newReferenceFSM()
	var refusals []string
	for i, s := range fsmStory() {
		refused, err := s.apply(f, uint64(i)+1)
		switch {
		case err != nil:
			refusals = append(refusals, s.title+": error")
		case len(refused) > 0:
			refusals = append(refusals, s.title+": "+itemsOf(refused))
		}
	}
	must.Eq(t, []string{
		"a drain of a node that does not exist: error",
		"a drain without an id: error",
		"two marks where the budget has room for one: n1 w2",
		"a mark without the evaluation of its job: n1 w2",
		"a mark that was planned for another drain: n2 w3",
		"a deadline mark before the deadline: n1 b1",
		"a deadline mark that was planned against the older revision: n1 b1",
		"completions of drains that are not done: n1, n2",
		"a cancel of a node that does not exist: error",
		"a mark of the drain that was cancelled: n1 w2",
		"a completion of the drain that was cancelled: n1",
		"a completion that was planned against another revision: n2",
		"a completion, twice in the entry: n2",
		"a mark of the wrong class: n1 w2",
		"a stage mark before its turn: n1 s1",
	}, refusals)
	must.Eq(t, cluster.OutcomeForced, f.Record("d3").Outcome)
	must.Eq(t, 5, f.Record("d3").StillStopping)
	must.Eq(t, 5, f.Record("d3").CountUnconfirmed())
}

// TestFSM finds each deliberate mistake, and the error names it.
//
//race:skip the same goroutines as TestTestFSM_reference
func TestTestFSM_mistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		flawedFSM
		want []string
	}{
		{"a drain without an id", flawedFSM{nameless: true}, []string{"a drain without an id", "it was applied, want an error such as"}},
		{"marks without their evaluations", flawedFSM{edit: func(_, after *model) { clear(after.evals) }}, []string{"OpenEvals(default/web)", "want [evaluation story-e1]"}},
		{"evaluations slightly after their marks", flawedFSM{late: func(m *model) { clear(m.evals) }}, []string{"without its evaluation", "one transaction"}},
		{"counts slightly after their marks", flawedFSM{late: eachNode(func(_, n *cluster.Node) {
			if n.Drain != nil {
				n.Drain.Marked = [cluster.MarkClassCount]int{}
			}
		})}, []string{"the drain counts", "one transaction"}},
		{"an index slightly after its rows", flawedFSM{late: func(m *model) { m.index-- }}, []string{"become visible together"}},
		{"marks that the drain does not count", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			if n.Drain != nil {
				n.Drain.Marked = [cluster.MarkClassCount]int{}
			}
		})}, []string{"Drain.Marked is"}},
		{"marks counted without their class", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			if n.Drain != nil {
				n.Drain.Marked[cluster.MarkPaced] += n.Drain.Marked[cluster.MarkDeadline]
				n.Drain.Marked[cluster.MarkDeadline] = 0
			}
		})}, []string{"deadline marks of batch work", "Drain.Marked is"}},
		{"no re-check of marks", flawedFSM{unchecked: true}, []string{"room for one", "refused [], want [n1 w2]"}},
		{"batch work is placed again after the deadline", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			a.DesiredTransition.MigrateDisablePlacement = false
		})}, []string{"allocation b1", "MigrateDisablePlacement is false, want true"}},
		{"services are not placed again after the deadline", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			a.DesiredTransition.MigrateDisablePlacement = a.DesiredTransition.Class == cluster.MarkDeadline
		})}, []string{"allocation w2", "MigrateDisablePlacement is true, want false"}},
		{"marks without a time", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			a.DesiredTransition.MarkedAt = time.Time{}
		})}, []string{"MarkedAt is 0001", "want 2030"}},
		{"marks with the time of the server", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			if a.DesiredTransition.Class != cluster.MarkNone {
				a.DesiredTransition.MarkedAt = time.Unix(0, 0)
			}
		})}, []string{"MarkedAt is", "want 2030"}},
		{"marks without their class", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			a.DesiredTransition.Class = cluster.MarkNone
		})}, []string{"DesiredTransition.Class is none"}},
		{"marks without their drain", flawedFSM{edit: afterEachAlloc(func(_, a *cluster.Allocation) {
			a.DesiredTransition.Drain = ""
		})}, []string{"DesiredTransition.Drain is"}},
		{"evaluations without the index of their entry", flawedFSM{edit: func(_, after *model) {
			for id, e := range after.evals {
				c := e.Copy()
				c.CreateIndex = 0
				after.evals[id] = c
			}
		}}, []string{"evaluation story-e1", "CreateIndex is 0"}},
		{"evaluations of refused marks", flawedFSM{allEvals: true}, []string{"planned for another drain", "OpenEvals(default/web)", "evaluation story-e2"}},
		{"evaluations only beside accepted marks", flawedFSM{noReevaluation: true}, []string{"a group to re-evaluate", "want [evaluation story-e8]"}},
		{"a request that is applied twice", flawedFSM{keyless: true}, []string{"the request that started the drain is repeated", "Drain.Revision"}},
		{"a cancel that leaves the marks", flawedFSM{edit: onCancel(func(was, a *cluster.Allocation) { a.DesiredTransition = was.DesiredTransition })},
			[]string{"a drain is cancelled", "Migrate is true, want false"}},
		{"a cancel that leaves MigrateDisablePlacement", flawedFSM{edit: onCancel(func(was, a *cluster.Allocation) {
			a.DesiredTransition.MigrateDisablePlacement = was.DesiredTransition.MigrateDisablePlacement
		})}, []string{"a drain is cancelled", "allocation b1", "MigrateDisablePlacement is true, want false"}},
		{"a cancel that leaves the time of the mark", flawedFSM{edit: onCancel(func(was, a *cluster.Allocation) {
			a.DesiredTransition.MarkedAt = was.DesiredTransition.MarkedAt
		})}, []string{"a drain is cancelled", "MarkedAt is"}},
		{"a cancel that withdraws marks of other writers", flawedFSM{edit: onCancel(func(_, a *cluster.Allocation) {
			if a.DesiredTransition.Drain == "" {
				a.DesiredTransition.Migrate = false
			}
		})}, []string{"a drain is cancelled", "allocation b2", "Migrate is false, want true"}},
		{"a cancel that withdraws the marks of another drain", flawedFSM{edit: onCancel(func(_, a *cluster.Allocation) {
			if a.DesiredTransition.Drain != "d1" {
				a.DesiredTransition.Drain, a.DesiredTransition.Class = "", cluster.MarkNone
			}
		})}, []string{"a drain is cancelled", "allocation b3", "want \"d2\""}},
		{"a cancel that withdraws marks of stopping allocations", flawedFSM{edit: onCancel(func(_, a *cluster.Allocation) {
			if a.ServerTerminal() {
				a.DesiredTransition = cluster.DesiredTransition{}
			}
		})}, []string{"a drain is cancelled", "allocation w1", "Migrate is false, want true"}},
		{"a cancel that leaves the node ineligible", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			n.SchedulingEligibility = cluster.NodeIneligible
		})}, []string{"SchedulingEligibility is \"ineligible\", want \"eligible\""}},
		{"a node that stays eligible while it drains", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			n.SchedulingEligibility = cluster.NodeEligible
		})}, []string{"a drain starts", "SchedulingEligibility is \"eligible\", want \"ineligible\""}},
		{"a node that is eligible after its drain", flawedFSM{edit: afterEachNode(func(was, n *cluster.Node) {
			if was != nil && was.Draining() && !n.Draining() {
				n.SchedulingEligibility = cluster.NodeEligible
			}
		})}, []string{"a completion, twice", "SchedulingEligibility"}},
		{"completions that are not checked again", flawedFSM{endsAll: true}, []string{"drains that are not done", "refused [], want [n1, n2]"}},
		{"no records", flawedFSM{record: func(*cluster.Drain) *cluster.Drain { return nil }}, []string{"the record of drain d1 is missing"}},
		{"records without the stopping allocations", flawedFSM{record: func(d *cluster.Drain) *cluster.Drain { d.StillStopping = 0; return d }},
			[]string{"the record of drain d1", "StillStopping is 0, want 1"}},
		{"records that do not count the stopping allocations as unconfirmed", flawedFSM{record: func(d *cluster.Drain) *cluster.Drain {
			d.Unconfirmed = &cluster.UnconfirmedAllocs{Count: 1}
			return d
		}}, []string{"the record of drain d1 counts", "as unconfirmed"}},
		{"records with the wrong outcome", flawedFSM{record: func(d *cluster.Drain) *cluster.Drain { d.Outcome = cluster.OutcomeComplete; return d }},
			[]string{"the record of drain d1", "Outcome is"}},
		{"an update that starts another drain", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			if n.Drain != nil {
				n.Drain.Strategy.StartedAt = n.Drain.UpdatedAt
			}
		})}, []string{"the drain is updated", "Strategy.StartedAt"}},
		{"an update that keeps the revision", flawedFSM{edit: afterEachNode(func(was, n *cluster.Node) {
			if was != nil && was.Drain != nil && n.Drain != nil {
				n.Drain.Revision = was.Drain.Revision
			}
		})}, []string{"the drain is updated", "Drain.Revision is 4, want 10"}},
		{"a deadline that counts from the first request", flawedFSM{edit: afterEachNode(func(_, n *cluster.Node) {
			if n.Drain != nil && n.Drain.Strategy.Deadline > 0 {
				n.Drain.Strategy.ForceDeadline = n.Drain.Strategy.StartedAt.Add(n.Drain.Strategy.Deadline)
			}
		})}, []string{"the drain is updated", "ForceDeadline"}},
		{"a drain of a node that does not exist", flawedFSM{lenient: true}, []string{"want an error"}},
		{"an index that a refused entry does not move", flawedFSM{edit: func(before, after *model) {
			if len(after.evals) == len(before.evals) {
				after.index = before.index
			}
		}}, []string{"Index is"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := testFSM(func() FSM {
				f := c.flawedFSM
				f.referenceFSM = newReferenceFSM()
				return &f
			}, time.Second)
			must.Error(t, err)
			for _, want := range c.want {
				must.StrContains(t, err.Error(), want)
			}
		})
	}
}

// flawedFSM is a state machine with a mistake.
type flawedFSM struct {
	*referenceFSM
	// edit changes the state after each entry.
	edit func(before, after *model)
	// late changes the state that is visible for a short time before an entry of marks.
	late func(*model)
	// record changes a record, which is a copy.
	record func(*cluster.Drain) *cluster.Drain

	unchecked, allEvals, noReevaluation, endsAll, lenient, keyless, nameless bool
}

// flawed applies the mistake to the state after an entry.
func (f *flawedFSM) flawed(before *model) {
	if f.edit != nil {
		after := f.state.Load().next(f.state.Load().index)
		f.edit(before, after)
		f.state.Store(after)
	}
}

func (f *flawedFSM) UpdateDrain(index uint64, u cluster.DrainUpdate) error {
	defer f.flawed(f.state.Load())
	if f.keyless {
		u.Key = ""
	}
	if f.nameless && u.Drain == "" {
		u.Drain = "made-by-the-server"
	}
	err := f.referenceFSM.UpdateDrain(index, u)
	if f.lenient {
		return nil
	}
	return err
}

func (f *flawedFSM) Marks(index uint64, m *rules.Marks) (refused []rules.Refusal, err error) {
	before := f.state.Load()
	defer f.flawed(before)
	if f.unchecked {
		s := before.next(index)
		s.applyMarks(m.Marks, m.At)
		s.upsertEvals(m.Evals)
		f.state.Store(s)
		return nil, nil
	}
	if f.late != nil && index > 2 {
		f.referenceFSM.Marks(index, m) //nolint:errcheck // it has no errors
		after := f.state.Load()
		partly := after.next(index)
		f.late(partly)
		f.state.Store(partly)
		delay(time.Millisecond)
		f.state.Store(before)
	}
	refused, err = f.referenceFSM.Marks(index, m)
	if f.noReevaluation && len(refused) == len(m.Marks) {
		s := before.next(index)
		f.state.Store(s)
	}
	if f.allEvals {
		s := f.state.Load().next(index)
		s.upsertEvals(m.Evals)
		f.state.Store(s)
	}
	return refused, err
}

func (f *flawedFSM) Completions(index uint64, c *rules.Completions) ([]rules.Refusal, error) {
	before := f.state.Load()
	defer f.flawed(before)
	if !f.endsAll {
		return f.referenceFSM.Completions(index, c)
	}
	s := before.next(index)
	for _, completion := range c.Completions {
		if n := s.nodes[completion.Node]; n.Draining() {
			s.nodes[n.ID], f.records[completion.Drain] = lifecycle.EndDrain(n, rules.Ending{Completion: completion, Outcome: cluster.OutcomeComplete}, c.At, index)
		}
	}
	f.state.Store(s)
	return nil, nil
}

func (f *flawedFSM) Record(id cluster.DrainID) *cluster.Drain {
	d := f.referenceFSM.Record(id).Copy()
	if d != nil && f.record != nil {
		return f.record(d)
	}
	return d
}

// eachNode edits copies of the nodes of a state.
func eachNode(edit func(was, n *cluster.Node)) func(*model) {
	return func(m *model) { afterEachNode(edit)(&model{}, m) }
}

// afterEachNode edits copies of the nodes after an entry.
func afterEachNode(edit func(was, n *cluster.Node)) func(before, after *model) {
	return func(before, after *model) {
		for id, n := range after.nodes {
			c := n.Copy()
			edit(before.nodes[id], c)
			after.nodes[id] = c
		}
	}
}

// afterEachAlloc edits copies of the allocations after an entry.
func afterEachAlloc(edit func(was, a *cluster.Allocation)) func(before, after *model) {
	return func(before, after *model) {
		for id, a := range after.allocs {
			c := a.Copy()
			edit(before.allocs[id], c)
			after.allocs[id] = c
		}
	}
}

// onCancel edits copies of the allocations after the entry that cancels the first drain.
func onCancel(edit func(was, a *cluster.Allocation)) func(before, after *model) {
	return func(before, after *model) {
		if before.nodes["n1"].Draining() && !after.nodes["n1"].Draining() {
			afterEachAlloc(edit)(before, after)
		}
	}
}
