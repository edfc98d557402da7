package agent_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
)

func controllerNode() *cluster.Node {
	n := testNode(1)
	n.StoragePlugins = []*cluster.StoragePlugin{{ID: "team/disks", Type: cluster.PluginMonolith, Healthy: true, NodeID: "ext", Attaches: true}}
	return n
}

// runWriter registers a volume that a controller must attach, and a job that uses it.
func runWriter(t *testing.T, leader *agent.Agent) {
	t.Helper()
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	writer := leader.Backend().Writer
	result.Of(writer.RegisterVolume(t.Context(), &cluster.Volume{ID: "data", ExternalID: "disk-1", Plugin: "team/disks", Capabilities: []cluster.VolumeCapability{mode}})).OK(t)
	job := clustertest.Job("web", cluster.JobService, 1)
	job.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: mode}}
	result.Of(writer.RegisterJob(t.Context(), job, cluster.JobRegistration{})).OK(t)
}

// The leader calls the controller of a node whose session another server holds, and the answer is in the
// claim.
func TestControllers_overTheSessionOfAnotherServer(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	eventually(t, "the cluster version", func() bool {
		return leader.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfVolumes
	})
	reach(t, w.others(leader)[0], controllerNode())
	runWriter(t, leader)
	var claims []*cluster.VolumeClaim
	eventually(t, "the volume is attached", func() bool {
		claims = slices.Collect(leader.Server().Store().Snapshot().WorkView().Claims())
		return len(claims) == 1 && claims[0].Attached
	})
	must.Eq(t, map[string]string{"received": "POST /v1/internal/storage/team/disks/attach disk-1 ext"}, claims[0].PublishContext)
}

// The session of the controller's node moves to another server while the controller is called. The call
// fails with the session, and is repeated over the new one.
func TestControllers_theSessionMoves(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	eventually(t, "the cluster version", func() bool {
		return leader.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfVolumes
	})
	n := controllerNode()
	first := reach(t, w.others(leader)[0], n)
	first.stuck.Store(true)
	runWriter(t, leader)
	eventually(t, "the controller is called", func() bool { return first.hanging.Load() == 1 })
	must.NoError(t, first.end.Close())
	hold(t, w.others(leader)[1], n)
	eventually(t, "the volume is attached", func() bool {
		claims := slices.Collect(leader.Server().Store().Snapshot().WorkView().Claims())
		return len(claims) == 1 && claims[0].Attached
	})
	must.EqOp(t, 0, first.hanging.Load())
}

// If the session ends during a call, the controller may still execute the call. If there is no session, or if
// the client answers, it does not.
func TestControllers_whoMayStillExecute(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	n := controllerNode()
	call := &volumes.Call{Volume: &cluster.Volume{ID: "data", ExternalID: "disk-1", Plugin: "team/disks"}, ExternalNodeID: "ext"}
	for _, holder := range []*agent.Agent{leader, w.others(leader)[0]} {
		r := reach(t, holder, n)
		r.stuck.Store(true)
		called := make(chan error, 1)
		go func() { called <- agent.CallController(t.Context(), leader, n.ID, call) }()
		eventually(t, "the controller is called", func() bool { return r.hanging.Load() == 1 })
		must.NoError(t, r.end.Close())
		must.ErrorIs(t, <-called, volumes.ErrNoAnswer)
	}
	err := agent.CallController(t.Context(), leader, n.ID, call)
	must.Error(t, err)
	must.False(t, errors.Is(err, volumes.ErrNoAnswer), must.Sprint(err))
	reach(t, leader, n).fails.Store(true)
	err = agent.CallController(t.Context(), leader, n.ID, call)
	must.Error(t, err)
	must.False(t, errors.Is(err, volumes.ErrNoAnswer), must.Sprint(err))
}

// A controller fails, and every server shows why: the leader itself, and the others through the leader.
func TestControllers_theErrorIsReported(t *testing.T) {
	t.Parallel()
	w := newServers(t, 3, nil)
	leader := w.leader()
	eventually(t, "the cluster version", func() bool {
		return leader.Server().Store().Snapshot().ClusterVersion() >= cluster.VersionOfVolumes
	})
	n := controllerNode()
	r := reach(t, w.others(leader)[0], n)
	r.fails.Store(true)
	runWriter(t, leader)
	var calls []wire.ControllerCall
	eventually(t, "the call fails", func() bool {
		v := result.Read(api(t, w.others(leader)[1]).Volumes().Read(t.Context(), "data", apiclient.Query{})).OK(t)
		calls = v.ControllerCalls
		return len(calls) == 1
	})
	must.Eq(t, "attach default/data "+string(n.ID), calls[0].Call+" "+calls[0].Namespace+"/"+calls[0].Volume+" "+calls[0].NodeID)
	must.StrHasPrefix(t, "the client answers 500: ControllerPublishVolume: Internal: the pool is busy", calls[0].LastError)
	r.fails.Store(false)
	eventually(t, "the call succeeds, and is shown no more", func() bool {
		v, _, err := api(t, leader).Volumes().Read(t.Context(), "data", apiclient.Query{})
		return err == nil && len(v.ControllerCalls) == 0 && v.Claims[0].Attached
	})
}
