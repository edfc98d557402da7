package node

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/client"
	"github.com/seed-f9cf0b39/nodedrain/client/allocdir"
	"github.com/seed-f9cf0b39/nodedrain/client/config"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/plugin/machine/cgroup"
)

// deaf is a task that ignores the signals of a stop.
const deaf = "trap '' INT TERM; : >$READY; while :; do sleep 600 & wait; done"

// newOwned is newRawExec for a machine whose control groups have owners. It also returns the task's group.
func newOwned(t *testing.T, script string) (*world, *cgroup.Group) {
	t.Helper()
	w, _, _ := newRawExec(t, script)
	return w, w.owned(w.id)
}

// owned returns the control group of the task of an allocation. It skips the test where the group has no owner.
func (w *world) owned(alloc cluster.AllocID) *cgroup.Group {
	w.Helper()
	group, err := w.node.shell.tasks.group(alloc, "t")
	must.NoError(w, err)
	if group == nil {
		w.stop()
		w.Skip("!!! NOT RUN: this machine has no control groups")
	}
	w.Cleanup(func() { // also after a failure
		must.NoError(w, group.Kill(context.Background()))
		must.NoError(w, group.Wait(context.Background()))
		must.NoError(w, group.Remove(context.Background()))
	})
	if owner, err := group.Owner(); err != nil || owner == "" {
		w.stop()
		w.Skip("!!! NOT RUN: the control groups of this machine have no owners")
	}
	return group
}

// lives reports whether the group has processes.
func lives(t *testing.T, g *cgroup.Group) bool {
	t.Helper()
	populated, err := g.Populated()
	must.NoError(t, err)
	return populated
}

// lose deletes the records and the folders of all allocations.
func (w *world) lose() {
	w.Helper()
	for _, dir := range []string{recordsDir, allocsDir} {
		must.NoError(w, os.RemoveAll(filepath.Join(w.config.DataDir, dir)))
	}
}

// unlisted returns what the last registration contains.
func (s *scripted) unlisted() []cluster.AllocID {
	if n := len(s.registered); n > 0 && s.registered[n-1].Unlisted != nil {
		return s.registered[n-1].Unlisted.Allocs
	}
	return nil
}

// The records and the folders of a node are lost while its client is down, and the servers do not list the
// allocation. Bug: the client did not find the task, so a drain of the node was complete while it ran. Another
// client of the machine, which has its records, keeps its own task.
func TestNode_controlGroupWithoutARecord(t *testing.T) {
	t.Parallel()
	w, group := newOwned(t, deaf)
	other, stays := newOwned(t, deaf)
	w.stop()
	other.stop()
	w.lose()

	w.servers.set(func() { w.servers.registered = nil })
	w.begin()
	other.begin()
	w.await(func(s *scripted) bool { return len(s.registered) > 0 })
	w.servers.set(func() {
		must.Eq(t, []cluster.AllocID{w.id}, w.servers.registered[0].Unlisted.Allocs, must.Sprint("a drain counts it"))
	})
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 3, Complete: true}
	w.await(func(s *scripted) bool { return len(s.unlisted()) == 0 })
	must.False(t, lives(t, group), must.Sprint("the count falls when the task has ended"))
	w.eventually("the log keeper has ended", func() bool { return len(w.keepers()) == 0 })
	must.True(t, lives(t, stays))
	_, err := os.Stat(group.Path())
	must.ErrorIs(t, err, os.ErrNotExist)
	other.servers.set(func() {
		must.Eq(t, cluster.ClientRunning, other.servers.reported[other.id].ClientStatus)
	})
	w.stop()
	other.stopRawExec()
}

// A task whose record and folder are lost gets SIGINT and the default kill timeout, although the client has no
// driver at its start.
func TestNode_controlGroupWithoutARecord_grace(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "interrupted")
	w, group := newOwned(t, "trap 'echo >>"+mark+"; sleep 2; echo end >>"+mark+"; exit 0' INT; : >$READY; while :; do sleep 600 & wait; done")
	w.stop()
	w.lose()
	w.begin()
	w.eventually("the task has ended", func() bool { return !lives(t, group) })
	w.eventually("the log keeper has ended", func() bool { return len(w.keepers()) == 0 })
	text, err := os.ReadFile(mark)
	must.NoError(t, err)
	must.Eq(t, "\nend\n", string(text), must.Sprint("one signal, and the time to handle it"))
	w.stop()
}

