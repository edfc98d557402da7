package server_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// While a cluster has an older server, a node with devices registers without them, so that it can run other
// work. The cluster refuses a job with requests for devices. After the last server is upgraded the node registers
// again, and the job gets a device, on every server.
func TestServer_devicesNeedEveryServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, server.GroupConfig{Servers: 3})
		node := testNode("gpus")
		node.Devices = []*cluster.DeviceGroup{{
			Kind: cluster.DeviceKind{Vendor: "nvidia", Type: "gpu", Name: "A100"}, Devices: []cluster.Device{{ID: "b"}, {ID: "a", Healthy: true}},
		}}
		job := clustertest.Job("train", cluster.JobService, 1)
		job.TaskGroups[0].Tasks[0].Driver = "raw_exec"
		job.TaskGroups[0].Tasks[0].Devices = []cluster.DeviceRequest{{Name: "gpu", Count: 1}}
		registerNode := func(ctx context.Context, s *server.Server) error {
			_, err := s.Requests().RegisterNode(ctx, node)
			return err
		}
		do(t, g, registerNode)
		for _, older := range []cluster.Version{cluster.MinVersion, cluster.VersionOfDrivers, cluster.VersionOfDevices - 1} {
			raiseTo(t, g, older)
			do(t, g, registerNode)
			must.SliceEmpty(t, g.Leader().Store().Snapshot().Node("gpus").Devices)
			must.Len(t, 2, node.Devices[0].Devices, must.Sprint("the node is the caller's"))
			do(t, g, func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().RegisterJob(ctx, job, cluster.JobRegistration{})
				must.ErrorIs(t, err, cluster.ErrVersion)
				return nil
			})
		}
		raiseTo(t, g, cluster.VersionOfDevices)
		do(t, g, registerNode)
		registerJob(t, g, job)
		time.Sleep(time.Second)
		for _, s := range g.Servers() {
			snapshot := s.Store().Snapshot()
			must.Eq(t, "a", snapshot.Node("gpus").Devices[0].Devices[0].ID)
			placed := 0
			for a := range snapshot.AllocsByJob(job.Key()) {
				must.Eq(t, []string{"a"}, a.Devices.All[0].IDs)
				placed++
			}
			must.Eq(t, 1, placed)
		}
	})
}
