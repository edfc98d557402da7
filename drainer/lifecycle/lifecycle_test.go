//race:skip one goroutine
package lifecycle_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/lifecycle"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rowview"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// noon is not in UTC. Rows hold UTC.
var noon = time.Date(2030, 1, 1, 14, 0, 0, 500, time.FixedZone("", 2*3600))

func node() *cluster.Node {
	return &cluster.Node{ID: "n1", Name: "one", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible, CreateIndex: 3, ModifyIndex: 3}
}

func alloc(id cluster.AllocID, typ cluster.JobType) *cluster.Allocation {
	job := &cluster.Job{Namespace: "default", ID: "web", Type: typ, TaskGroups: []*cluster.TaskGroup{{Name: "g", Tasks: []*cluster.Task{{Name: "t"}}}}}
	return &cluster.Allocation{
		ID: id, Namespace: "default", JobID: "web", Job: job, TaskGroup: "g", NodeID: "n1",
		DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
	}
}

func TestStartDrain(t *testing.T) {
	t.Parallel()
	before := node()
	after, err := lifecycle.StartDrain(before, cluster.DrainUpdate{
		Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: noon, Key: "k", Meta: map[string]string{"why": "disk"}, UpdatedBy: "ann",
	}, 7)
	must.NoError(t, err)
	must.Eq(t, node(), before)
	at := noon.UTC()
	must.Eq(t, &cluster.Node{
		ID: "n1", Name: "one", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeIneligible, CreateIndex: 3, ModifyIndex: 7,
		StatusUpdatedAt: at.Unix(),
		Drain: &cluster.Drain{
			ID: "d1", NodeID: "n1", NodeName: "one", Revision: 7, UpdatedAt: at, CreateIndex: 7,
			Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: time.Hour}, ForceDeadline: at.Add(time.Hour), StartedAt: at},
			Keys:     []string{"k"}, Meta: map[string]string{"why": "disk"}, UpdatedBy: "ann",
		},
		LastDrain: &cluster.DrainMetadata{
			StartedAt: at.Truncate(time.Second), UpdatedAt: at.Truncate(time.Second), Status: cluster.DrainStatusDraining,
			AccessorID: "ann", Meta: map[string]string{"why": "disk"},
		},
		Events: []cluster.NodeEvent{{Message: cluster.EventDrainSet, Subsystem: cluster.SubsystemDrain, Timestamp: at, CreateIndex: 7}},
	}, after)
}

// started is the node after the start of a drain.
func started(t *testing.T, u cluster.DrainUpdate, index uint64) *cluster.Node {
	t.Helper()
	n, err := lifecycle.StartDrain(node(), u, index)
	must.NoError(t, err)
	return n
}

// A drain without an id was started: nothing could end or cancel it by its id.
func TestStartDrain_refused(t *testing.T) {
	t.Parallel()
	good := cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}
	drains := started(t, good, 7)
	for want, edit := range map[string]func(n **cluster.Node, u *cluster.DrainUpdate){
		"starting a drain without an id":                 func(_ **cluster.Node, u *cluster.DrainUpdate) { u.Drain = "" },
		"starting a drain without a strategy":            func(_ **cluster.Node, u *cluster.DrainUpdate) { u.Spec = nil },
		"starting a drain of a node that does not exist": func(n **cluster.Node, _ *cluster.DrainUpdate) { *n = nil },
		"starting a drain: node n1 already drains":       func(n **cluster.Node, _ *cluster.DrainUpdate) { *n = drains },
	} {
		n, u := node(), good
		edit(&n, &u)
		after, err := lifecycle.StartDrain(n, u, 9)
		must.EqError(t, err, want)
		must.Nil(t, after)
	}
}

func TestUpdateDrain(t *testing.T) {
	t.Parallel()
	before := started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{Deadline: time.Hour}, At: noon, Key: "k", UpdatedBy: "ann"}, 7)
	before.Drain.Marked[cluster.MarkPaced] = 2
	later := noon.Add(time.Minute)
	d := lifecycle.UpdateDrain(before, cluster.DrainUpdate{Spec: &cluster.DrainSpec{Deadline: -1}, At: later, Key: "l"}, 9).Drain
	must.Eq(t, &cluster.Drain{
		ID: "d1", NodeID: "n1", NodeName: "one", Revision: 9, UpdatedAt: later.UTC(), CreateIndex: 7,
		Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: -1}, StartedAt: noon.UTC()},
		Keys:     []string{"k", "l"}, UpdatedBy: "ann", Marked: before.Drain.Marked,
	}, d)
	must.Eq(t, cluster.Revision(7), before.Drain.Revision)
}

