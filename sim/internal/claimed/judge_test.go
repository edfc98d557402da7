package claimed_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/storage"
	double "github.com/seed-f9cf0b39/nodedrain/plugin/storage/scripted"
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/claimed"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

func start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func data() cluster.VolumeKey { return cluster.VolumeKey{Namespace: "default", ID: "data"} }

// history is a state with the node n1 and its allocation a1, which writes to a single-writer volume.
// A test changes the state before the judge checks it.
type history struct {
	t     *testing.T
	store *statestore.Store
	index uint64
	// mounts are the mounts of n1 and n2.
	mounts   [2][]double.Mount
	attached []world.Attachment
	// skipped is how far the leader's clock is set forward after the node is down.
	skipped time.Duration
	// runs are the allocations whose tasks run on n1.
	runs  map[cluster.AllocID]bool
	judge *claimed.Judge
}

func newHistory(t *testing.T, controllers bool) *history {
	t.Helper()
	w := &history{t: t, store: statestore.New(), judge: claimed.New()}
	w.write(func(txn *statestore.Txn) {
		txn.RaiseClusterVersion(cluster.MaxVersion)
		p := &cluster.StoragePlugin{ID: "disks", Type: cluster.PluginMonolith, Alloc: "p", Healthy: true, NodeID: "n1", Attaches: controllers}
		must.NoError(t, txn.UpsertNode(&cluster.Node{
			ID: "n1", Name: "n1", Status: cluster.NodeReady, SchedulingEligibility: cluster.NodeEligible, StoragePlugins: []*cluster.StoragePlugin{p},
		}, start()))
		must.NoError(t, txn.UpsertVolume(&cluster.Volume{
			Namespace: "default", ID: "data", Name: "data", ExternalID: "ext", Plugin: "disks", Capabilities: []cluster.VolumeCapability{mode()},
		}, start()))
		j := &cluster.Job{ID: "web", Type: cluster.JobService, TaskGroups: []*cluster.TaskGroup{{
			Name: "g", Count: 1, Tasks: []*cluster.Task{{Name: "t", KillTimeout: 5 * time.Second}},
			Disconnect: cluster.DisconnectStrategy{StopOnClientAfter: time.Minute},
			Volumes:    []cluster.VolumeRequest{{Name: "data", Type: cluster.VolumeCSI, Source: "data", Capability: mode()}},
		}}}
		j.Canonicalize()
		must.NoError(t, j.Validate())
		must.NoError(t, txn.UpsertJob(j))
		_, err := txn.ApplyPlan(&cluster.Plan{At: start(), Places: []*cluster.Allocation{{
			ID: "a1", Namespace: "default", JobID: "web", Job: j, TaskGroup: "g", Name: "web.g[0]", NodeID: "n1",
			DesiredStatus: cluster.DesiredRun, ClientStatus: cluster.ClientRunning,
		}}})
		must.NoError(t, err)
	})
	w.mounts[0] = []double.Mount{w.mount("a1")}
	return w
}

func mode() cluster.VolumeCapability {
	return cluster.VolumeCapability{Access: cluster.SingleNodeWriter, Attachment: cluster.AttachFileSystem}
}

func (*history) mount(alloc cluster.AllocID) double.Mount {
	return double.Mount{Path: "/volumes/data", Volume: data(), Usage: storage.Usage{VolumeCapability: mode()}, Alloc: alloc, Plugin: "disks"}
}

func (w *history) write(change func(*statestore.Txn)) (before, after *statestore.Snapshot) {
	w.t.Helper()
	before = w.store.Snapshot()
	w.index++
	txn := w.store.Begin(w.index)
	change(txn)
	txn.Commit()
	return before, w.store.Snapshot()
}

// change applies a change of the claim of a1, and passes the entry to the judge.
func (w *history) change(cause cluster.ClaimCause, after time.Duration) {
	w.t.Helper()
	u := cluster.ClaimUpdate{At: start().Add(after), Changes: []cluster.ClaimChange{{Claim: cluster.ClaimKey{Volume: data(), Alloc: "a1"}, Node: "n1", Cause: cause}}}
	before, now := w.update(&u)
	w.judge.Applied(u.At, shims.Applied{Index: w.index, Before: before, After: now, Message: &shims.ClaimUpdate{ClaimUpdate: u}})
}

