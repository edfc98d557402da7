package agent_test

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/httpapi"
	apiclient "github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/internal/clustertest"
	"github.com/seed-f9cf0b39/nodedrain/internal/result"
	"github.com/seed-f9cf0b39/nodedrain/server/agent"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/archive"
	"github.com/seed-f9cf0b39/nodedrain/server/agent/datadir"
	"github.com/seed-f9cf0b39/nodedrain/statestore"
)

// versioned waits until the cluster has its newest version.
func versioned(t *testing.T, a *agent.Agent) {
	t.Helper()
	eventually(t, "the newest cluster version", func() bool {
		return a.Server().Store().Snapshot().ClusterVersion() == cluster.MaxVersion
	})
}

// persisted returns a function that persists the state of a store.
func persisted(s *statestore.Store) func(io.Writer) error {
	return func(w io.Writer) error { return statestore.Persist(w, s.Snapshot()) }
}

func dumpOf(t *testing.T, s *statestore.Snapshot) string {
	t.Helper()
	var b strings.Builder
	must.NoError(t, statestore.Dump(&b, s))
	return b.String()
}

// A saved state replaces a newer one on all servers. What was written later is gone, the drain that
// ran then runs again with its deadline, waiting readers see it, and the servers go on from there,
// also after a restart.
func TestCluster_restoresASavedState(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	leader := w.leader()
	versioned(t, leader)
	follower := w.others(leader)[0]
	write := func(from, to int) {
		for i := from; i < to; i++ {
			register(t, api(t, follower), testNode(i))
		}
	}
	write(0, 10)
	result.Of(leader.Backend().Writer.RegisterJob(t.Context(), clustertest.Job("web", cluster.JobService, 1), cluster.JobRegistration{})).OK(t)
	var placed *cluster.Allocation // its client never reports, so a drain of its node waits
	eventually(t, "an allocation", func() bool {
		for one := range w.leader().Server().Store().Snapshot().Allocs() {
			placed = one
		}
		return placed != nil
	})
	drain := func(spec *cluster.DrainSpec) {
		result.Of(w.leader().Backend().Writer.UpdateDrain(t.Context(), cluster.DrainUpdate{Node: placed.NodeID, Spec: spec})).OK(t)
	}
	drain(&cluster.DrainSpec{Deadline: time.Hour})

	var saved bytes.Buffer
	must.NoError(t, apiclient.SaveSnapshot(t.Context(), api(t, follower), false, &saved))
	var before *statestore.Snapshot
	meta := result.Of(archive.Read(bytes.NewReader(saved.Bytes()), func(_ archive.Meta, state io.Reader) error {
		store, err := statestore.Restore(state)
		before = store.Snapshot()
		return err
	})).OK(t)
	must.Eq(t, before.Index(), meta.Index)

	write(10, 20)
	drain(nil)
	result.Of(w.leader().Backend().Writer.PurgeNode(t.Context(), testNode(1).ID)).OK(t)
	newest := w.leader().Server().Store().Snapshot().Index()
	woken := make(chan error, 1)
	go func() {
		_, _, err := api(t, follower).Nodes(t.Context(), apiclient.NodesQuery{Query: apiclient.Query{Index: newest}})
		woken <- err
	}()

	index := result.Of(apiclient.RestoreSnapshot(t.Context(), api(t, follower), bytes.NewReader(saved.Bytes()))).OK(t)
	must.Greater(t, newest, index)
	must.NoError(t, <-woken)
	awaitSameState(t, w.agents...)
	state := w.leader().Server().Store().Snapshot()
	must.NotNil(t, state.Node(testNode(1).ID))
	must.Nil(t, state.Node(testNode(15).ID))
	must.GreaterEq(t, index, state.Index())
	running := state.Node(placed.NodeID).Drain
	must.NotNil(t, running)
	must.True(t, running.Strategy.ForceDeadline.Equal(before.Node(placed.NodeID).Drain.Strategy.ForceDeadline))

	write(20, 25) // and the cluster goes on
	awaitSameState(t, w.agents...)
	stopped := w.others(w.leader())[0]
	must.NoError(t, stop(stopped))
	rest := w.others(stopped)
	register(t, api(t, w.leader(rest...)), testNode(25))
	back := start(t, agent.Config{DataDir: dirs[stopped.Name()], ServerAddr: stopped.ServerAddr()})
	ready(t, back)
	awaitSameState(t, w.leader(rest...), back)
	must.NotNil(t, back.Server().Store().Snapshot().Node(testNode(25).ID))
}

