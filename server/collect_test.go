package server_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/scheduler/collect"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// A service has moved and is then stopped. The leader deletes what has ended a minute after that,
// and the job after four. Until every server understands the entry it deletes nothing.
func TestServer_collectsEndedWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3, Server: server.Config{
			Collect: collect.Options{Interval: time.Second, AllocAge: time.Minute, EvalAge: time.Minute, JobAge: 4 * time.Minute},
		}})
		register(t, g, 2, 2)
		runs(t, g, 2)
		drained(t, g, &cluster.DrainSpec{Deadline: -1})
		records := slices.Collect(g.Leader().Store().Snapshot().Drains())
		ended := func() (allocs, evals int) {
			state := g.Leader().Store().Snapshot()
			for a := range state.Allocs() {
				if a.ClientTerminal() {
					allocs++
				}
			}
			for range state.Evals() {
				evals++
			}
			return allocs, evals
		}
		moved, _ := ended()
		must.Positive(t, moved)

		time.Sleep(2 * time.Minute)
		left, _ := ended()
		must.Eq(t, moved, left, must.Sprint("the cluster has version 1"))
		do(t, g, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().Collect(ctx)
			must.ErrorIs(t, err, cluster.ErrVersion)
			return nil
		})
		write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
		time.Sleep(2 * time.Second)
		left, _ = ended()
		must.Zero(t, left)
		must.Eq(t, records, slices.Collect(g.Leader().Store().Snapshot().Drains()))
		must.NotNil(t, g.Leader().HeldRows())

		stopJob(t, g, webKey, false)
		runs(t, g, 0)
		time.Sleep(3*time.Minute + 50*time.Second)
		left, _ = ended()
		must.Zero(t, left)
		must.NotNil(t, g.Leader().Store().Snapshot().Job(webKey))
		time.Sleep(20 * time.Second)
		must.Nil(t, g.Leader().Store().Snapshot().Job(webKey))
		_, evals := ended()
		must.Zero(t, evals)
	})
}

// drained drains n1, and returns when the drain has ended.
func drained(t *testing.T, g *server.Group, spec *cluster.DrainSpec) {
	t.Helper()
	drain(t, g, "n1", spec)
	for g.Leader().Store().Snapshot().Node("n1").Draining() {
		time.Sleep(time.Second)
		runs(t, g, 2)
	}
}

// An operator does not wait for the age.
func TestServer_Collect(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := server.Config{Collect: collect.Options{Interval: 1000 * time.Hour}}
		g := newGroup(t, server.GroupConfig{Servers: 1, Server: c})
		register(t, g, 2, 2)
		runs(t, g, 2)
		write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
		drained(t, g, &cluster.DrainSpec{})
		time.Sleep(time.Second)
		do(t, g, func(ctx context.Context, s *server.Server) error {
			deleted := result.Of(s.Requests().Collect(ctx)).OK(t)
			must.Eq(t, 1, deleted.Allocs)
			again := result.Of(s.Requests().Collect(ctx)).OK(t)
			must.Zero(t, again.Total())
			return nil
		})
		_, err := server.NewGroup(server.GroupConfig{Servers: 1, Server: server.Config{Collect: collect.Options{JobAge: -1}}})
		must.ErrorContains(t, err, "Config.Collect: collect: Options.JobAge is -1ns")
	})
}
