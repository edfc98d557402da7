package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/volumes"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/server"
)

// disk is a storage system with one volume. It judges the order of the calls.
type disk struct {
	group *server.Group

	mu sync.Mutex
	// calls are all calls with the nodes of their controllers; attached are the nodes that have the
	// volume; effects counts the changes of it; wrong are calls out of order. All guarded by mu.
	calls    []string
	attached map[string]bool
	effects  int
	wrong    []string
	// broken are controllers that fail; slow ones act and never answer. Guarded by mu.
	broken, slow map[cluster.NodeID]bool
	flying       int
}

func (d *disk) Call(ctx context.Context, controller cluster.NodeID, c *volumes.Call) (map[string]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	verb := "attach"
	if c.Detach {
		verb = "detach"
	}
	d.calls = append(d.calls, fmt.Sprintf("%s %s by %s", verb, c.ExternalNodeID, controller))
	if d.flying > 0 {
		d.wrong = append(d.wrong, "two calls of a volume are in flight")
	}
	if d.broken[controller] {
		return nil, errors.New("the controller is broken")
	}
	if c.Detach {
		for claim := range d.group.Leader().Store().Snapshot().ClaimsOfVolume(c.Volume.Key()) {
			if claim.Node == c.Node && claim.State.OnNode() {
				d.wrong = append(d.wrong, "detached while the node has the volume")
			}
		}
	} else if len(d.attached) > 0 && !d.attached[c.ExternalNodeID] {
		d.wrong = append(d.wrong, "attached to two nodes")
	}
	if d.attached[c.ExternalNodeID] == c.Detach {
		d.effects++
		if delete(d.attached, c.ExternalNodeID); !c.Detach {
			d.attached[c.ExternalNodeID] = true
		}
	}
	if d.slow[controller] {
		d.flying++
		d.mu.Unlock()
		<-ctx.Done()
		d.mu.Lock()
		d.flying--
		return nil, context.Cause(ctx)
	}
	return map[string]string{"device": "sdb"}, nil
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// take returns the calls since the last time.
func (d *disk) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.calls = nil }()
	return d.calls
}

// attachedVolume is a cluster whose volume a controller attaches: nodes n1 and n2 mount it, c1 and c2 have
// controllers.
func attachedVolume(t *testing.T) (*server.Group, *disk) {
	t.Helper()
	d := &disk{attached: map[string]bool{}, broken: map[cluster.NodeID]bool{}, slow: map[cluster.NodeID]bool{}}
	g := newGroup(t, server.GroupConfig{Servers: 3, Server: server.Config{Controllers: d}})
	d.group = g
	t.Cleanup(func() { must.SliceEmpty(t, d.wrong) })
	write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
	write(t, g, server.Requests.RegisterVolume, &cluster.Volume{ID: "data", ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{oneWriter()}})
	for _, id := range []cluster.NodeID{"n1", "n2", "c1", "c2"} {
		n := testNode(id)
		p := &cluster.StoragePlugin{ID: "disks", Type: cluster.PluginNode, Healthy: true, NodeID: "ext-" + string(id), NeedsController: true}
		if id[0] == 'c' {
			p.Type, p.NodeID, p.Attaches = cluster.PluginController, "", true
		}
		n.StoragePlugins = []*cluster.StoragePlugin{p}
		write(t, g, server.Requests.RegisterNode, n)
	}
	return g, d
}

func oneWriter() cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
}

func registerWriter(t *testing.T, g *server.Group) {
	t.Helper()
	j := clustertest.Job("web", cluster.JobService, 1)
	j.TaskGroups[0].Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", Capability: oneWriter()}}
	registerJob(t, g, j)
}

func claimsOf(g *server.Group) []*cluster.VolumeClaim {
	return slices.Collect(g.Leader().Store().Snapshot().WorkView().Claims())
}

// A controller attaches the volume when its allocation is placed. The first one fails, and the second one
// is called. When the job stops, no controller detaches the volume before the node has unmounted it.
func TestServer_controllersAttachAndDetach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.broken["c1"] = true })
		registerWriter(t, g)
		time.Sleep(5 * time.Second)
		claim := claimsOf(g)[0]
		node := claim.ExternalNodeID
		must.Eq(t, []string{"attach " + node + " by c1", "attach " + node + " by c2"}, d.take())
		must.True(t, claim.Attached)
		must.Eq(t, map[string]string{"device": "sdb"}, claim.PublishContext)
		runs(t, g, 1)

		stopJob(t, g, webKey, false)
		time.Sleep(time.Minute)
		must.SliceEmpty(t, d.take())
		must.Len(t, 1, claimsOf(g))
		write(t, g, server.Requests.ReportAllocs, []cluster.AllocReport{{Alloc: claim.Alloc, Node: claim.Node, ClientStatus: cluster.ClientComplete}})
		time.Sleep(5 * time.Second)
		must.Eq(t, []string{"detach " + node + " by c1", "detach " + node + " by c2"}, d.take())
		must.SliceEmpty(t, claimsOf(g))
		must.EqOp(t, 2, d.effects)
	})
}

