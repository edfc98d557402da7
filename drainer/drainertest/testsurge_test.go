package drainertest

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// TestSurge passes a scheduler that places beside, and finds each deliberate mistake.
func TestTestSurge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flaws surgeFlaws
		want  []string
	}{
		"no mistake":                                  {},
		"views that state nothing":                    {surgeFlaws{unstated: true}, []string{"implement rules.SurgeView"}},
		"a request that is not written":               {surgeFlaws{row: func(_, a *cluster.Allocation) { a.DesiredTransition.Surge = "" }}, []string{"the request is not in the row of allocation w1"}},
		"no replacement":                              {surgeFlaws{ignores: true}, []string{"a drain replaces before it stops: no replacement of allocation w1 is placed"}},
		"a replacement that is no link":               {surgeFlaws{row: unlinked}, []string{`PreviousAllocation of the replacement r4-0 is "", want "w1"`}},
		"an original without its link":                {surgeFlaws{row: func(_, a *cluster.Allocation) { a.NextAllocation = "" }}, []string{`NextAllocation of allocation w1 is "", want its replacement "r4-0"`}},
		"no Standby":                                  {surgeFlaws{row: func(_, a *cluster.Allocation) { a.Standby = false }}, []string{"the replacement r4-0 has no Standby"}},
		"another name":                                {surgeFlaws{row: named}, []string{`the name of the replacement r4-0 is "other", want that of its original, "web.g[0]"`}},
		"placed on the draining node":                 {surgeFlaws{node: "n1"}, []string{"the replacement r4-0 is on the draining node"}},
		"two replacements at once":                    {surgeFlaws{copies: 2}, []string{"2 replacements of allocation w1 are placed, want one"}},
		"a replacement at each answer":                {surgeFlaws{again: true}, []string{"allocation r7-0 was placed: its request is answered"}},
		"the original stops at once":                  {surgeFlaws{stopsFirst: true}, []string{"allocation w1 was stopped: the original stays until it is marked"}},
		"a standby that counts":                       {surgeFlaws{counts: true}, []string{"Healthy is 3, want 2: a standby allocation does not count as healthy"}},
		"the mark is not checked again":               {surgeFlaws{refuses: true}, []string{"the mark: it was refused"}},
		"a standby after the mark":                    {surgeFlaws{stays: true}, []string{"allocation r4-0 has Standby, but its original is marked"}},
		"a standby after an end":                      {surgeFlaws{staysAtEnds: true}, []string{"the original fails: allocation r4-0 has Standby, but its original has ended"}},
		"a second one after the mark":                 {surgeFlaws{replacesMarked: true}, []string{"allocation r9-0 was placed: its replacement is there when the original is marked"}},
		"a marked original runs on":                   {surgeFlaws{keepsMarked: true}, []string{"allocation w1 is marked and not stopped"}},
		"a request after a cancel":                    {surgeFlaws{keepsRequest: true}, []string{"the drain is cancelled: allocation w1 has the request of a drain that was cancelled"}},
		"a cancel without an evaluation":              {surgeFlaws{unevaluated: true}, []string{"the cancel has no evaluation of job", "nothing stops the standby r4-0"}},
		"a standby after a cancel":                    {surgeFlaws{keepsStandby: true}, []string{"allocation r4-0 runs on: the standby stops after a cancel"}},
		"no original after a cancel":                  {surgeFlaws{stopsOriginal: true}, []string{"allocation w1 was stopped: after a cancel the original stays"}},
		"a link after a cancel":                       {surgeFlaws{keepsLink: true}, []string{`NextAllocation of allocation w1 is "r4-0" after its standby was stopped`}},
		"a failed standby is not replaced":            {surgeFlaws{leavesFailed: true}, []string{"the replacement fails: no replacement of allocation r4-0 is placed"}},
		"a failed standby and an ordinary allocation": {surgeFlaws{ordinary: true}, []string{"the replacement fails: the replacement r7-0 has no Standby"}},
		"only the first standby is active":            {surgeFlaws{onlyFirst: true}, []string{"the replacement fails: allocation r7-0 has Standby, but its original is marked"}},
		"a scheduler with an error":                   {surgeFlaws{err: errors.New("no log")}, []string{"scheduling: no log"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := TestSurge(func() SurgeCluster { return newSurgeDouble(c.flaws) })
			if len(c.want) == 0 {
				must.NoError(t, err)
				return
			}
			for _, want := range c.want {
				must.ErrorContains(t, err, want)
			}
		})
	}
}

func unlinked(_, a *cluster.Allocation) { a.PreviousAllocation = "" }

func named(before, a *cluster.Allocation) {
	if before == nil && a.Standby {
		a.Name = "other"
	}
}

// surgeFlaws are the mistakes of a scheduler and its state machine.
type surgeFlaws struct {
	// row edits the rows that an entry writes. before is nil for a new row.
	row func(before, after *cluster.Allocation)
	// node is where the scheduler places, if it is set.
	node cluster.NodeID
	// copies is how many replacements it places, if it is set.
	copies int
	err    error

	unstated, ignores, again, stopsFirst, counts, refuses, stays, staysAtEnds, replacesMarked, keepsMarked, keepsRequest, keepsStandby,
	stopsOriginal, keepsLink, unevaluated, leavesFailed, ordinary, onlyFirst bool
}

// surgeDouble is a scheduler that places beside, over the reference of the state machine.
type surgeDouble struct {
	*referenceFSM
	flaws surgeFlaws
	plan  surgePlan
}

// surgePlan is one entry of the scheduler.
type surgePlan struct {
	state *model
	// places counts the placements.
	places int
}