func (w *history) update(u *cluster.ClaimUpdate) (before, after *statestore.Snapshot) {
	w.t.Helper()
	return w.write(func(txn *statestore.Txn) { must.SliceEmpty(w.t, txn.UpdateClaims(u)) })
}

// force detaches the volume by force, and passes the entry to the judge.
func (w *history) force() {
	before, now := w.write(func(txn *statestore.Txn) {
		detach(w.t, txn)
	})
	w.judge.Applied(start(), shims.Applied{Index: w.index, Before: before, After: now, Message: &shims.VolumeDetach{Volume: data(), Node: "n1", Force: true}})
}

func detach(t *testing.T, txn *statestore.Txn) {
	t.Helper()
	_, err := txn.DetachVolume(data(), "n1", true, start())
	must.NoError(t, err)
}

// row changes the row of a1 without its claims.
func (w *history) row(status cluster.ClientStatus, holds *cluster.VolumeHolds) {
	w.write(func(txn *statestore.Txn) {
		txn.UpdateAllocsFromClient([]cluster.AllocReport{{Alloc: "a1", Node: "n1", ClientStatus: status, VolumeHolds: holds, At: start()}}, time.Time{})
	})
}

// down marks the node as down.
func (w *history) down() {
	before, after := w.write(func(txn *statestore.Txn) { must.NoError(w.t, txn.UpdateNodeStatus("n1", cluster.NodeDown, start())) })
	m := &shims.NodeUpdateStatus{At: start(), Node: "n1", Status: cluster.NodeDown}
	w.judge.Applied(m.At.Add(w.skipped), shims.Applied{Index: w.index, Before: before, After: after, Message: m})
}

// deleted deletes the row of the node, as an operator does.
func (w *history) deleted() {
	before, after := w.write(func(txn *statestore.Txn) { must.SliceEmpty(w.t, txn.DeleteNodes([]cluster.NodeID{"n1"}, start())) })
	m := &shims.NodeDeregister{At: start(), Nodes: []cluster.NodeID{"n1"}}
	w.judge.Applied(m.At, shims.Applied{Index: w.index, Before: before, After: after, Message: m})
}

func (w *history) checks() (names []string) {
	w.t.Helper()
	w.judge.Compare(start(), w.store.Snapshot(), []claimed.Machine{{Node: "n1", Mounts: w.mounts[0], Runs: w.runs}, {Node: "n2", Mounts: w.mounts[1]}}, w.attached)
	for _, v := range w.judge.Violations() {
		must.SliceContains(w.t, claimed.Checks(), invariant.Check(v.Guarantee+" "+v.Check))
		names = append(names, v.Check)
	}
	return names
}

