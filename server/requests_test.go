package server_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// The state shows the result of each request: the entry's index and its evaluations.
func TestServer_requests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 1})
		register(t, g, 1, 1)
		s := g.Leader()
		ctx := t.Context()
		logs := cluster.JobKey{Namespace: cluster.DefaultNamespace, ID: "logs"}
		// stateAfter returns the state after a request that made so many evaluations.
		stateAfter := func(what string, evals int, w cluster.Written, err error) *statestore.Snapshot {
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
		registerLogs := func() (cluster.Written, error) {
			return s.Requests().RegisterJob(ctx, clustertest.Job(logs.ID, cluster.JobSystem, 1), cluster.JobRegistration{})
		}
		w, err := registerLogs()
		registered := stateAfter("a job is registered", 1, w, err).Job(logs)
		must.NotNil(t, registered)
		must.Zero(t, w.Unchanged)
		w, err = registerLogs()
		must.Eq(t, registered, stateAfter("the same job is registered", 1, w, err).Job(logs), must.Sprint("it has no new version"))
		must.Eq(t, registered.JobModifyIndex, w.Unchanged)
		w, err = s.Requests().RegisterJob(ctx, registered, cluster.JobRegistration{At: &registered.JobModifyIndex})
		must.Eq(t, registered, stateAfter("the same job is registered with its index", 1, w, err).Job(logs))

		w, err = s.Requests().UpdateEligibility(ctx, "n1", cluster.NodeIneligible)
		must.False(t, stateAfter("a node becomes ineligible", 0, w, err).Node("n1").Ready())
		before := s.Store().Snapshot().Index()
		ours := slices.Collect(s.Store().Snapshot().AllocsByNode("n1"))[0].ID
		for _, reports := range [][]cluster.AllocReport{
			nil,
			{{Alloc: "none", Node: "n1", ClientStatus: cluster.ClientRunning}},
			{{Alloc: ours, Node: "n2", ClientStatus: cluster.ClientFailed}},
		} {
			w = result.Of(s.Requests().ReportAllocs(ctx, reports)).OK(t)
			must.Eq(t, cluster.Written{}, w) // no report is of the node's own allocations
		}
		w = result.Of(s.Requests().UpdateEligibility(ctx, "n1", cluster.NodeIneligible)).OK(t)
		must.Eq(t, cluster.Written{}, w)
		must.Eq(t, before, s.Store().Snapshot().Index()) // it was so already
		w, err = s.Requests().UpdateEligibility(ctx, "n1", cluster.NodeEligible)
		must.True(t, stateAfter("it becomes eligible", 2, w, err).Node("n1").Ready())

		w, err = s.Requests().ReportAllocs(ctx, []cluster.AllocReport{
			{Alloc: "none", Node: "n1", ClientStatus: cluster.ClientRunning}, {Alloc: ours, Node: "n1", ClientStatus: cluster.ClientRunning},
		})
		must.Eq(t, cluster.ClientRunning, stateAfter("the rest of a report", 0, w, err).Alloc(ours).ClientStatus)
		w, err = s.Requests().EvaluateNode(ctx, "n1")
		stateAfter("a node is evaluated", 2, w, err)
		w, err = s.Requests().EvaluateJob(ctx, logs)
		stateAfter("a job is evaluated", 1, w, err)
		_, err = s.Requests().StopAlloc(ctx, ours)
		must.ErrorIs(t, err, cluster.ErrVersion)
		result.Of(s.Requests().RaiseVersion(ctx, cluster.VersionOfStops)).OK(t)
		_, err = s.Requests().RegisterJob(ctx, registered, cluster.JobRegistration{At: new(uint64(0))})
		must.ErrorIs(t, err, cluster.ErrModifyIndex, must.Sprint("the same job, registered as a new one"))
		w, err = s.Requests().StopAlloc(ctx, ours)
		must.True(t, stateAfter("an allocation is stopped", 1, w, err).Alloc(ours).Marked())
		stopped := s.Store().Snapshot().Alloc(ours)
		must.EqOp(t, cluster.DesiredStop, stopped.DesiredStatus)
		must.NotEqOp(t, "", stopped.NextAllocation, must.Sprint("the scheduler has placed its replacement"))
		_, err = s.Requests().StopAlloc(ctx, "none")
		must.ErrorIs(t, err, statestore.ErrAllocNotFound)
		w, err = s.Requests().StopJob(ctx, logs, cluster.JobStop{})
		must.True(t, stateAfter("a job is stopped", 1, w, err).Job(logs).Stop)
		for _, key := range []cluster.JobKey{logs, webKey} {
			w, err = s.Requests().StopJob(ctx, key, cluster.JobStop{Purge: true})
			must.Nil(t, stateAfter("a job is purged", 0, w, err).Job(key))
		}
		w = result.Of(s.Requests().EvaluateNode(ctx, "n1")).OK(t)
		must.Eq(t, cluster.Written{}, w) // no job to evaluate

		w, err = registerLogs()
		must.NotNil(t, stateAfter("the job is back", 1, w, err).Job(logs))
		result.Of(s.Requests().RaiseVersion(ctx, cluster.VersionOfConfirmation)).OK(t)
		w, err = s.Requests().StopJob(ctx, logs, cluster.JobStop{Purge: true})
		state := stateAfter("a job is purged that runs", 1, w, err)
		must.Nil(t, state.Job(logs))
		for a := range state.AllocsByJob(logs) {
			must.Eq(t, cluster.DescPurged, a.DesiredDescription)
			must.False(t, a.StoppedAt.IsZero())
		}
		must.NotNil(t, stateAfter("it is registered again", 1, result.Of(registerLogs()).OK(t), nil).Job(logs))
		all := cluster.DrainPauseUpdate{Pause: true, By: "ops"}
		_, err = s.Requests().PauseDrains(ctx, all)
		must.ErrorIs(t, err, cluster.ErrVersion)
		must.ErrorIs(t, err, httpapi.ErrUnavailable)
		_, err = s.Requests().UpdateDrain(ctx, cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{MaxSurge: 1}})
		must.ErrorIs(t, err, cluster.ErrVersion)
		must.ErrorIs(t, err, httpapi.ErrUnavailable)
		result.Of(s.Requests().RaiseVersion(ctx, cluster.VersionOfPauses)).OK(t)
		paused, err := s.Requests().PauseDrains(ctx, all)
		must.Eq(t, "ops", stateAfter("all drains are paused", 0, paused.Written, err).DrainView().DrainPause().By)
		must.True(t, paused.Changed)
		_, err = s.Requests().PauseDrains(ctx, cluster.DrainPauseUpdate{Node: "n1", Pause: true})
		must.ErrorIs(t, err, statestore.ErrNotDraining)
		written, err := s.Requests().UpdateDrain(ctx, cluster.DrainUpdate{Node: "n1", Spec: &cluster.DrainSpec{Deadline: -1, IgnoreSystemJobs: true}, Key: "once"})
		stateAfter("a drain begins", 0, written.Written, err)
		w, err = s.Requests().PurgeNode(ctx, "n1")
		must.Nil(t, stateAfter("a node is deleted", 1, w, err).Node("n1"))
	})
}
