package drainer

import (
	"maps"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/inbox"
)

// tracker is the term's [NodeTracker]. It keeps the node watcher's posts until the next step.
type tracker struct {
	mu      sync.Mutex
	tracked map[cluster.NodeID]cluster.Revision // guarded by mu
	posts   inbox.Inbox[trackPost]
}

// trackPost is an Update, or a Remove if node is nil.
type trackPost struct {
	id   cluster.NodeID
	node *cluster.Node // or nil
}

func (t *tracker) TrackedNodes() []cluster.NodeID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.tracked))
}

func (t *tracker) Tracked(id cluster.NodeID) (cluster.Revision, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	revision, tracked := t.tracked[id]
	return revision, tracked
}

func (t *tracker) Update(n *cluster.Node) {
	if !n.Draining() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracked[n.ID] = n.Drain.Revision
	t.posts.Post(trackPost{id: n.ID, node: n})
}

func (t *tracker) Remove(id cluster.NodeID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tracked, id)
	t.posts.Post(trackPost{id: id})
}