// A restore refuses a file that is damaged, cut, foreign or of another version, with an error that names the
// reason, and changes nothing.
func TestCluster_refusesBadSnapshots(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	versioned(t, a)
	c := api(t, a)
	for i := range 20 {
		register(t, c, testNode(i))
	}
	var whole bytes.Buffer
	must.NoError(t, apiclient.SaveSnapshot(t.Context(), c, true, &whole))
	damaged := bytes.Clone(whole.Bytes())
	damaged[len(damaged)/2] ^= 0x10
	file := func(v cluster.Version, persist func(io.Writer) error) []byte {
		var b bytes.Buffer
		must.NoError(t, archive.Write(&b, archive.Meta{ClusterVersion: v, Time: time.Now()}, persist))
		return b.Bytes()
	}
	last := statestore.New()
	last.Advance(math.MaxUint64-1, cluster.MaxVersion)
	before := dumpOf(t, a.Server().Store().Snapshot())
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"cut":                 {whole.Bytes()[:whole.Len()-100], "it is incomplete"},
		"damaged":             {damaged, "not a usable snapshot"},
		"foreign":             {[]byte("hello, hello, hello"), "of another program"},
		"newer cluster":       {file(cluster.MaxVersion+1, persisted(statestore.New())), "upgrade this server to a build that understands cluster version"},
		"no indexes are left": {file(cluster.MaxVersion, persisted(last)), "its index is 18446744073709551614"},
		"not really a state":  {file(cluster.MaxVersion, func(w io.Writer) error { _, err := w.Write([]byte("not a state")); return err }), "restoring the state"},
	} {
		_, err := apiclient.RestoreSnapshot(t.Context(), api(t, a), bytes.NewReader(c.file))
		must.ErrorContains(t, err, "Unexpected response code: 400 (the snapshot was refused, and nothing has changed: ", must.Sprint(name))
		must.ErrorContains(t, err, c.want, must.Sprint(name))
	}
	must.Eq(t, before, dumpOf(t, a.Server().Store().Snapshot()))

	// A state of an older cluster gets the version of this one.
	result.Of(apiclient.RestoreSnapshot(t.Context(), api(t, a), bytes.NewReader(file(1, persisted(statestore.New()))))).OK(t)
	must.Eq(t, cluster.MaxVersion, a.Server().Store().Snapshot().ClusterVersion())
	result.Of(apiclient.RestoreSnapshot(t.Context(), c, &whole)).OK(t)
}

// isolatedRestore saves the state, writes more, and restores the saved state on a leader that the
// network cuts off. It returns the leader and the error of the restore.
func isolatedRestore(t *testing.T, w *servers) (leader *agent.Agent, outcome <-chan error) {
	t.Helper()
	leader = w.leader()
	versioned(t, leader)
	register(t, api(t, leader), testNode(1))
	var saved bytes.Buffer
	must.NoError(t, apiclient.SaveSnapshot(t.Context(), api(t, leader), false, &saved))
	register(t, api(t, leader), testNode(2))
	before := leader.Server().Store()
	done := make(chan error, 1)
	w.network.isolate(leader, true)
	go func() {
		_, err := leader.Backend().Snapshots.Restore(t.Context(), &saved)
		done <- err
	}()
	eventually(t, "the restored state", func() bool { return leader.Server().Store() != before })
	return leader, done
}

