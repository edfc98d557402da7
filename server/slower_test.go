package server

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// A clock that is set forward frees no claim early, and one that is set back delays it: the wait began
// with the time of a clock that was right or ahead.
func TestSlower(t *testing.T) {
	t.Parallel()
	began := clocks{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), time.Hour}
	const passed = 10 * time.Minute
	for step, want := range map[time.Duration]time.Duration{
		0: passed, time.Hour: passed, time.Nanosecond: passed, -time.Hour: passed - time.Hour, -time.Nanosecond: passed - time.Nanosecond,
	} {
		now := clocks{began.wall.Add(passed + step), began.steady + passed}
		must.Eq(t, clocks{began.wall.Add(want), now.steady}, now.slower(began), must.Sprint(step))
	}
}

// twoClocks is a leader whose clock is set while nodes go down. Each node has a volume with one writer,
// which it stops by itself.
type twoClocks struct {
	*clustertest.Replica
	clock clocks
	// down is when the nodes went down, by the monotonic clock.
	down map[cluster.NodeID]time.Duration
	// waits is how long the servers must wait for a node.
	waits time.Duration
	story []string
}

const clockStop = 3 * time.Minute

func newTwoClocks(t *testing.T) *twoClocks {
	w := &twoClocks{
		Replica: clustertest.NewReplica(t, shims.FSMConfig{}), down: map[cluster.NodeID]time.Duration{},
		clock: clocks{wall: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	w.Must(&shims.RaiseClusterVersion{Version: cluster.MaxVersion})
	mode := cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
	job := clustertest.Job("web", cluster.JobService, 5)
	group := job.TaskGroups[0]
	group.Volumes = []cluster.VolumeRequest{{Name: "d", Type: cluster.VolumeCSI, Source: "data", PerAlloc: true, Capability: mode}}
	group.Disconnect.StopOnClientAfter = clockStop
	job = w.Job(job)
	for i := range 5 {
		n := clustertest.Node(cluster.NodeID(fmt.Sprint("n", i)))
		n.StoragePlugins = []*cluster.StoragePlugin{{ID: "disks", Type: cluster.PluginNode, Healthy: true}}
		w.Must(&shims.NodeRegister{At: w.clock.wall, Node: n})
		w.Must(&shims.VolumeRegister{At: w.clock.wall, Volume: &cluster.Volume{
			ID: cluster.VolumeID(fmt.Sprintf("data[%d]", i)), ExternalID: "x", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode},
		}})
		a := clustertest.Alloc(job, cluster.AllocID(fmt.Sprint("a", i)), n.ID, w.clock.wall)
		a.Name = fmt.Sprintf("web.web[%d]", i)
		w.Plan(job, nil, a)
		w.waits = clockStop + a.StopTime() + cluster.StopMarginOfNode
	}
	must.MapLen(t, 5, w.claims())
	return w
}

func (w *twoClocks) claims() map[cluster.NodeID]bool {
	left := map[cluster.NodeID]bool{}
	for c := range w.State().WorkView().Claims() {
		left[c.Node] = true
	}
	return left
}

// passes lets time pass by both clocks.
func (w *twoClocks) passes(d time.Duration) {
	w.clock = clocks{w.clock.wall.Add(d), w.clock.steady + d}
}

// proposes applies what the releaser proposes.
type proposes struct{ *clustertest.Replica }

func (p proposes) Propose(m shims.Message, reply func(shims.Answer)) bool {
	reply(shims.Answer{Outcome: raftwrite.Applied, Index: p.Index, Response: p.Apply(m)})
	return true
}

func (p proposes) Barrier(func(shims.Answer)) bool { return false }

// step makes a step, and checks that it frees no claim early.
func (w *twoClocks) step(r *releaser) {
	before := w.claims()
	r.step(w.Context(), w.State(), w.clock)
	left := w.claims()
	for n := range before { //lint:order each is checked
		if left[n] {
			continue
		}
		w.note("the claim of %s is freed", n)
		down, is := w.down[n]
		must.True(w, is, must.Sprint(n, " is reachable: ", w.story))
		must.LessEq(w, w.clock.steady-down, w.waits, must.Sprintf("the claim of %s is freed early: %q", n, w.story))
	}
}

func (w *twoClocks) note(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%v: ", w.clock.steady)+fmt.Sprintf(format, args...))
}

// The clock of the leader is set forward and back at random while nodes go down. No claim is freed before
// the servers have waited for its node by a steady clock, and each is freed. Bug: a clock that was set back while
// a node waited, and set forward after another one went down, freed the claim of the second at once.
func TestReleaser_theClockIsSet(t *testing.T) {
	t.Parallel()
	seeds := 200
	if testing.Short() {
		seeds = 40
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { playTwoClocks(t, rand.New(rand.NewPCG(uint64(seed), 36))) })
	}
}

func playTwoClocks(t *testing.T, rng *rand.Rand) {
	const farthest = time.Hour
	w := newTwoClocks(t)
	r := releaser{own: proposes{w.Replica}, logger: hclog.NewNullLogger(), last: w.clock}
	right := w.clock.wall
	for range 200 {
		w.passes(time.Duration(rng.Int64N(int64(releaseInterval))))
		if rng.IntN(8) == 0 {
			ahead := []time.Duration{0, farthest, -farthest, time.Duration(rng.Int64N(int64(2*farthest))) - farthest}[rng.IntN(4)]
			w.clock.wall = right.Add(w.clock.steady + ahead)
			w.note("the clock is %v ahead", ahead)
		}
		if n := cluster.NodeID(fmt.Sprint("n", rng.IntN(5))); rng.IntN(20) == 0 && w.State().Node(n).Reachable() {
			w.Must(&shims.NodeUpdateStatus{At: w.clock.wall, Node: n, Status: cluster.NodeDown})
			w.down[n] = w.clock.steady
			w.note("%s goes down", n)
		}
		w.passes(time.Duration(rng.Int64N(int64(releaseInterval))))
		w.step(&r)
	}
	for end := w.clock.steady + 2*farthest + w.waits; w.clock.steady <= end; w.passes(time.Minute) {
		w.step(&r)
	}
	w.step(&r)
	must.MapLen(t, 5-len(w.down), w.claims(), must.Sprint(w.story))
}
