package drainer

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// StateReader is a state store as the drainer reads it.
type StateReader interface {
	// Snapshot returns the newest view. It never blocks.
	Snapshot() rules.View
	// Subscribe returns a feed of the changes from now on. After each commit with a change for
	// the feed, the store sends to wake without blocking. The subscriber closes the feed.
	//
	// When the store is replaced, it sends to wake of every open feed. In a store that was replaced
	// before, Subscribe sends to wake: the feed of a late subscriber reports [Changes].Abandoned too.
	Subscribe(wake chan<- struct{}) Feed
}

// Feed collects for one subscriber where the state has changed. It only names what to read. A feed
// that names too much costs time. A feed that names too little stalls drains.
//
// A feed names
//   - a node: it drains, or did before the commit, and its row changed;
//   - a host: a node that drains, or did before the commit, and one of its allocations changed, or
//     the answer of [rules.VolumeView] changed for an allocation that the drain leaves; it may be
//     named as a node;
//   - a group: one of its allocations changed, and the allocation's node drains
//     or the job is followed; or the job is followed, the group has an
//     allocation that is not client-terminal on some node, and that node was
//     deleted or registered, or became reachable or unreachable;
//   - a job: it is followed, and it or one of its evaluations changed.
//
// All methods are safe for concurrent use and none blocks.
type Feed interface {
	// Take returns the changes since the last Take, and forgets them. It does not forget
	// [Changes].Abandoned: once set, it is set at every Take.
	Take() Changes
	// Follow adds a job whose changes the feed names, from the next commit on. Take a snapshot
	// after Follow to miss nothing. Follows are counted.
	Follow(cluster.JobKey)
	// Unfollow removes one Follow.
	Unfollow(cluster.JobKey)
	// Close ends the feed. Nothing is sent to wake afterwards.
	Close()
}

// Changes names what to read. Its slices have no order, belong to the caller of Take, may be nil,
// and may name an item twice. [Feed] describes what each holds.
type Changes struct {
	// All means that anything may have changed: read everything. A store without a real feed sets
	// it after every change.
	All bool
	// Abandoned means that the store was replaced and will never change again. The drainer decides
	// nothing from it after that. It is set at each Take from then on, also in feeds that are opened
	// later.
	Abandoned bool
	Nodes     []cluster.NodeID
	Hosts     []cluster.NodeID
	Groups    []cluster.GroupKey
	Jobs      []cluster.JobKey
}

// Empty reports whether nothing has changed.
func (c Changes) Empty() bool {
	return !c.All && !c.Abandoned && len(c.Nodes) == 0 && len(c.Hosts) == 0 && len(c.Groups) == 0 && len(c.Jobs) == 0
}

// maxChanges bounds the changes that no step has planned from. Beyond it, they become All.
const maxChanges = 1 << 14

// merge adds the changes of o.
func (c *Changes) merge(o Changes) {
	if len(c.Nodes)+len(c.Hosts)+len(c.Groups)+len(c.Jobs) > maxChanges {
		*c = Changes{All: true, Abandoned: c.Abandoned}
	}
	c.All = c.All || o.All
	c.Abandoned = c.Abandoned || o.Abandoned
	c.Nodes = append(c.Nodes, o.Nodes...)
	c.Hosts = append(c.Hosts, o.Hosts...)
	c.Groups = append(c.Groups, o.Groups...)
	c.Jobs = append(c.Jobs, o.Jobs...)
}