// A leader is cut off while it restores, and the others elect one that has the old state. Raft does
// not take the restored state back: it would send entries for ever, or the old leader would skip them.
// So the old leader fails with an error that names the remedy, and does not start again.
func TestCluster_aLeaderIsLostDuringARestore(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir(), "s3": t.TempDir()}
	w := newServers(t, 3, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	old, outcome := isolatedRestore(t, w)
	rest := w.others(old)
	register(t, api(t, w.leader(rest...)), testNode(3))
	w.network.isolate(old, false)

	must.ErrorContains(t, <-outcome, "another server has become the leader while this one restored a saved state")
	<-old.Failed()
	must.ErrorContains(t, old.Err(), "recover -discard")
	must.NoError(t, stop(old))
	_, err := agent.New(agent.Config{DataDir: dirs[old.Name()], HTTPAddr: "127.0.0.1:0", ServerAddr: "127.0.0.1:0"})
	must.ErrorIs(t, err, datadir.ErrUnsafe)
	must.ErrorContains(t, err, "was stopped while it restored a saved state")

	leader := w.leader(rest...)
	must.NoError(t, leader.Backend().Peers.Remove(t.Context(), old.Name()))
	result.Of(datadir.Discard(dirs[old.Name()], time.Now())).OK(t)
	again := start(t, agent.Config{Name: "s4", DataDir: dirs[old.Name()], Join: []string{leader.ServerAddr()}})
	ready(t, again)
	awaitSameState(t, append(rest, again)...)
	must.NotNil(t, again.Server().Store().Snapshot().Node(testNode(3).ID))
}

// A leader is cut off while it restores, and no other server can lead without it. It leads again, and
// all servers get the restored state.
func TestCluster_aRestoreContinuesAfterAnInterruption(t *testing.T) {
	t.Parallel()
	dirs := map[string]string{"s1": t.TempDir(), "s2": t.TempDir()}
	w := newServers(t, 2, func(c *agent.Config) { c.DataDir = dirs[c.Name] })
	leader, outcome := isolatedRestore(t, w)
	eventually(t, "the loss of leadership", func() bool { return !leader.Server().Leads() })
	w.network.isolate(leader, false)
	must.NoError(t, <-outcome)
	awaitSameState(t, w.agents...)
	must.Nil(t, w.leader().Server().Store().Snapshot().Node(testNode(2).ID))
	must.NoError(t, stop(leader))
	ready(t, w.start(agent.Config{DataDir: dirs[leader.Name()], ServerAddr: leader.ServerAddr()}))
}

// A second restore is refused at once while the first one still reads its file. The next one may run.
func TestRestore_oneAtATime(t *testing.T) {
	t.Parallel()
	a := start(t, agent.Config{BootstrapExpect: 1})
	ready(t, a)
	restore := a.Backend().Snapshots.Restore
	file, upload := io.Pipe()
	first := make(chan error, 1)
	go func() {
		_, err := restore(t.Context(), file)
		first <- err
	}()
	_, err := upload.Write([]byte{0}) // returns when the first one reads
	must.NoError(t, err)
	_, err = restore(t.Context(), strings.NewReader("not read"))
	must.ErrorIs(t, err, httpapi.ErrUnavailable)
	must.ErrorContains(t, err, "another restore is running")
	must.NoError(t, upload.Close())
	must.ErrorIs(t, <-first, httpapi.ErrBadSnapshot)
	_, err = restore(t.Context(), strings.NewReader("read"))
	must.ErrorIs(t, err, httpapi.ErrBadSnapshot)
}

// A server that was killed during a save or a restore leaves a file with the secrets of nodes. The
// next start removes it, and nothing else.
func TestStart_removesScratchFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.NoError(t, os.Chmod(dir, 0o700)) // as a server makes it
	left, kept := filepath.Join(dir, "snapshot-123.tmp"), filepath.Join(dir, "snapshot-of-monday")
	for _, path := range []string{left, kept} {
		must.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	}
	ready(t, start(t, agent.Config{BootstrapExpect: 1, DataDir: dir}))
	_, err := os.Stat(left)
	must.ErrorIs(t, err, os.ErrNotExist)
	result.Of(os.Stat(kept)).OK(t)
}
