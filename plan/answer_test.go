package plan_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire/drainplan"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/plan"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// large is a service whose allocation needs most of a node.
func large(id cluster.JobID, count int) *cluster.Job {
	j := clustertest.Job(id, cluster.JobService, count)
	j.TaskGroups[0].Tasks[0].Resources = cluster.Resources{CPU: 3000, MemoryMB: 6000}
	return j
}

// answer is the answer to drains of the first nodes.
func (f *fixture) answer(nodes int, spec cluster.DrainSpec, s plan.Settings) *drainplan.Answer {
	f.Helper()
	q := plan.Question{Spec: spec, At: f.now.Add(time.Hour)}
	for i := range nodes {
		q.Nodes = append(q.Nodes, node(i))
	}
	return result.Of(plan.Answer(context.Background(), f.FSM.Store(), q, s, 0, nil)).OK(f.TB)
}

// A stop takes five seconds, a start two, and a verdict ten.
func TestAnswer_sentences(t *testing.T) {
	t.Parallel()
	type spec = cluster.DrainSpec
	for name, c := range map[string]struct {
		cluster func(*fixture)
		nodes   int
		spec    spec
		want    string
	}{
		"nothing runs": {func(*fixture) {}, 1, spec{}, "no allocation leaves; nothing falls below its limit"},
		"within the budget": {func(f *fixture) {
			f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
		}, 1, spec{}, "2 allocations leave in 17s; nothing falls below its limit"},
		"a single instance": {func(f *fixture) {
			f.run(clustertest.Job("db", cluster.JobService, 1), node(0))
		}, 1, spec{}, "1 allocation leaves in 5s; db is down for 12s"},
		"the deadline is too short": {func(f *fixture) {
			f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
		}, 1, spec{Deadline: 10 * time.Second}, "2 allocations leave in 15s; 1 is taken by the deadline; web falls to 1 healthy of 2 required"},
		"forced": {func(f *fixture) {
			f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
		}, 1, spec{Deadline: -1}, "2 allocations leave in 5s; 2 are taken by force; web falls to 1 healthy of 2 required"},
		"too large for the other nodes": {func(f *fixture) {
			f.run(large("huge", 1), node(0))
			f.run(large("other", 2), node(1), node(2))
		}, 1, spec{}, "1 allocation leaves in 5s; 1 allocation of huge fits nowhere; huge stays down"},
		"a job that forbids moves": {func(f *fixture) {
			j := clustertest.Job("pinned", cluster.JobService, 2)
			j.TaskGroups[0].Migrate.MaxParallel = 0
			f.run(j, node(0), node(1))
		}, 1, spec{}, "no allocation leaves, and the drain does not end: 1 allocation waits; nothing falls below its limit"},
		"batch without a deadline": {func(f *fixture) {
			f.run(clustertest.Job("calc", cluster.JobBatch, 1), node(0))
		}, 1, spec{}, "no allocation leaves, and the drain does not end: 1 allocation waits; nothing falls below its limit"},
		"batch with a deadline": {func(f *fixture) {
			f.run(clustertest.Job("calc", cluster.JobBatch, 1), node(0))
		}, 1, spec{Deadline: time.Hour}, "1 allocation leaves in 1h; 1 is taken by the deadline; nothing falls below its limit"},
		"system jobs leave last": {func(f *fixture) {
			f.run(clustertest.Job("web", cluster.JobService, 2), node(0), node(1))
			f.run(clustertest.Job("log", cluster.JobSystem, 1), node(0), node(1), node(2))
		}, 1, spec{}, "2 allocations leave in 10s; nothing falls below its limit"},
		"system jobs stay": {func(f *fixture) {
			f.run(clustertest.Job("web", cluster.JobService, 2), node(0), node(1))
			f.run(clustertest.Job("log", cluster.JobSystem, 1), node(0), node(1), node(2))
		}, 1, spec{IgnoreSystemJobs: true}, "1 allocation leaves in 5s; nothing falls below its limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 3)
			c.cluster(f)
			must.Eq(t, c.want, f.answer(c.nodes, c.spec, plan.Settings{}).Sentence)
		})
	}
}

