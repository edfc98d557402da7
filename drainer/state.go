package drainer

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// StateReader is a state store as the drainer reads it.
type StateReader interface {
	// Snapshot returns the newest view. It never blocks.
	Snapshot() rules.View
	// Subscribe returns a feed of what changes from now on. After each commit
	// that the feed has something to tell of, the store sends to wake without
	// blocking. The subscriber closes the feed.
	Subscribe(wake chan<- struct{}) Feed
}

// Feed gathers, for one subscriber, where the state has changed. It carries
// hints of where to look, never the evidence: a feed that tells too much costs
// time, one that tells too little stalls drains.
//
// A feed tells of
//   - a node: it drains, or did before the commit, and its row changed;
//   - a host: a node that drains, or did before the commit, and one of its
//     allocations changed; it may be told as a node;
//   - a group: one of its allocations changed, and the allocation's node drains
//     or the job is followed; or the job is followed, the group has an
//     allocation that is not client-terminal on some node, and that node was
//     deleted or registered, became reachable or ceased to be;
//   - a job: it is followed, and it or one of its evaluations changed.
//
// All methods are safe for concurrent use and none blocks.
type Feed interface {
	// Take returns what has changed since the last Take, and forgets it.
	Take() Changes
	// Follow asks to be told of a job, from the next commit on. Take a snapshot
	// after it to miss nothing. Follows are counted.
	Follow(cluster.JobKey)
	// Unfollow takes back one Follow.
	Unfollow(cluster.JobKey)
	// Close ends the feed. Nothing is sent to wake afterwards.
	Close()
}

// Changes says where to look. Its slices are in no order, belong to the taker,
// and may be nil; they may name something twice. What each holds is said at [Feed].
type Changes struct {
	// All says that anything may have changed: look everywhere. A store without
	// a feed of its own says so at every change.
	All bool
	// Abandoned says that the store was replaced and will never change again:
	// stop deciding from it.
	Abandoned bool
	Nodes     []cluster.NodeID
	Hosts     []cluster.NodeID
	Groups    []cluster.GroupKey
	Jobs      []cluster.JobKey
}

// Empty reports whether there is nothing to look at.
func (c Changes) Empty() bool {
	return !c.All && !c.Abandoned && len(c.Nodes) == 0 && len(c.Hosts) == 0 && len(c.Groups) == 0 && len(c.Jobs) == 0
}

// maxChanges bounds what is remembered of changes that were not looked at: past
// it, everything is.
const maxChanges = 1 << 14

// merge adds what is told in o.
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
