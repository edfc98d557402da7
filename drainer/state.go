package drainer

import (
	"iter"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// View is one consistent state of the cluster. Nothing it returns may be written
// to. Everything it yields comes in a fixed order, given with each method: the
// order is part of every decision, and decisions must be the same on every
// server.
//
// Every method must cost what it returns, whatever else the state holds; a view
// without such indexes is correct but slow.
type View interface {
	// Index is the raft index of the newest entry in the view.
	Index() uint64
	// Node returns the node, or nil.
	Node(cluster.NodeID) *cluster.Node
	// DrainingNodes yields the nodes that drain, by id.
	DrainingNodes() iter.Seq[*cluster.Node]
	// Job returns the current version of the job, or nil.
	Job(cluster.JobKey) *cluster.Job
	// Alloc returns the allocation, or nil.
	Alloc(cluster.AllocID) *cluster.Allocation
	// NodeAllocs yields the allocations of a node that belong to the stage and
	// are not client-terminal, by id: those already asked to leave
	// ([cluster.Allocation.Asked]) or those not asked.
	NodeAllocs(n cluster.NodeID, s cluster.Stage, asked bool) iter.Seq[*cluster.Allocation]
	// Consumers counts the node's allocations of [cluster.StageConsumers] that
	// are not client-terminal.
	Consumers(cluster.NodeID) int
	// GroupAllocs yields, by id, the group's allocations that are not
	// client-terminal, and its canaries that a drain marked, that are
	// client-terminal, and that have no replacement.
	GroupAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// RestlessAllocs yields, by [cluster.Allocation.Unrest] and then by id, those of
	// GroupAllocs that are on a node which drains, or are not at rest: what a drainer
	// has to look at one by one. It must cost what is taken of it: who judges a mark
	// gives up early. What [cluster.Allocation.Bare] leaves out is not read, and may be
	// missing.
	RestlessAllocs(cluster.GroupKey) iter.Seq[*cluster.Allocation]
	// Healthy counts the group's allocations that count towards its budget,
	// wherever they are ([cluster.Allocation.Healthy]).
	Healthy(cluster.GroupKey) int
	// DrainAllocs yields the allocations the drain has marked, whatever became
	// of them, by id.
	DrainAllocs(cluster.DrainID) iter.Seq[*cluster.Allocation]
	// OpenEvals yields the job's evaluations that are pending or blocked, by
	// creation index, then id.
	OpenEvals(cluster.JobKey) iter.Seq[*cluster.Evaluation]
}

// StateReader is a state store as the drainer reads it.
type StateReader interface {
	// Snapshot returns the newest view. It never blocks.
	Snapshot() View
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
// It may say in which entry a group or a job changed, if that was one alone: so the drainer
// does not judge anew what nobody but itself has changed.
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
	Groups    []Told[cluster.GroupKey]
	Jobs      []Told[cluster.JobKey]
}

// Told is a group or a job that changed.
type Told[K comparable] struct {
	Key K
	// At is the raft index of the entry in which it changed; zero if there were several,
	// or if that is not known. To name one of several stalls drains.
	At uint64
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