func newSurgeDouble(f surgeFlaws) *surgeDouble {
	d := &surgeDouble{referenceFSM: newReferenceFSM(), flaws: f}
	d.state.Load().beside = true
	return d
}

func (d *surgeDouble) View() rules.View {
	v := d.state.Load()
	switch {
	case d.flaws.unstated:
		return struct{ rules.View }{v}
	case d.flaws.counts:
		return countsStandbys{besides{v}}
	}
	return v
}

// countsStandbys is a view that counts standbys, and states that they are placed.
type countsStandbys struct{ besides }

func (countsStandbys) PlacesBeside() bool { return true }

func (d *surgeDouble) Commit(index uint64, rows Rows) error {
	before := d.state.Load()
	err := d.referenceFSM.Commit(index, rows)
	d.endStandbys(before, d.flaws.staysAtEnds)
	return err
}

func (d *surgeDouble) Marks(index uint64, m *rules.Marks) ([]rules.Refusal, error) {
	before := d.state.Load()
	if d.flaws.refuses && !m.Marks[0].Surge {
		return []rules.Refusal{{Why: "it is full"}}, nil
	}
	refused, err := d.referenceFSM.Marks(index, m)
	d.endStandbys(before, d.flaws.stays)
	return refused, err
}

func (d *surgeDouble) UpdateDrain(index uint64, u cluster.DrainUpdate) error {
	before := d.state.Load()
	err := d.referenceFSM.UpdateDrain(index, u)
	if after := d.state.Load(); u.Spec == nil && !d.flaws.unevaluated {
		after.upsertEvals([]*cluster.Evaluation{storyEval("cancel", after.allocs["w1"].Job)})
	}
	if d.flaws.keepsRequest {
		d.state.Load().allocs = before.allocs
	}
	return err
}

// endStandbys completes the newest state after an entry, which no other goroutine reads.
func (d *surgeDouble) endStandbys(before *model, stays bool) {
	after := d.state.Load()
	for _, id := range sortedKeys(after.allocs, cmp.Compare) {
		for i, active := range lifecycle.EndStandby(before.Alloc(id), after.Alloc(id), after.Alloc, after.index) {
			if !stays && (i == 0 || !d.flaws.onlyFirst) {
				after.allocs[active.ID] = active
			}
		}
	}
	for _, id := range sortedKeys(after.allocs, cmp.Compare) {
		if a := after.allocs[id]; d.flaws.row != nil && a != before.allocs[id] && before.index > 1 {
			a = a.Copy()
			d.flaws.row(before.allocs[id], a)
			after.allocs[id] = a
		}
	}
}

// Schedule answers the pending evaluations, each with one entry.
func (d *surgeDouble) Schedule(time.Time) error {
	for _, id := range sortedKeys(d.state.Load().evals, cmp.Compare) {
		before := d.state.Load()
		if before.evals[id].Status != cluster.EvalPending {
			continue
		}
		d.plan = surgePlan{state: before.next(before.index + 1)}
		e := before.evals[id].Copy()
		e.Status = cluster.EvalComplete
		d.plan.state.evals[id] = e
		for _, alloc := range sortedKeys(before.allocs, cmp.Compare) {
			d.decide(before.allocs[alloc])
		}
		d.state.Store(d.plan.state)
		d.endStandbys(before, false)
	}
	return d.flaws.err
}

// decide plans one allocation.
func (d *surgeDouble) decide(a *cluster.Allocation) {
	s := d.plan.state
	requested := cluster.SurgeRequested(a, s.Node(a.NodeID))
	original := cluster.Original(a, s.Alloc)
	switch {
	case a.ServerTerminal():
	case a.Standby && original != nil && !cluster.SurgeRequested(original, s.Node(original.NodeID)):
		d.giveUp(a, original)
	case a.Marked() && !d.flaws.keepsMarked:
		d.stop(a)
		if a.NextAllocation == "" || d.flaws.replacesMarked {
			d.place(a, false)
		}
	case a.ClientTerminal() && a.NextAllocation == "" && !(a.Standby && d.flaws.leavesFailed):
		d.place(a, a.Standby && !d.flaws.ordinary)
	case requested && !d.flaws.ignores && (a.NextAllocation == "" || d.flaws.again):
		for range max(1, d.flaws.copies) {
			d.place(a, true)
		}
		if d.flaws.stopsFirst {
			d.stop(a)
		}
	}
}

// giveUp stops a standby that no drain requests.
func (d *surgeDouble) giveUp(a, original *cluster.Allocation) {
	switch {
	case d.flaws.stopsOriginal:
		d.stop(original)
		return
	case !d.flaws.keepsStandby:
		d.stop(a)
	}
	if original = original.Copy(); !d.flaws.keepsLink {
		original.NextAllocation = ""
	}
	d.plan.state.allocs[original.ID] = original
}

func (d *surgeDouble) stop(a *cluster.Allocation) {
	a = d.plan.state.allocs[a.ID].Copy()
	a.DesiredStatus = cluster.DesiredStop
	d.plan.state.allocs[a.ID] = a
}

// place places a replacement on the last ready node.
func (d *surgeDouble) place(previous *cluster.Allocation, standby bool) {
	s := d.plan.state
	next := storyAlloc(fmt.Sprintf("r%d-%d", s.index, d.plan.places), previous.Job, "n3")
	d.plan.places++
	next.Name, next.PreviousAllocation, next.Standby = previous.Name, previous.ID, standby
	next.ClientStatus, next.DeploymentStatus, next.CreateIndex = cluster.ClientPending, nil, s.index
	if d.flaws.node != "" {
		next.NodeID = d.flaws.node
	}
	previous = s.allocs[previous.ID].Copy()
	previous.NextAllocation = next.ID
	s.allocs[previous.ID], s.allocs[next.ID] = previous, next
}