// An operator detaches the volume of a running allocation by force: the servers stop the allocation, and its
// replacement has the claim. The replacement waits for the second request if no controller answers.
func TestServer_detachByForce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		registerWriter(t, g)
		time.Sleep(5 * time.Second)
		runs(t, g, 1)
		before := claimsOf(g)[0]
		d.set(func() { d.broken["c1"], d.broken["c2"] = true, true })
		force := func() {
			do(t, g, func(ctx context.Context, s *server.Server) error {
				_, err := s.Requests().DetachVolume(ctx, before.Volume, before.Node, true)
				return err
			})
			time.Sleep(5 * time.Second)
		}
		force()
		must.EqOp(t, cluster.DesiredStop, g.Leader().Store().Snapshot().Alloc(before.Alloc).DesiredStatus)
		must.Len(t, 1, claimsOf(g))
		must.EqOp(t, cluster.ClaimNodeDetached, claimsOf(g)[0].State)
		force()
		must.Len(t, 1, claimsOf(g))
		must.NotEqOp(t, before.Alloc, claimsOf(g)[0].Alloc)
		must.EqOp(t, cluster.ClaimTaken, claimsOf(g)[0].State)
	})
}

// The leader dies after the controller has attached the volume and before its answer is in the state. The
// next leader repeats the call, which has no second effect.
func TestServer_leaderDiesDuringAnAttachment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.slow["c1"] = true })
		registerWriter(t, g)
		time.Sleep(5 * time.Second)
		must.Len(t, 1, d.take())
		must.EqOp(t, 1, d.effects)
		must.False(t, claimsOf(g)[0].Attached)

		d.set(func() { d.slow["c1"] = false })
		must.NoError(t, g.Kill(g.Leader()))
		time.Sleep(20 * time.Second)
		must.Len(t, 1, d.take())
		must.EqOp(t, 1, d.effects)
		must.True(t, claimsOf(g)[0].Attached)
		time.Sleep(10 * time.Minute)
		must.SliceEmpty(t, d.take(), must.Sprint("nothing is called again"))
	})
}

// When a controller does not answer in time, the call goes to the next one. Without a controller
// the volume waits, and the first one that comes is called.
func TestServer_controllersThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.slow["c1"], d.broken["c2"] = true, true })
		registerWriter(t, g)
		time.Sleep(70 * time.Second)
		node := claimsOf(g)[0].ExternalNodeID
		must.Eq(t, []string{"attach " + node + " by c1", "attach " + node + " by c2", "attach " + node + " by c1"}, d.take())
		for _, id := range []cluster.NodeID{"c1", "c2"} {
			setStatus(t, g.Leader(), id, cluster.NodeDown)
		}
		time.Sleep(10 * time.Minute)
		must.SliceEmpty(t, d.take())
		d.set(func() { d.broken["c2"] = false })
		setStatus(t, g.Leader(), "c2", cluster.NodeReady)
		time.Sleep(3 * time.Second)
		must.Eq(t, []string{"attach " + node + " by c2"}, d.take())
		must.True(t, claimsOf(g)[0].Attached)
		must.EqOp(t, 1, d.effects)
	})
}

// A controller does not answer the call that attaches the volume, and another one attaches it. The first one
// may still execute its call. So it must detach the volume too, before the claim is free.
func TestServer_controllerMayStillAttach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.slow["c1"] = true })
		registerWriter(t, g)
		time.Sleep(70 * time.Second)
		claim := claimsOf(g)[0]
		node := claim.ExternalNodeID
		must.Eq(t, []string{"attach " + node + " by c1", "attach " + node + " by c2"}, d.take())
		must.True(t, claim.Attached)
		stopJob(t, g, webKey, false)
		d.set(func() { d.slow["c1"], d.broken["c1"] = false, true })
		ends(t, g, claim)
		time.Sleep(2 * time.Minute)
		must.SliceNotEmpty(t, claimsOf(g), must.Sprint("c2 alone is not enough"))
		must.SliceNotContains(t, d.take(), "detach "+node+" by c2")
		must.EqOp(t, "the controller is broken", g.Leader().FailingCalls()[0].LastError)
		d.set(func() { d.broken["c1"] = false })
		time.Sleep(time.Minute)
		must.Eq(t, []string{"detach " + node + " by c1"}, d.take())
		must.SliceEmpty(t, claimsOf(g))
	})
}

