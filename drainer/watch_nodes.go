package drainer

import (
	"log/slog"
	"slices"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// nodeWatcher is the built-in [DrainingNodeWatcher]. It has no memory of its own: the tracker has
// the tracked nodes. So a tracker that has lost a node gets it again.
type nodeWatcher struct {
	logger  *slog.Logger
	tracker NodeTracker // never nil
}

// NewNodeWatcher is the [DrainingNodeWatcherFactory] of the built-in watcher.
func NewNodeWatcher(env Env, tracker NodeTracker) DrainingNodeWatcher {
	return &nodeWatcher{logger: env.Logger, tracker: tracker}
}

// Step compares the nodes that may have changed with the tracked nodes. It never needs a timer.
func (w *nodeWatcher) Step(reading Reading) time.Time {
	if !reading.Changes.All && len(reading.Changes.Nodes) == 0 {
		return time.Time{}
	}
	for _, id := range w.suspects(reading) {
		node := reading.View.Node(id)
		revision, tracked := w.tracker.Tracked(id)
		switch {
		case node.Draining() && (!tracked || revision != node.Drain.Revision):
			w.logger.Debug("node drains", "node", id, "drain", node.Drain.ID, "revision", node.Drain.Revision)
			w.tracker.Update(node)
		case tracked && !node.Draining():
			w.logger.Debug("node no longer drains", "node", id, "deleted", node == nil)
			w.tracker.Remove(id)
		}
	}
	return time.Time{}
}

// suspects are the nodes that may differ from the tracked ones, by id.
func (w *nodeWatcher) suspects(reading Reading) []cluster.NodeID {
	ids := slices.Clone(reading.Changes.Nodes)
	if reading.Changes.All {
		ids = w.tracker.TrackedNodes()
		for n := range reading.View.DrainingNodes() {
			ids = append(ids, n.ID)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
