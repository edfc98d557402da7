package server_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// A cluster with an older server loses nothing of a job with a driver: it refuses the job, the
// node's drivers, the states of tasks and an enforced index. After the last server is upgraded it
// takes them, on every server.
func TestServer_driversNeedEveryServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3})
		register(t, g, 1, 1) // without drivers
		runs(t, g, 1)
		node := testNode("real")
		node.ReportsDrivers, node.Drivers = true, map[string]*cluster.DriverInfo{"raw_exec": {Detected: true}}
		job := clustertest.Job("real", cluster.JobService, 1)
		job.TaskGroups[0].Tasks[0].Driver = "raw_exec"
		job.TaskGroups[0].NodeClasses = []string{"metal"}
		node.NodeClass = "metal"
		registerNode := func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterNode(ctx, node)
			return err
		}
		requests := []func(context.Context, *server.Server) error{
			registerNode,
			func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().RegisterJob(ctx, job, cluster.JobRegistration{At: new(uint64(0))})
				return err
			},
		}
		for _, request := range requests {
			do(t, g, func(ctx context.Context, s *server.Server) error {
				err := request(ctx, s)
				must.ErrorIs(t, err, cluster.ErrVersion)
				must.ErrorContains(t, err, "needs version 4, and the cluster has version 1: upgrade every server of the cluster")
				return nil
			})
		}
		must.Nil(t, g.Leader().Store().Snapshot().Node("real"))

		for v := cluster.Version(2); v <= cluster.MaxVersion; v++ {
			write(t, g, server.Requests.RaiseVersion, v)
		}
		for _, request := range requests {
			do(t, g, request)
		}
		do(t, g, func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterJob(ctx, job, cluster.JobRegistration{At: new(uint64(0))})
			must.ErrorIs(t, err, cluster.ErrModifyIndex)
			return nil
		})
		do(t, g, func(ctx context.Context, s *server.Server) error {
			costly := job.Copy()
			costly.Constraints = []cluster.Constraint{{LTarget: "${attr.x}", Operand: cluster.OperandRegexp, RTarget: ".{1000}"}}
			_, err := s.Requests().RegisterJob(ctx, costly, cluster.JobRegistration{})
			must.ErrorContains(t, err, "the regular expression needs 1002 instructions, and at most 250 are allowed")
			return nil
		})
		placed := func() []*cluster.Allocation {
			return slices.Collect(g.Leader().Store().Snapshot().AllocsByJob(job.Key()))
		}
		time.Sleep(time.Second)
		must.SliceEmpty(t, placed(), must.Sprint("the driver is not healthy"))
		node.Drivers["raw_exec"].Healthy = true
		do(t, g, registerNode)
		time.Sleep(time.Second)
		must.Len(t, 1, placed())

		report := cluster.AllocReport{Alloc: placed()[0].ID, Node: "real", ClientStatus: cluster.ClientRunning, At: time.Now()}
		report.TaskStates = &cluster.TaskStates{Tasks: []cluster.TaskState{
			{Name: job.TaskGroups[0].Tasks[0].Name, State: cluster.TaskRunning, StartedAt: time.Now()},
		}}
		write(t, g, server.Requests.ReportAllocs, []cluster.AllocReport{report})
		time.Sleep(time.Second)
		for _, s := range g.Servers() {
			states := s.Store().Snapshot().Alloc(report.Alloc).TaskStates
			must.True(t, report.TaskStates.Equal(states))
		}
	})
}
