package telemetry_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server"
	"github.com/seed-f9cf0b39/nodedrain/server/telemetry"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// clients reports the progress of all allocations.
func clients(ctx context.Context, s *server.Server) error {
	reports := clustertest.Progress(s.Store().Snapshot().AllocsByJob(webKey), time.Now())
	if len(reports) == 0 {
		return nil
	}
	_, err := s.Requests().ReportAllocs(ctx, reports)
	return err
}

// A server counts the drains of two nodes and finds no broken guarantee.
func TestTelemetry_withAServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		watch := result.Of(telemetry.New(telemetry.Options{})).OK(t)
		l := &log{Replica: clustertest.NewReplica(t, shims.FSMConfig{}), Telemetry: watch}
		config := server.Config{OnApply: watch.OnApply, OnAnswer: watch.Answered}
		config.Drainer.OnStep = watch.Stepped
		g := result.Of(server.NewGroup(server.GroupConfig{Servers: 1, Server: config})).OK(t)
		s := g.Servers()[0]
		watch.Watch(telemetry.Sources{Drains: s.Drainer().Status, Raft: s.Raft()})

		do := func(request func(context.Context, *server.Server) error) {
			t.Helper()
			must.NoError(t, g.Do(t.Context(), request))
		}
		for i := range 4 {
			do(func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().RegisterNode(ctx, clustertest.Node(cluster.NodeID(fmt.Sprintf("n%d", i+1))))
				return err
			})
		}
		do(func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterJob(ctx, webJob(8), nil)
			return err
		})
		running := func() (n int) {
			for a := range s.Store().Snapshot().AllocsByJob(webKey) {
				if a.ClientStatus == cluster.ClientRunning && !a.ServerTerminal() {
					n++
				}
			}
			return n
		}
		until := func(what string, holds func() bool) {
			t.Helper()
			for began := time.Now(); !holds(); time.Sleep(100 * time.Millisecond) {
				must.Less(t, time.Hour, time.Since(began), must.Sprint(what))
				do(clients)
			}
		}
		until("all run", func() bool { return running() == 8 })
		for _, id := range []cluster.NodeID{"n1", "n2"} {
			do(func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().UpdateDrain(ctx, cluster.DrainUpdate{Node: id, Spec: &cluster.DrainSpec{}, Key: string(id)})
				return err
			})
		}
		synctest.Wait()
		must.Eq(t, "2", l.value(`nodedrain_drains{state="draining"}`))
		moving := l.value(`nodedrain_allocs_left{stage="consumers"}`)
		must.NotEq(t, "0", moving)

		until("both have drained", func() bool { return l.value(`nodedrain_drains_ended_total{outcome="complete"}`) == "2" })
		must.Eq(t, "0", l.value(`nodedrain_drains{state="draining"}`))
		must.Eq(t, moving, l.value(`nodedrain_drain_marks_total{class="paced"}`))
		must.Eq(t, "2", l.value("nodedrain_drain_first_mark_seconds_count"))
		must.NotEq(t, "0", l.value("nodedrain_drainer_step_seconds_count"))
		must.Eq(t, "1", l.value("nodedrain_raft_leads"))
		must.Eq(t, strconv.FormatUint(s.Store().Snapshot().Index(), 10), l.value("nodedrain_witness_index"))
		marks := result.Of(strconv.Atoi(l.value(`nodedrain_raft_writes_total{outcome="applied",type="AllocUpdateDesiredTransition"}`))).OK(t)
		must.Positive(t, marks)
		for _, guarantee := range []string{"G1", "G2", "G3", "G5", "G6", "audit"} {
			must.Eq(t, "0", l.value(`nodedrain_invariant_violations_total{guarantee="`+guarantee+`"}`))
		}
		must.NoError(t, g.Shutdown())
		watch.Close()
	})
}
