package drainer

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
)

// recordingTracker is a NodeTracker that records its calls.
type recordingTracker struct {
	tracked map[cluster.NodeID]cluster.Revision
	calls   []string
}

func (n *recordingTracker) TrackedNodes() []cluster.NodeID {
	return slices.Sorted(maps.Keys(n.tracked))
}

func (n *recordingTracker) Tracked(id cluster.NodeID) (cluster.Revision, bool) {
	revision, ok := n.tracked[id]
	return revision, ok
}

func (n *recordingTracker) Update(node *cluster.Node) {
	n.calls = append(n.calls, fmt.Sprintf("update %s to %d", node.ID, node.Drain.Revision))
}

func (n *recordingTracker) Remove(id cluster.NodeID) {
	n.calls = append(n.calls, fmt.Sprintf("remove %s", id))
}

func TestNodeWatcher(t *testing.T) {
	t.Parallel()
	n1 := Changes{Nodes: []cluster.NodeID{"n1", "n1"}}
	for name, test := range map[string]struct {
		edit    func(*fixture.Cluster)
		tracked map[cluster.NodeID]cluster.Revision
		changes Changes
		want    []string
	}{
		"starts to drain":       {func(w *fixture.Cluster) { w.StartDrain("n1", 0) }, nil, n1, []string{"update n1 to 7"}},
		"its strategy changes":  {func(w *fixture.Cluster) { w.StartDrain("n1", 0) }, map[cluster.NodeID]cluster.Revision{"n1": 6}, n1, []string{"update n1 to 7"}},
		"another field changes": {func(w *fixture.Cluster) { w.StartDrain("n1", 0) }, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, nil},
		"cancelled":             {nil, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, []string{"remove n1"}},
		"deleted":               {func(w *fixture.Cluster) { w.Nodes = nil }, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, []string{"remove n1"}},
		"does not drain":        {nil, nil, n1, nil},
		"an unknown node":       {nil, nil, Changes{Nodes: []cluster.NodeID{"n9"}}, nil},
		"not reported":          {func(w *fixture.Cluster) { w.StartDrain("n1", 0) }, nil, Changes{Groups: []cluster.GroupKey{fixture.Group}}, nil},
		"anything may have changed": {
			func(w *fixture.Cluster) { w.StartDrain("n1", 0); w.StartDrain("n3", 0) },
			map[cluster.NodeID]cluster.Revision{"n2": 5, "n3": 7, "gone": 1}, Changes{All: true},
			[]string{"remove gone", "update n1 to 7", "remove n2"},
		},
		"a tracker that lost the node": {func(w *fixture.Cluster) { w.StartDrain("n1", 0) }, nil, Changes{All: true}, []string{"update n1 to 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(3, 0)
			if test.edit != nil {
				test.edit(w)
			}
			tracker := &recordingTracker{tracked: test.tracked}
			watcher := NewNodeWatcher(Env{Logger: slog.New(slog.DiscardHandler)}, tracker)
			wakeAt := watcher.Step(Reading{Now: fixture.Epoch, View: w, Changes: test.changes})
			must.True(t, wakeAt.IsZero(), must.Sprint("it never needs a timer"))
			must.Eq(t, test.want, tracker.calls)
		})
	}
}

// Updates and removals are taken in order, once.
func TestTracker(t *testing.T) {
	t.Parallel()
	tr := &tracker{tracked: map[cluster.NodeID]cluster.Revision{}}
	w := fixture.NewCluster(2, 0)
	w.StartDrain("n1", 0)
	tr.Update(w.Node("n1"))
	tr.Update(w.Node("n2")) // does not drain: nothing to track
	tr.Update(nil)
	must.Eq(t, []cluster.NodeID{"n1"}, tr.TrackedNodes())
	revision, tracked := tr.Tracked("n1")
	must.True(t, tracked)
	must.Eq(t, 7, revision)
	tr.Remove("n1")
	_, tracked = tr.Tracked("n1")
	must.False(t, tracked)
	posts := tr.posts.Take()
	must.Len(t, 2, posts)
	must.Eq(t, w.Node("n1"), posts[0].node)
	must.Nil(t, posts[1].node)
	must.SliceEmpty(t, tr.posts.Take())
}

// The end of a drain is logged as what happened. Each end was logged as "node no longer drains".
func TestTerm_LogsTheEndOfADrain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end  func(*fixture.Cluster)
		want string
	}{
		"complete": {func(w *fixture.Cluster) {
			w.Node("n1").Drain, w.Node("n1").LastDrain = nil, &cluster.DrainMetadata{Status: cluster.DrainStatusComplete}
		}, "INFO drain ended node=n1 name=node-1 drain=d-n1"},
		"cancelled": {func(w *fixture.Cluster) {
			w.Node("n1").Drain, w.Node("n1").LastDrain = nil, &cluster.DrainMetadata{Status: cluster.DrainStatusCanceled}
		}, "INFO drain was cancelled node=n1 name=node-1 drain=d-n1"},
		"without a row that shows how": {func(w *fixture.Cluster) { w.Node("n1").Drain = nil }, "INFO drain ended node=n1 name=node-1 drain=d-n1"},
		"the node is deleted":          {func(w *fixture.Cluster) { w.Nodes = w.Nodes[1:] }, "INFO drain ended: the node was deleted node=n1 name= drain=d-n1"},
		"another drain": {func(w *fixture.Cluster) {
			d := *w.Node("n1").Drain
			d.ID, d.Revision = "d2", 12
			w.Node("n1").Drain = &d
		}, "INFO drain ended, and another of its node has begun node=n1 drain=d-n1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := fixture.NewCluster(2, 1)
			w.TaskGroup().Migrate.MaxParallel = 0 // so that nothing moves
			w.StartDrain("n1", 0)
			written := &journal{}
			r := newHarness(t, w, func(c *NodeDrainerConfig) { c.Logger = slog.New(written) })
			r.settle()
			before := len(written.lines)
			r.commit(test.end)
			r.settle()
			must.Eq(t, test.want, written.lines[before])
		})
	}
}