// A mark sets every field of the transition that a drain owns, and no other.
func TestApplyMark(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ   cluster.JobType
		class cluster.MarkClass
		final bool
	}{
		{cluster.JobService, cluster.MarkPaced, false},
		{cluster.JobService, cluster.MarkDeadline, false},
		{cluster.JobBatch, cluster.MarkGone, false},
		{cluster.JobBatch, cluster.MarkDeadline, true},
		{cluster.JobBatch, cluster.MarkForced, true},
		{cluster.JobSysBatch, cluster.MarkForced, false},
	} {
		n := started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}, 7)
		a := alloc("a1", c.typ)
		a.DesiredTransition.NoShutdownDelay = true
		lifecycle.ApplyMark(n, a, rules.Mark{Alloc: "a1", Node: "n1", Drain: "d1", Class: c.class}, noon, 9)
		must.Eq(t, cluster.DesiredTransition{
			Migrate: true, MigrateDisablePlacement: c.final, NoShutdownDelay: true, Drain: "d1", Class: c.class, MarkedAt: noon.UTC(),
		}, a.DesiredTransition, must.Sprint(c.typ, c.class))
		must.Eq(t, 1, n.Drain.Marked[c.class])
		must.Eq(t, [3]uint64{9, 9, 9}, [3]uint64{n.ModifyIndex, a.ModifyIndex, a.AllocModifyIndex})
		must.Eq(t, noon.UTC(), a.ModifyTime)

		marked := *a
		lifecycle.ApplyMark(n, a, rules.Mark{Alloc: "a1", Node: "n1", Drain: "d1", Class: c.class}, noon, 10)
		must.Eq(t, marked, *a, must.Sprint("a second mark changes nothing"))
		must.Eq(t, 1, n.Drain.Marked[c.class])
	}
}

func TestCanMark(t *testing.T) {
	t.Parallel()
	n := started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}, 7)
	good := rules.Mark{Alloc: "a1", Node: "n1", Drain: "d1", Class: cluster.MarkPaced}
	must.True(t, lifecycle.CanMark(n, alloc("a1", cluster.JobService), good))
	for name, broken := range map[string]func(n **cluster.Node, a **cluster.Allocation, m *rules.Mark){
		"no node":          func(n **cluster.Node, _ **cluster.Allocation, _ *rules.Mark) { *n = nil },
		"no drain":         func(n **cluster.Node, _ **cluster.Allocation, _ *rules.Mark) { (*n).Drain = nil },
		"another drain":    func(_ **cluster.Node, _ **cluster.Allocation, m *rules.Mark) { m.Drain = "d2" },
		"no class":         func(_ **cluster.Node, _ **cluster.Allocation, m *rules.Mark) { m.Class = cluster.MarkNone },
		"an unknown class": func(_ **cluster.Node, _ **cluster.Allocation, m *rules.Mark) { m.Class = cluster.MarkClassCount },
		"no allocation":    func(_ **cluster.Node, a **cluster.Allocation, _ *rules.Mark) { *a = nil },
		"another node":     func(_ **cluster.Node, a **cluster.Allocation, _ *rules.Mark) { (*a).NodeID = "n2" },
		"stopping": func(_ **cluster.Node, a **cluster.Allocation, _ *rules.Mark) {
			(*a).DesiredStatus = cluster.DesiredStop
		},
		"stopped": func(_ **cluster.Node, a **cluster.Allocation, _ *rules.Mark) {
			(*a).ClientStatus = cluster.ClientFailed
		},
		"marked by another writer": func(_ **cluster.Node, a **cluster.Allocation, _ *rules.Mark) { (*a).DesiredTransition.Migrate = true },
	} {
		n, a, m := n.Copy(), alloc("a1", cluster.JobService), good
		broken(&n, &a, &m)
		must.False(t, lifecycle.CanMark(n, a, m), must.Sprint(name))
	}
}