// If a controller that has not answered cannot be called any more, another one detaches the volume.
func TestServer_controllerThatMayAttachIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.slow["c1"] = true })
		registerWriter(t, g)
		time.Sleep(70 * time.Second)
		claim := claimsOf(g)[0]
		stopJob(t, g, webKey, false)
		d.take()
		setStatus(t, g.Leader(), "c1", cluster.NodeDown)
		ends(t, g, claim)
		time.Sleep(5 * time.Second)
		must.Eq(t, []string{"detach " + claim.ExternalNodeID + " by c2"}, d.take())
		must.SliceEmpty(t, claimsOf(g))
	})
}

// attachAndStop runs the writer until a controller has attached its volume, and stops its job.
func attachAndStop(t *testing.T, g *server.Group) *cluster.VolumeClaim {
	t.Helper()
	registerWriter(t, g)
	time.Sleep(5 * time.Second)
	runs(t, g, 1)
	stopJob(t, g, webKey, false)
	claim := claimsOf(g)[0]
	must.True(t, claim.Attached)
	return claim
}

// ends reports that the allocation has ended and its volume is off the node.
func ends(t *testing.T, g *server.Group, claim *cluster.VolumeClaim) {
	t.Helper()
	write(t, g, server.Requests.ReportAllocs, []cluster.AllocReport{{Alloc: claim.Alloc, Node: claim.Node, ClientStatus: cluster.ClientComplete}})
}

// The leader dies after a controller has detached the volume and before the claim is freed. The next leader
// repeats the call, which has no second effect, and then another node gets the volume.
func TestServer_leaderDiesDuringADetachment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		claim := attachAndStop(t, g)
		d.set(func() { d.slow["c1"] = true })
		d.take()
		ends(t, g, claim)
		time.Sleep(5 * time.Second)
		must.Eq(t, []string{"detach " + claim.ExternalNodeID + " by c1"}, d.take())
		must.EqOp(t, 2, d.effects)
		must.Eq(t, cluster.ClaimNodeDetached, claimsOf(g)[0].State)

		d.set(func() { d.slow["c1"] = false })
		must.NoError(t, g.Kill(g.Leader()))
		time.Sleep(20 * time.Second)
		must.Len(t, 1, d.take())
		must.EqOp(t, 2, d.effects)
		must.SliceEmpty(t, claimsOf(g))
		registerWriter(t, g)
		time.Sleep(20 * time.Second)
		must.True(t, claimsOf(g)[0].Attached)
		must.EqOp(t, 3, d.effects)
	})
}

// A leader that is cut off leads on for a moment. A call that is due then does not begin: the
// volume may be in use again by what the next leader has written.
func TestServer_leaderThatIsCutOffCallsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		claim := attachAndStop(t, g)
		d.set(func() { d.broken["c1"], d.broken["c2"] = true, true })
		ends(t, g, claim)
		time.Sleep(5 * time.Minute) // by now a call is repeated each 30 s
		d.take()
		for len(d.take()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(29900 * time.Millisecond)
		must.SliceEmpty(t, d.take())
		old := g.Leader()
		g.Cut(old)
		until := time.Now().Add(300 * time.Millisecond)
		for time.Now().Before(until) {
			must.True(t, old.Leads(), must.Sprint("it has not noticed"))
			time.Sleep(10 * time.Millisecond)
		}
		must.SliceEmpty(t, d.take())
		d.set(func() { d.broken["c1"], d.broken["c2"] = false, false })
		time.Sleep(time.Minute)
		must.Len(t, 1, d.take(), must.Sprint("the next leader calls"))
		must.NoError(t, g.Kill(old))
		must.SliceEmpty(t, claimsOf(g))
	})
}

// The leader shows which calls fail, why and how often. The next leader shows none of them until it has made
// the same experience.
func TestServer_failingCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.broken["c1"], d.broken["c2"] = true, true })
		registerWriter(t, g)
		time.Sleep(10 * time.Second)
		failing := g.Leader().FailingCalls()
		must.Len(t, 1, failing)
		must.EqOp(t, 4, failing[0].Failures)
		must.EqOp(t, "the controller is broken", failing[0].LastError)
		must.EqOp(t, "c2", failing[0].Controller)
		must.EqOp(t, 8*time.Second, failing[0].NextAt.Sub(failing[0].LastAt))
		must.EqOp(t, claimsOf(g)[0].Node, failing[0].Node)
		old := g.Leader()
		for _, s := range g.Servers() {
			must.EqOp(t, s == old, len(s.FailingCalls()) > 0)
		}

		must.NoError(t, g.Kill(old))
		time.Sleep(5 * time.Second)
		must.SliceEmpty(t, old.FailingCalls())
		must.Len(t, 1, g.Leader().FailingCalls())
		must.Less(t, 4, g.Leader().FailingCalls()[0].Failures)

		d.set(func() { d.broken["c1"] = false })
		time.Sleep(time.Minute)
		must.True(t, claimsOf(g)[0].Attached)
		must.SliceEmpty(t, g.Leader().FailingCalls())
	})
}