func TestAnswer_whatWouldBeEnough(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
	a := f.answer(1, cluster.DrainSpec{Deadline: 10 * time.Second}, plan.Settings{})
	must.Eq(t, 20*time.Second, a.EnoughDeadline) // 17 s, rounded up
	must.Zero(t, f.answer(1, cluster.DrainSpec{Deadline: a.EnoughDeadline}, plan.Settings{}).Taken)

	pinned := clustertest.Job("pinned", cluster.JobService, 2)
	pinned.TaskGroups[0].Migrate.MaxParallel = 0
	f.run(pinned, node(0), node(1))
	must.Zero(t, f.answer(1, cluster.DrainSpec{Deadline: 10 * time.Second}, plan.Settings{}).EnoughDeadline)
}

// Drains that begin at once move nothing twice: all their nodes are ineligible. One after the other, the first
// drain places work on the node that follows.
func TestAnswer_movedTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	f.run(large("a", 1), node(0))
	f.run(large("b", 1), node(2))
	must.Eq(t, 1, f.answer(2, cluster.DrainSpec{}, plan.Settings{}).MovedTwice)
}

// The reasons of a drain that does not end are those of a running drain.
func TestAnswer_waits(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2)
	j := clustertest.Job("pinned", cluster.JobService, 2)
	j.TaskGroups[0].Migrate.MaxParallel = 0
	f.run(j, node(0), node(1))
	a := f.answer(1, cluster.DrainSpec{}, plan.Settings{})
	must.Len(t, 1, a.Nodes[0].Waits)
	must.Eq(t, "no paced moves", a.Nodes[0].Waits[0].Reason)
}

// A plan changes no store, and the same question has the same answer.
func TestAnswer_changesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 4)
	f.run(clustertest.Job("web", cluster.JobService, 6), node(0), node(0), node(1), node(1), node(2), node(3))
	before := dump(f)
	first := f.answer(2, cluster.DrainSpec{Deadline: time.Minute}, plan.Settings{})
	must.Eq(t, before, dump(f))
	must.Eq(t, first, f.answer(2, cluster.DrainSpec{Deadline: time.Minute}, plan.Settings{}))
}

// While all drains are paused, drains that would not move are played as if they were resumed, beside other drains that
// the pause holds. The answer states it. Forced drains move all the same.
func TestAnswer_allPaused(t *testing.T) {
	t.Parallel()
	const limit = "all drains are paused: in the plan they are resumed when it begins"
	for name, c := range map[string]struct {
		spec   cluster.DrainSpec
		paused string
	}{
		"paced":         {cluster.DrainSpec{}, "; all drains are paused now"},
		"to a deadline": {cluster.DrainSpec{Deadline: 10 * time.Second}, "; all drains are paused now"},
		"forced":        {cluster.DrainSpec{Deadline: -1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, 4)
			f.run(clustertest.Job("web", cluster.JobService, 4), node(0), node(0), node(1), node(2))
			f.Drain(node(1), &cluster.DrainSpec{})
			want := f.answer(1, c.spec, plan.Settings{})
			f.pause("", true)
			got := f.answer(1, c.spec, plan.Settings{})
			must.NotEq(t, 0, got.Took)
			must.Eq(t, c.paused != "", slices.Contains(got.Limits, limit))
			if c.paused != "" {
				must.Eq(t, want.Sentence+c.paused, got.Sentence)
				must.Eq(t, want.Nodes, got.Nodes)
			}
			must.StrNotContains(t, got.Sentence, "does not end")
		})
	}
}

// The drain of a node that an operator has paused stays paused in a plan of another strategy.
func TestAnswer_paused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	f.run(clustertest.Job("web", cluster.JobService, 3), node(0), node(0), node(1))
	f.Drain(node(0), &cluster.DrainSpec{})
	f.pause(node(0), true)
	a := f.answer(1, cluster.DrainSpec{Deadline: time.Hour}, plan.Settings{})
	must.Eq(t, "no allocation leaves, and the drain does not end: 2 allocations wait; nothing falls below its limit", a.Sentence)
	must.Eq(t, "paused", a.Nodes[0].Waits[0].Reason)
}

func dump(f *fixture) string {
	f.Helper()
	var text strings.Builder
	must.NoError(f.TB, statestore.Dump(&text, f.State()))
	return text.String()
}