func TestCancelDrain(t *testing.T) {
	t.Parallel()
	n := started(t, cluster.DrainUpdate{Drain: "d1", At: noon, Spec: &cluster.DrainSpec{Deadline: -1}}, 7)
	runs, stops, ended, others := alloc("a1", cluster.JobBatch), alloc("a2", cluster.JobBatch), alloc("a3", cluster.JobBatch), alloc("a4", cluster.JobBatch)
	for _, a := range []*cluster.Allocation{runs, stops, ended} {
		lifecycle.ApplyMark(n, a, rules.Mark{Alloc: a.ID, Drain: "d1", Class: cluster.MarkForced}, noon, 8)
	}
	stops.DesiredStatus, ended.ClientStatus, others.DesiredTransition.Migrate = cluster.DesiredStop, cluster.ClientComplete, true
	v := rowview.New(8, []*cluster.Node{n}, nil, []*cluster.Allocation{runs, stops, ended, others}, nil)

	later := noon.Add(time.Minute)
	c := lifecycle.CancelDrain(v, n, cluster.DrainUpdate{At: later, MarkEligible: true, Key: "k", UpdatedBy: "bob"}, 9)
	must.Nil(t, c.Node.Drain)
	must.Eq(t, cluster.NodeEligible, c.Node.SchedulingEligibility)
	must.Eq(t, cluster.DrainStatusCanceled, c.Node.LastDrain.Status)
	must.Eq(t, cluster.EventDrainDisabled, c.Node.Events[1].Message)
	must.SliceLen(t, 1, c.Withdrawn)
	must.Eq(t, cluster.AllocID("a1"), c.Withdrawn[0].ID)
	must.Eq(t, cluster.DesiredTransition{}, c.Withdrawn[0].DesiredTransition)
	must.Eq(t, uint64(9), c.Withdrawn[0].AllocModifyIndex)
	must.True(t, runs.Marked(), must.Sprint("the row of the state does not change"))
	must.Eq(t, []cluster.AllocID{"a2"}, c.Stopping)
	must.Eq(t, cluster.OutcomeCancelled, c.Record.Outcome)
	must.Eq(t, 1, c.Record.StillStopping)
	must.Eq(t, uint64(9), c.Record.EndIndex)
	must.Eq(t, []string{"k"}, c.Record.Keys)
	must.Eq(t, n.Drain.UpdatedAt, c.Record.UpdatedAt, must.Sprint("a cancel changes neither Revision nor its time"))

	again := lifecycle.CancelDrain(v, c.Node, cluster.DrainUpdate{At: later}, 10)
	must.Nil(t, again.Record)
	must.SliceEmpty(t, again.Withdrawn)
	must.SliceLen(t, 2, again.Node.Events)
}

func TestEndDrain(t *testing.T) {
	t.Parallel()
	n := started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}, 7)
	n.LastDrain = nil // the node was upgraded in the middle of the drain
	ending := rules.Ending{Completion: rules.Completion{Node: "n1", Drain: "d1"}, Outcome: cluster.OutcomeDeadlineReached, StillStopping: 2}
	after, record := lifecycle.EndDrain(n, ending, noon, 9)
	must.Nil(t, after.Drain)
	must.Eq(t, cluster.NodeIneligible, after.SchedulingEligibility)
	must.Eq(t, map[string]string{cluster.EventDetailDeadlineReached: "true"}, after.Events[1].Details)
	must.Eq(t, &cluster.DrainMetadata{
		StartedAt: noon.UTC().Truncate(time.Second), UpdatedAt: noon.UTC().Truncate(time.Second), Status: cluster.DrainStatusComplete,
	}, after.LastDrain)
	must.Eq(t, cluster.OutcomeDeadlineReached, record.Outcome)
	must.Eq(t, 2, record.StillStopping)
	must.Eq(t, noon.UTC(), record.EndedAt)

	for _, other := range []*cluster.Node{nil, after} {
		after, record := lifecycle.EndDrain(other, ending, noon, 10)
		must.Nil(t, after)
		must.Nil(t, record)
	}
}

func TestNodeGoneAndPurged(t *testing.T) {
	t.Parallel()
	n := started(t, cluster.DrainUpdate{Drain: "d1", Spec: &cluster.DrainSpec{}, At: noon}, 7)
	ended := alloc("a2", cluster.JobBatch)
	ended.ClientStatus = cluster.ClientComplete
	lifecycle.CountPurged(n, alloc("a1", cluster.JobBatch), 8)
	lifecycle.CountPurged(n, ended, 8)
	must.Eq(t, 1, n.Drain.PurgedRunning)

	v := rowview.New(8, []*cluster.Node{n}, nil, []*cluster.Allocation{alloc("a1", cluster.JobBatch), ended}, nil)
	record := lifecycle.NodeGone(v, n, noon, 9)
	must.Eq(t, cluster.OutcomeNodeGone, record.Outcome)
	must.Eq(t, 1, record.StillStopping)
	must.Nil(t, lifecycle.NodeGone(v, node(), noon, 9))
}
