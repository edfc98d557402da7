package client

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/client/presence"
)

// agreement decides which answers of the servers the node obeys. The zero value has had no answer.
type agreement struct {
	core *Core
	// cluster and index are from the newest answer. cluster is empty if the node has no cluster yet.
	cluster string
	index   uint64
	// foreign logs that the servers belong to another cluster.
	foreign presence.Outage
	// ignoring: the last answer was of another cluster. Other goroutines read it.
	ignoring atomic.Bool
}

// accepts reports whether the node obeys an answer. It does not obey an answer of another cluster than
// that of its allocations, and changes that are older than the last answer. An older answer with all
// allocations shows that the servers have lost entries, and the node obeys it. If nothing of its cluster
// is left, the node joins the cluster of an answer with all its allocations.
func (g *agreement) accepts(w Changes) bool {
	logger := g.core.options.Logger
	switch {
	case w.ClusterID == g.cluster:
	case g.cluster == "":
		g.cluster = w.ClusterID
	case w.All && g.idle():
		logger.Warn("the servers belong to another cluster, and the node has nothing of its own cluster left: it joins the other cluster",
			"cluster", g.cluster, "servers", w.ClusterID)
		g.cluster, g.index = w.ClusterID, 0
	default:
		g.note(true)
		relist(g.core, Changes{}, nil)
		if lasting, log := g.foreign.Failed(g.core.now.Wall); log {
			logger.Error("the servers belong to another cluster: the client ignores them and keeps its allocations running; "+
				"the node joins the other cluster when all of them have ended; to end them, run \"nodedrain client -config FILE -destroy\"",
				"cluster", g.cluster, "servers", w.ClusterID, "ignoring_for", lasting.Round(time.Second))
		}
		return false
	}
	g.note(false)
	g.foreign.Succeeded(g.core.now.Wall)
	if w.Index < g.index {
		if !w.All {
			return false
		}
		logger.Warn("the servers have lost entries and continue from an older state: the client registers allocations that this state does not have, and stops them",
			"index", w.Index, "before", g.index)
	}
	g.index = w.Index
	return true
}

func (g *agreement) note(foreign bool) {
	g.ignoring.Store(foreign)
	g.core.drivers.setForeign(foreign)
}

// idle reports whether all allocations have ended and no volume is on the node.
func (g *agreement) idle() bool {
	c := g.core
	live := slices.ContainsFunc(c.allocs, func(a *allocRunner) bool { return !a.rec.Ended || a.rec.VolumesLeft })
	return !live && (c.volumes == nil || len(c.volumes.Allocs()) == 0)
}

// ClusterOf returns the cluster of a node's records, or empty if they name none. Records of ended
// allocations count only if there are no others: the node may have left their cluster.
func ClusterOf(records []*Record) (id string) {
	for _, r := range records {
		switch {
		case r.ClusterID == "":
		case !r.Ended || r.VolumesLeft:
			return r.ClusterID
		case id == "":
			id = r.ClusterID
		}
	}
	return id
}