func TestAnswer_refuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 1)
	at := epoch()
	for name, c := range map[string]struct {
		q    plan.Question
		want error
	}{
		"no node":      {plan.Question{At: at}, plan.ErrQuestion},
		"no time":      {plan.Question{Nodes: []cluster.NodeID{node(0)}}, plan.ErrQuestion},
		"a node twice": {plan.Question{At: at, Nodes: []cluster.NodeID{node(0), node(0)}}, plan.ErrQuestion},
		"unknown node": {plan.Question{At: at, Nodes: []cluster.NodeID{"gone"}}, statestore.ErrNodeNotFound},
	} {
		_, err := plan.Answer(t.Context(), f.FSM.Store(), c.q, plan.Settings{}, 0, nil)
		must.ErrorIs(t, err, c.want, must.Sprint(name))
	}
}

// A plan ends with the context of its caller.
func TestAnswer_callerGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 2)
	f.run(clustertest.Job("web", cluster.JobService, 2), node(0), node(1))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := plan.Answer(gone, f.FSM.Store(), plan.Question{At: epoch(), Nodes: []cluster.NodeID{node(0)}}, plan.Settings{}, 0, nil)
	must.ErrorIs(t, err, context.Canceled)
}

// With observed times there are several plays, and a range. The times are the observed ones and not the declared
// ones.
func TestAnswer_observed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	j := f.Job(clustertest.Job("web", cluster.JobService, 3))
	for i := range 20 {
		f.learn(j, node(2), time.Duration(20+i)*time.Second, 15*time.Second, time.Second)
	}
	f.run(j, node(0), node(0), node(1))
	a := f.answer(1, cluster.DrainSpec{}, plan.Settings{})
	must.True(t, a.Observed)
	must.Eq(t, plan.DefaultPlays, a.Plays)
	must.Between(t, 35*time.Second, a.Took, 65*time.Second) // one start, one verdict, two stops
	must.Less(t, a.Took, a.Least)
	must.Greater(t, a.Took, a.Most)
	must.StrContains(t, a.Sentence, " (longest ")

	first := 0
	few := result.Of(plan.Answer(t.Context(), f.FSM.Store(), plan.Question{Nodes: []cluster.NodeID{node(0)}, At: f.now}, plan.Settings{}, 39, func(done int) bool {
		first = done
		return done < 3
	})).OK(t)
	must.Eq(t, 3, first)
	must.Eq(t, 3, few.Plays)
	must.Zero(t, few.Most) // three plays show no range
}

// Most allocations are healthy after the least time that their job allows, and some end only when they are killed. A
// bucket of observed times around these limits is wide: the plan takes the limits, and not the middle of the bucket.
func TestAnswer_limitsOfTimes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 3)
	j := clustertest.Job("web", cluster.JobService, 3)
	j.TaskGroups[0].Tasks[0].KillTimeout = 20 * time.Second
	j.TaskGroups[0].Migrate.MinHealthyTime = 30 * time.Second
	j = f.Job(j)
	for range 20 {
		f.learn(j, node(2), time.Second, 30*time.Second, 20*time.Second)
	}
	f.run(j, node(0), node(0), node(1))
	a := f.answer(1, cluster.DrainSpec{}, plan.Settings{})
	must.Between(t, 51*time.Second, a.Took, 57*time.Second) // a start and a verdict, and the second stop: 51 s
}

// Bug: where no stop was observed, a plan expected that volumes are unmounted at once. The node declares how long that
// may take. An observed stop contains the time of the unmount.
func TestAnswer_declaredUnmount(t *testing.T) {
	t.Parallel()
	for observed, took := range map[bool]time.Duration{false: 45 * time.Second, true: 8 * time.Second} {
		f := newFixture(t, 0)
		for i := range 2 {
			n := clustertest.Node(node(i))
			n.VolumeAllowance = 40 * time.Second
			n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginMonolith, Healthy: true, NodeID: string(n.ID)}}
			f.Must(&shims.NodeRegister{At: f.now, Node: n})
		}
		mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
		f.Must(&shims.VolumeRegister{At: f.now, Volume: &cluster.Volume{
			ID: "data", ExternalID: "v", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode},
		}})
		j := f.Job(clustertest.Job("db", cluster.JobService, 1))
		if observed { // before the job has the volume, which only one allocation can have
			f.learn(j, node(1), time.Second, 10*time.Second, 8*time.Second)
		}
		j = clustertest.Job("db", cluster.JobService, 1)
		j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
		f.run(j, node(0))
		must.Between(t, took-time.Second, f.answer(1, cluster.DrainSpec{}, plan.Settings{}).Took, took+2*time.Second)
	}
}
