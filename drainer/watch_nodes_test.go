package drainer

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// told is a NodeTracker that notes what it is told.
type told struct {
	tracked map[cluster.NodeID]cluster.Revision
	calls   []string
}

func (n *told) TrackedNodes() []cluster.NodeID { return slices.Sorted(maps.Keys(n.tracked)) }

func (n *told) Tracked(id cluster.NodeID) (cluster.Revision, bool) {
	revision, ok := n.tracked[id]
	return revision, ok
}

func (n *told) Update(node *cluster.Node) {
	n.calls = append(n.calls, fmt.Sprintf("update %s to %d", node.ID, node.Drain.Revision))
}

func (n *told) Remove(id cluster.NodeID) { n.calls = append(n.calls, fmt.Sprintf("remove %s", id)) }

func TestNodeWatcher(t *testing.T) {
	t.Parallel()
	n1 := Changes{Nodes: []cluster.NodeID{"n1", "n1"}}
	for name, test := range map[string]struct {
		edit    func(*town)
		tracked map[cluster.NodeID]cluster.Revision
		changes Changes
		want    []string
	}{
		"starts to drain":           {func(w *town) { w.drain("n1", 0) }, nil, n1, []string{"update n1 to 7"}},
		"its strategy changes":      {func(w *town) { w.drain("n1", 0) }, map[cluster.NodeID]cluster.Revision{"n1": 6}, n1, []string{"update n1 to 7"}},
		"something else of it does": {func(w *town) { w.drain("n1", 0) }, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, nil},
		"cancelled":                 {nil, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, []string{"remove n1"}},
		"deleted":                   {func(w *town) { w.nodes = nil }, map[cluster.NodeID]cluster.Revision{"n1": 7}, n1, []string{"remove n1"}},
		"none of our business":      {nil, nil, n1, nil},
		"a node nobody knows":       {nil, nil, Changes{Nodes: []cluster.NodeID{"n9"}}, nil},
		"not told of":               {func(w *town) { w.drain("n1", 0) }, nil, Changes{Groups: []Told[cluster.GroupKey]{{Key: web}}}, nil},
		"anything may have changed": {
			func(w *town) { w.drain("n1", 0); w.drain("n3", 0) },
			map[cluster.NodeID]cluster.Revision{"n2": 5, "n3": 7, "gone": 1}, Changes{All: true},
			[]string{"remove gone", "update n1 to 7", "remove n2"},
		},
		"a tracker that has forgotten": {func(w *town) { w.drain("n1", 0) }, nil, Changes{All: true}, []string{"update n1 to 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTown(3, 0)
			if test.edit != nil {
				test.edit(w)
			}
			tracker := &told{tracked: test.tracked}
			watcher := NewNodeWatcher(Env{Logger: hclog.NewNullLogger()}, tracker)
			wakeAt := watcher.Step(Look{Now: epoch, View: w, Changes: test.changes})
			must.True(t, wakeAt.IsZero(), must.Sprint("it never wants a timer"))
			must.Eq(t, test.want, tracker.calls)
		})
	}
}

// What the term's tracker is told takes effect at its next step, in order.
func TestTracker(t *testing.T) {
	t.Parallel()
	tr := &tracker{tracked: map[cluster.NodeID]cluster.Revision{}}
	w := newTown(2, 0)
	w.drain("n1", 0)
	tr.Update(w.node("n1"))
	tr.Update(w.node("n2")) // does not drain: nothing to track
	tr.Update(nil)
	must.Eq(t, []cluster.NodeID{"n1"}, tr.TrackedNodes())
	revision, known := tr.Tracked("n1")
	must.True(t, known)
	must.Eq(t, 7, revision)
	tr.Remove("n1")
	_, known = tr.Tracked("n1")
	must.False(t, known)
	posts := tr.take()
	must.Len(t, 2, posts)
	must.Eq(t, w.node("n1"), posts[0].node)
	must.Nil(t, posts[1].node)
	must.SliceEmpty(t, tr.take())
}