// A failed call is not shown any more when it is due no more.
func TestServer_failingCallIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, d := attachedVolume(t)
		d.set(func() { d.broken["c1"], d.broken["c2"] = true, true })
		registerWriter(t, g)
		time.Sleep(10 * time.Second)
		must.Len(t, 1, g.Leader().FailingCalls())
		stopJob(t, g, webKey, false)
		ends(t, g, claimsOf(g)[0])
		time.Sleep(2 * time.Second)
		must.SliceEmpty(t, slices.DeleteFunc(g.Leader().FailingCalls(), func(c volumes.FailedCall) bool { return c.Detach }))
	})
}

// A call that no controller can serve is shown, too.
func TestServer_noController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, _ := attachedVolume(t)
		claim := attachAndStop(t, g)
		for _, id := range []cluster.NodeID{"c1", "c2"} {
			setStatus(t, g.Leader(), id, cluster.NodeDown)
		}
		ends(t, g, claim)
		time.Sleep(3 * time.Second)
		want := []volumes.FailedCall{{Volume: claim.Volume, Plugin: "disks", Node: claim.Node, Detach: true, NoController: true}}
		must.Eq(t, want, g.Leader().FailingCalls())
		setStatus(t, g.Leader(), "c2", cluster.NodeReady)
		time.Sleep(3 * time.Second)
		must.SliceEmpty(t, g.Leader().FailingCalls())
		must.SliceEmpty(t, claimsOf(g))
	})
}

// stuck are controllers that never answer. It counts the calls in flight by plugin.
type stuck struct {
	mu     sync.Mutex
	flying map[cluster.PluginID]int // guarded by mu
}

func (s *stuck) Call(ctx context.Context, _ cluster.NodeID, c *volumes.Call) (map[string]string, error) {
	s.add(c.Volume.Plugin, 1)
	defer s.add(c.Volume.Plugin, -1)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (s *stuck) add(p cluster.PluginID, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying[p] += n
}

// most are how many calls of one plugin, and of all, are in flight.
func (s *stuck) most() (one, all int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.flying { //lint:order a sum and a maximum
		one, all = max(one, n), all+n
	}
	return one, all
}

// Calls that hang are bounded, for each plugin and for all of them.
func TestServer_controllersAreBounded(t *testing.T) {
	t.Parallel()
	for plugins, want := range map[int][2]int{
		1: {volumes.MaxCallsOfPlugin, volumes.MaxCallsOfPlugin},
		5: {0, volumes.MaxCalls},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &stuck{flying: map[cluster.PluginID]int{}}
			g := newGroup(t, server.GroupConfig{Servers: 1, Server: server.Config{Controllers: s}})
			write(t, g, server.Requests.RaiseVersion, cluster.MaxVersion)
			n := testNode("n1")
			for p := range plugins {
				n.StoragePlugins = append(n.StoragePlugins, &cluster.StoragePlugin{ID: cluster.PluginID(fmt.Sprint("p", p)), Type: cluster.PluginMonolith, Healthy: true, NodeID: "ext", Attaches: true})
			}
			write(t, g, server.Requests.RegisterNode, n)
			for job := range 2 {
				j := clustertest.Job(cluster.JobID(fmt.Sprint("job", job)), cluster.JobService, 1)
				for v := range 25 {
					id := cluster.VolumeID(fmt.Sprintf("v%d-%02d", job, v))
					j.TaskGroups[0].Volumes = append(j.TaskGroups[0].Volumes, cluster.VolumeRequest{Name: string(id), Type: cluster.VolumeCSI, Source: id, Capability: oneWriter()})
					do(t, g, func(ctx context.Context, s *server.Server) error {
						_, err := s.Requests().RegisterVolume(ctx, &cluster.Volume{
							ID: id, ExternalID: "x", Plugin: cluster.PluginID(fmt.Sprint("p", v%plugins)), Capabilities: []cluster.VolumeCapability{oneWriter()},
						})
						return err
					})
				}
				registerJob(t, g, j)
			}
			time.Sleep(10 * time.Second)
			must.Len(t, 50, claimsOf(g))
			one, all := s.most()
			must.EqOp(t, want[1], all)
			must.LessEq(t, volumes.MaxCallsOfPlugin, one)
			must.GreaterEq(t, want[0], one)
		})
	}
}