// One task of an allocation without a record has a folder, and another one has only a control group. Bug: the groups of an
// allocation with folders were ignored, and their processes ran on.
func TestFindOrphans_folderAndGroup(t *testing.T) {
	t.Parallel()
	dirs, err := allocdir.Open(filepath.Join(t.TempDir(), "allocs"))
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, dirs.Close()) })
	must.NoError(t, dirs.Build("a", []allocdir.Task{{Name: "folder"}}))
	left := &leftovers{groups: map[cluster.AllocID][]string{"a": {"group"}}}
	found, err := findOrphans(dirs, left, "boot", quiet())
	must.NoError(t, err)
	must.SliceLen(t, 1, found.records)
	var names []string
	for i := range found.records[0].Tasks {
		names = append(names, found.records[0].Tasks[i].State.Name)
	}
	must.Eq(t, []string{"folder", "group"}, names)
}

// Destroy ends the tasks whose records and folders are lost. Bug: it removed the data directory, and the tasks
// ran on.
func TestDestroy_controlGroupWithoutARecord(t *testing.T) {
	t.Parallel()
	w, group := newOwned(t, deaf)
	other, stays := newOwned(t, deaf)
	w.stop()
	w.lose()
	must.NoError(t, Destroy(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}}, Removal{}))
	must.False(t, lives(t, group))
	must.True(t, lives(t, stays))
	must.NoError(t, os.MkdirAll(w.config.DataDir, 0o700)) // the test reads the records of plugins there
	other.stopRawExec()
}

// A client has the identity of a client that runs on the machine, as from an image, and none of its records. It
// does not touch the control groups of its node before the servers accept it.
func TestNode_cloneWithoutRecords(t *testing.T) {
	t.Parallel()
	w, group := newOwned(t, deaf)
	own := *w.config
	own.DataDir = t.TempDir()
	must.NoError(t, os.Chmod(own.DataDir, homeMode))
	content, err := os.ReadFile(filepath.Join(w.config.DataDir, identityFile))
	must.NoError(t, err)
	must.NoError(t, os.WriteFile(filepath.Join(own.DataDir, identityFile), content, 0o600))
	servers := &occupied{scripted: &scripted{ttl: time.Minute}, refusals: 1 << 30, refused: make(chan struct{}, 1)}
	ctx, end := context.WithCancel(t.Context())
	opened := make(chan error, 1)
	go func() {
		_, err := Open(ctx, Options{Config: &own, LogKeeper: []string{"logkeeper"}, Servers: servers, nodeLocks: t.TempDir()}) // like in a container
		opened <- err
	}()
	<-servers.refused
	end()
	must.ErrorContains(t, <-opened, "waiting for the servers to accept this client")
	must.True(t, lives(t, group))
	w.stopRawExec()
}

// notes collects the log of a client.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

// A control group of an older client has no owner. A client with the record of its task writes it. Without
// record and folder nothing shows whose task it is: the client names the group in its log, and does not touch
// it. The same holds for a group whose owner names another task.
func TestNode_controlGroupWithoutAnOwner(t *testing.T) {
	t.Parallel()
	w, group := newOwned(t, deaf)
	own, err := group.Owner()
	must.NoError(t, err)
	w.stop()
	must.NoError(t, group.SetOwner(""))
	w.begin()
	claimed, err := group.Owner()
	must.NoError(t, err)
	must.Eq(t, own, claimed)
	w.stop()
	w.lose()
	for _, owner := range []string{"", own + "x"} {
		must.NoError(t, group.SetOwner(owner))
		log := &notes{}
		n, err := Open(t.Context(), Options{Config: w.config, LogKeeper: []string{"logkeeper"}, Servers: w.api, Logger: slog.New(slog.NewTextHandler(log, nil))})
		must.NoError(t, err)
		must.Zero(t, n.core.Facts().Unlisted.Count)
		must.NoError(t, n.Close())
		must.True(t, lives(t, group))
		var names []string
		for line := range strings.Lines(log.text.String()) {
			if strings.Contains(line, "do not name their node") {
				names = append(names, line)
			}
		}
		must.SliceLen(t, 1, names)
	}
	w.killKeepers() // the client does not touch what may not be its own
}

// The log keeper of a task whose record and folder are lost ends with the task.
func TestNode_logKeeperWithoutAFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]config.Plugin{"mock": {Name: "mock", Enabled: true}})
	w.begin()
	w.awaitMock()
	alloc := w.alloc(cluster.AllocID(uuid.NewString()), `{}`)
	w.servers.feed <- client.Changes{ClusterID: "c", Index: 2, Allocs: []*cluster.Allocation{alloc}}
	w.awaitStatus(alloc.ID, cluster.ClientRunning)
	w.owned(alloc.ID)
	w.stop()
	must.SliceLen(t, 1, w.keepers())
	w.lose()
	w.begin()
	w.eventually("the log keeper has ended", func() bool { return len(w.keepers()) == 0 })
	w.stop()
}