// Each rule is broken once. Similar states that are allowed cause no violation.
func TestJudge(t *testing.T) {
	t.Parallel()
	is := func(yes bool) []world.Attachment {
		return []world.Attachment{{Volume: data(), Node: "n1", Attached: yes}}
	}
	for name, test := range map[string]struct {
		controllers bool
		edit        func(*history)
		want        []string
	}{
		"in order":                       {false, func(*history) {}, nil},
		"staged only":                    {false, func(w *history) { w.mounts[0][0].Alloc = "" }, nil},
		"an allocation without a claim":  {false, func(w *history) { w.mounts[0] = []double.Mount{w.mount("a2")} }, []string{"mount without a claim"}},
		"a released claim":               {false, func(w *history) { w.change(cluster.CauseNode, 0) }, []string{"mount without a claim"}},
		"a claim that an operator frees": {false, func(w *history) { w.force() }, nil},
		"a claim that waits for a controller": {true, func(w *history) {
			w.change(cluster.CauseAttached, 0)
			w.change(cluster.CauseNode, 0)
		}, []string{"detached in use"}},
		"two writers": {false, func(w *history) { w.mounts[1] = []double.Mount{w.mount("a1")} }, []string{"two writers"}},
		"a reader beside the writer": {false, func(w *history) {
			w.mounts[1] = []double.Mount{w.mount("a1")}
			w.mounts[1][0].Usage.ReadOnly = true
		}, nil},
		"not attached": {true, func(w *history) { w.attached = is(false) }, []string{"not attached"}},
		"attached":     {true, func(w *history) { w.attached = is(true) }, nil},
		"detached in an order that no leader could prevent": {true, func(w *history) {
			w.attached = is(false)
			w.attached[0].Astray = true
		}, nil},
		"an end that does not name it": {false, func(w *history) { w.row(cluster.ClientComplete, &cluster.VolumeHolds{}) },
			[]string{"mount without a claim", "left without a name"}},
		"an end that names it": {false, func(w *history) {
			w.row(cluster.ClientComplete, &cluster.VolumeHolds{Volumes: []cluster.VolumeHold{{Namespace: "default", Volume: "data", Alloc: "a1"}}})
		}, nil},
		"freed when the node must have stopped it": {false, func(w *history) {
			w.down()
			w.change(cluster.CauseUnreachable, 3*time.Minute)
		}, nil},
		"freed while the task of a dead client runs": {false, func(w *history) {
			w.down()
			w.runs = map[cluster.AllocID]bool{"a1": true}
			w.change(cluster.CauseUnreachable, 3*time.Minute)
		}, []string{"freed in use"}},
		"freed too early, because the clock of the leader was set forward": {false, func(w *history) {
			w.skipped = time.Minute
			w.down()
			w.runs = map[cluster.AllocID]bool{"a1": true}
			w.change(cluster.CauseUnreachable, 3*time.Minute)
		}, nil},
		"freed in time on a deleted node": {false, func(w *history) {
			w.deleted()
			w.change(cluster.CauseUnreachable, 3*time.Minute)
		}, nil},
	} {
		w := newHistory(t, test.controllers)
		test.edit(w)
		must.Eq(t, test.want, w.checks(), must.Sprint(name))
	}
}

// The FSM refuses to free a claim too early, so the judge gets an entry of a broken FSM. The node
// is down, or its row was deleted.
func TestJudge_freedTooEarly(t *testing.T) {
	t.Parallel()
	for _, lose := range []func(*history){(*history).down, (*history).deleted} {
		w := newHistory(t, false)
		lose(w)
		before := w.store.Snapshot()
		w.write(func(txn *statestore.Txn) { detach(t, txn) })
		at := start().Add(2 * time.Minute)
		w.judge.Applied(at, shims.Applied{Index: w.index, Before: before, After: w.store.Snapshot(), Message: &shims.ClaimUpdate{ClaimUpdate: cluster.ClaimUpdate{
			At: at, Changes: []cluster.ClaimChange{{Claim: cluster.ClaimKey{Volume: data(), Alloc: "a1"}, Node: "n1", Cause: cluster.CauseUnreachable}},
		}}})
		must.Eq(t, []string{"freed too early"}, w.checks())
	}
}

// A collected allocation has no claim. The claim of a purged one stays while its node has the volume or
// is unreachable.
func TestJudge_claimsWithoutAllocation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*history)
		want []string
	}{
		"purged while its node has the volume": {func(w *history) { w.deletes(&shims.JobDeregister{}) }, nil},
		"purged, and its node is down": {func(w *history) {
			w.deletes(&shims.JobDeregister{})
			w.mounts[0] = nil
			w.down()
		}, nil},
		"purged, and the node does not release it": {func(w *history) {
			w.deletes(&shims.JobDeregister{})
			w.mounts[0] = nil
		}, []string{"endless claim"}},
		"collected": {func(w *history) { w.deletes(&shims.Collect{}) }, []string{"collected with a claim"}},
		"collected without a claim": {func(w *history) {
			w.change(cluster.CauseNode, 0)
			w.mounts[0] = nil
			w.deletes(&shims.Collect{})
		}, nil},
	} {
		w := newHistory(t, false)
		test.edit(w)
		w.judge.Still(start(), w.store.Snapshot(), []claimed.Machine{{Node: "n1", Mounts: w.mounts[0]}})
		must.Eq(t, test.want, w.checks(), must.Sprint(name))
	}
}

// deletes deletes a1 and its job, and passes the entry to the judge.
func (w *history) deletes(m shims.Message) {
	before, after := w.write(func(txn *statestore.Txn) {
		must.NoError(w.t, txn.DeleteJob(cluster.JobKey{Namespace: "default", ID: "web"}, true))
	})
	w.judge.Applied(start(), shims.Applied{Index: w.index, Before: before, After: after, Message: m})
}
