package shims_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// pausable is a cluster whose drain of n1 is paused and resumed.
type pausable struct {
	*clustertest.Replica
	now time.Time
}

func newPausable(t *testing.T) *pausable {
	p := &pausable{Replica: clustertest.NewReplica(t, shims.FSMConfig{}), now: noon}
	p.Now = func() time.Time { return p.now }
	p.Must(&shims.RaiseClusterVersion{Version: cluster.VersionOfPauses})
	p.Nodes("n1", "n2")
	return p
}

// run places healthy allocations of a job on n1.
func (p *pausable) run(j *cluster.Job, ids ...cluster.AllocID) {
	p.Helper()
	j = p.Job(j)
	var places []*cluster.Allocation
	for _, id := range ids {
		places = append(places, clustertest.Alloc(j, id, "n1", p.now))
	}
	must.SliceEmpty(p, p.Plan(j, nil, places...).Refused)
	p.Report(cluster.ClientRunning, ids...)
}

func (p *pausable) pause(id cluster.NodeID, pause bool) {
	p.Helper()
	p.Must(&shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Node: id, Pause: pause, At: p.now}})
}

// planned is an entry of one mark of the class, or of a completion without one, planned now. It is written at a time.
func (p *pausable) planned(class cluster.MarkClass, id cluster.AllocID, at time.Time) shims.Message {
	n := p.State().Node("n1")
	if class == cluster.MarkNone {
		return &shims.NodesDrainComplete{Completions: rules.Completions{
			At: at, Completions: []rules.Completion{{Node: "n1", Drain: n.Drain.ID, Revision: n.Drain.Revision}},
		}}
	}
	a := p.State().Alloc(id)
	return &shims.AllocUpdateDesiredTransition{Marks: rules.Marks{
		At: at, Evals: []*cluster.Evaluation{p.Eval(a.Job)}, Marks: []rules.Mark{clustertest.Mark(n, a, class)},
	}}
}

// refusal applies an entry, and returns why its item was refused, or empty if it was accepted.
func (p *pausable) refusal(m shims.Message) string {
	p.Helper()
	var refused []rules.Refusal
	switch r := p.Must(m).(type) {
	case shims.MarksApplied:
		refused = r.Refused
	case shims.CompletionsApplied:
		refused = r.Refused
	}
	if len(refused) == 0 {
		return ""
	}
	return refused[0].Why
}

// Entries that were planned before a pause are refused while it lasts. After the resume those that depend on the strategy
// are refused too, because its revision has moved. A paced mark depends on the budget alone.
func TestPauseDrains_entriesInFlight(t *testing.T) {
	t.Parallel()
	const changed = "the drain was changed since"
	late := noon.Add(5 * time.Hour)
	for name, c := range map[string]struct {
		runs     func(p *pausable)
		deadline time.Duration
		class    cluster.MarkClass
		alloc    cluster.AllocID
		at       time.Time
		resumed  string
	}{
		"a deadline mark": {func(p *pausable) { p.run(webJob(2), "a0", "a1") }, time.Hour, cluster.MarkDeadline, "a0", late, changed},
		"a stage mark":    {func(p *pausable) { p.run(clustertest.Job("log", cluster.JobSystem, 1), "s0") }, 0, cluster.MarkStage, "s0", noon, changed},
		"a paced mark":    {func(p *pausable) { p.run(webJob(2), "a0", "a1") }, 0, cluster.MarkPaced, "a0", noon, ""},
		"a completion":    {func(*pausable) {}, 0, cluster.MarkNone, "", noon, changed},
	} {
		for of, node := range map[string]cluster.NodeID{"one": "n1", "all": ""} {
			t.Run(name+" and a pause of "+of, func(t *testing.T) {
				t.Parallel()
				p := newPausable(t)
				c.runs(p)
				p.Drain("n1", &cluster.DrainSpec{Deadline: c.deadline})
				inFlight := p.planned(c.class, c.alloc, c.at)
				p.now = noon.Add(10 * time.Minute)
				p.pause(node, true)
				must.NotEq(t, "", p.refusal(inFlight))
				must.NotEq(t, "", p.refusal(p.planned(c.class, c.alloc, c.at)), must.Sprint("planned in the pause"))
				p.now = noon.Add(20 * time.Minute)
				p.pause(node, false)
				must.Eq(t, c.resumed, p.refusal(inFlight))
				if c.resumed != "" {
					must.Eq(t, "", p.refusal(p.planned(c.class, c.alloc, c.at)), must.Sprint("planned after the resume"))
				}
			})
		}
	}
}

// Under a pause an allocation whose job is gone is marked all the same, and a forced drain is not paused.
func TestPauseDrains_marksInAPause(t *testing.T) {
	t.Parallel()
	p := newPausable(t)
	p.run(webJob(2), "a0", "a1")
	p.Drain("n1", &cluster.DrainSpec{})
	p.pause("", true)
	p.pause("n1", true)
	must.NotEq(t, "", p.refusal(p.planned(cluster.MarkGone, "a0", noon)))
	other := webJob(2)
	other.TaskGroups[0].Name = "other"
	p.Must(&shims.JobRegister{Job: other})
	must.Eq(t, "", p.refusal(p.planned(cluster.MarkGone, "a0", noon)))
	p.Drain("n1", &cluster.DrainSpec{Deadline: -1})
	must.Eq(t, "", p.refusal(p.planned(cluster.MarkForced, "a1", noon)))
}

// A server of an older cluster version would stop at the entry, so no server proposes it before all servers
// understand it.
func TestPauseDrains_needsItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, fsm := new(fakeRaft), shims.NewFSM(shims.FSMConfig{})
		p, err := shims.NewProposer(r, fsm, shims.Options{})
		must.NoError(t, err)
		defer p.Close()
		pause := &shims.PauseDrains{DrainPauseUpdate: cluster.DrainPauseUpdate{Pause: true, At: noon}}
		must.Eq(t, []byte{byte(shims.PauseDrainsType), byte(cluster.VersionOfPauses)}, encode(t, pause)[:2])
		_, err = fsm.ApplyEntry(1, encode(t, &shims.RaiseClusterVersion{Version: cluster.VersionOfPauses - 1}))
		must.NoError(t, err)
		var answer shims.Answer
		must.True(t, p.Propose(pause, func(a shims.Answer) { answer = a }))
		synctest.Wait()
		must.Eq(t, raftwrite.Rejected, answer.Outcome)
		must.ErrorIs(t, answer.Err, cluster.ErrVersion)
		must.ErrorContains(t, answer.Err, "PauseDrains needs version 9, and the cluster has version 8: upgrade every server")
		must.SliceEmpty(t, r.proposed)
	})
}
