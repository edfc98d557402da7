package server_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// What requests say of themselves is in the state: the entry's index, and its
// evaluations.
func TestServer_requests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 1, 1)
		s := g.Leader()
		ctx := t.Context()
		logs := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "logs"}
		// says returns the state after a request that made so many evaluations.
		says := func(what string, evals int, w server.Written, err error) *statestore.Snapshot {
			t.Helper()
			must.NoError(t, err, must.Sprint(what))
			must.SliceLen(t, evals, w.Evals, must.Sprint(what))
			state := s.Store().Snapshot()
			must.LessEq(t, state.Index(), w.Index, must.Sprint(what))
			for _, id := range w.Evals {
				must.Eq(t, w.Index, state.Eval(id).CreateIndex, must.Sprint(what))
			}
			synctest.Wait() // for the scheduler
			return state
		}
		registerLogs := func() (server.Written, error) {
			return s.RegisterJob(ctx, &cluster.Job{ID: logs.ID, Type: cluster.JobSystem, TaskGroups: []*cluster.TaskGroup{{
				Name: "g", Tasks: []*cluster.Task{{Name: "t"}},
			}}})
		}
		w, err := registerLogs()
		must.NotNil(t, says("a job is registered", 1, w, err).Job(logs))

		w, err = s.UpdateEligibility(ctx, "n1", cluster.NodeIneligible)
		must.False(t, says("a node becomes ineligible", 0, w, err).Node("n1").Ready())
		before := s.Store().Snapshot().Index()
		ours := slices.Collect(s.Store().Snapshot().AllocsByNode("n1"))[0].ID
		for _, reports := range [][]cluster.AllocReport{
			nil,
			{{Alloc: "none", Node: "n1", ClientStatus: cluster.ClientRunning}},
			{{Alloc: ours, Node: "n2", ClientStatus: cluster.ClientFailed}},
		} {
			w, err = s.ReportAllocs(ctx, reports)
			must.NoError(t, err)
			must.Eq(t, server.Written{}, w) // nothing of its own is said
		}
		w, err = s.UpdateEligibility(ctx, "n1", cluster.NodeIneligible)
		must.NoError(t, err)
		must.Eq(t, server.Written{}, w)
		must.Eq(t, before, s.Store().Snapshot().Index()) // it was so already
		w, err = s.UpdateEligibility(ctx, "n1", cluster.NodeEligible)
		must.True(t, says("it becomes eligible", 2, w, err).Node("n1").Ready())

		w, err = s.ReportAllocs(ctx, []cluster.AllocReport{
			{Alloc: "none", Node: "n1", ClientStatus: cluster.ClientRunning}, {Alloc: ours, Node: "n1", ClientStatus: cluster.ClientRunning},
		})
		must.Eq(t, cluster.ClientRunning, says("the rest of a report", 0, w, err).Alloc(ours).ClientStatus)
		w, err = s.EvaluateNode(ctx, "n1")
		says("a node is evaluated", 2, w, err)
		w, err = s.EvaluateJob(ctx, logs)
		says("a job is evaluated", 1, w, err)
		w, err = s.StopJob(ctx, logs, false)
		must.True(t, says("a job is stopped", 1, w, err).Job(logs).Stop)
		for _, key := range []cluster.JobKey{logs, webKey} {
			w, err = s.StopJob(ctx, key, true)
			must.Nil(t, says("a job is purged", 0, w, err).Job(key))
		}
		w, err = s.EvaluateNode(ctx, "n1")
		must.NoError(t, err)
		must.Eq(t, server.Written{}, w) // nobody is to be looked at

		w, err = registerLogs()
		must.NotNil(t, says("the job is back", 1, w, err).Job(logs))
		written, err := s.UpdateDrain(ctx, statestore.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{Deadline: -1, IgnoreSystemJobs: true}, Key: "once"})
		says("a drain begins", 0, written.Written, err)
		w, err = s.DeregisterNode(ctx, "n1")
		must.Nil(t, says("a node is deleted", 1, w, err).Node("n1"))
	})
}
