package drainer

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Look is what a component sees in one step. A component that steps another hands on the
// look that it was given.
type Look struct {
	// Now is the time of the step.
	Now time.Time
	// View is the newest state, the same for all components of a step.
	View View
	// Changes says where it differs from the view of the step before. The first
	// step of a term is told to look everywhere.
	Changes Changes
	// InFlight is nil if no write is in flight: what is wished in this step is written
	// in it. Otherwise what is wished is written when the last is answered, in a step
	// of its own, and InFlight reports whether a mark of the allocation is among those
	// in flight: it cannot be taken back. It is not for after the step.
	InFlight func(cluster.AllocID) bool

	// findings are what the built-in components have found out in this step; nil remembers
	// nothing.
	findings *findings
}

// node returns the node, or nil.
func (l Look) node(id cluster.NodeID) *cluster.Node {
	if l.findings == nil {
		return l.View.Node(id)
	}
	return l.findings.node(l.View, id)
}

// Component is a part of the drainer that decides. Step neither blocks, sleeps,
// starts goroutines nor reads a clock. It returns when it wants to be stepped at
// the latest; zero is never. It may be stepped sooner, and for nothing.
type Component interface {
	Step(Look) (wakeAt time.Time)
}

// DrainingNodeWatcher sees nodes enter, change and leave draining and tells its
// tracker.
type DrainingNodeWatcher interface {
	Component
}

// NodeTracker keeps the draining nodes. Update and Remove take effect at the
// tracker's next step.
type NodeTracker interface {
	// TrackedNodes returns the tracked nodes, by id. The slice is the caller's.
	TrackedNodes() []cluster.NodeID
	// Tracked returns the revision at which a node was last updated, and whether
	// it is tracked.
	Tracked(cluster.NodeID) (cluster.Revision, bool)
	// Update tells of a node that drains, with a strategy the tracker has not
	// seen.
	Update(*cluster.Node)
	// Remove tells of a node that no longer drains or no longer exists.
	Remove(cluster.NodeID)
}

// DrainingJobWatcher applies each group's migrate limit to the jobs it looks
// after.
type DrainingJobWatcher interface {
	Component
	// RegisterJobs asks for jobs to be looked after, by their groups on draining
	// nodes, and for groups already looked after to be judged anew. It takes
	// effect at the next step; a group with nothing on a draining node is dropped
	// again.
	RegisterJobs([]cluster.GroupKey)
	// Drain offers the watcher's wishes. A value is the whole present wish; a
	// newer one replaces an unread older one. The capacity is one.
	Drain() <-chan *DrainRequest
	// Migrated reports allocations that have left their draining nodes. An
	// unread report is merged into the next. The capacity is one.
	Migrated() <-chan []Migration
}

// DrainRequest is everything a job watcher wants written.
type DrainRequest struct {
	// Marks are in (namespace, job, group, allocation) order.
	Marks []Mark
	// Reevaluate are groups, in order, with marked allocations that run on and no
	// open evaluation that would stop them.
	Reevaluate []cluster.GroupKey
	// Reply is told what became of the request's marks and evaluations, in as
	// many calls as there were writes; never nil. What a newer request no longer
	// holds, and was not written, is not answered. It may be called during a
	// step and never blocks.
	Reply func(DrainReply)
}

// DrainReply is what became of one write of a request's wishes.
type DrainReply struct {
	Answer
	// At is when the drainer took the answer in: waits on account of it begin
	// then, however much later the watcher is stepped.
	At          time.Time
	Marks       []Mark
	Reevaluated []cluster.GroupKey
}

// Migration says what has become of one allocation that was on a draining node.
// Each fact is one completion contract's, see [Contract].
type Migration struct {
	Alloc cluster.AllocID
	Node  cluster.NodeID
	// Asked: it was marked or stopped by the servers.
	Asked bool
	// Stopped: it is client-terminal, or its record is gone.
	Stopped bool
	// Replaced: a replacement is placed, or is not to come, or is waited for by
	// a blocked evaluation.
	Replaced bool
	// Migrated: its ephemeral data has moved, or it has none that could.
	Migrated bool
}

// DrainDeadlineNotifier wakes the drainer when deadlines pass. What it says is a
// hint: the node's strategy and the time are the evidence.
type DrainDeadlineNotifier interface {
	Component
	// Watch sets the node's deadline, in place of any it had. A forced drain has
	// none: what is forced is forced now.
	Watch(cluster.NodeID, time.Time)
	// Remove forgets the node's deadline.
	Remove(cluster.NodeID)
	// NextBatch offers nodes whose deadline has passed, by id. An unread batch is
	// merged into the next. The capacity is one.
	NextBatch() <-chan []cluster.NodeID
}

// Env is what a factory may use to build a component.
type Env struct {
	Logger hclog.Logger
	State  StateReader
	// Feed is the term's feed, for Follow and Unfollow. Only the term takes.
	Feed Feed
	// Wake asks for a step. It never blocks. A component with goroutines of its
	// own calls it when they have something to say.
	Wake func()
	// Done is closed when the term ends: a component's own goroutines end then.
	Done   <-chan struct{}
	Policy Policy
	// MarksAhead is how many marks a round of writes takes at most. A request need
	// not name more, as long as they are the first in order: when they are answered
	// it is time to name the next. Zero is no bound.
	MarksAhead int
	// DeadlineCoalesce is how late a deadline may be to share a batch.
	DeadlineCoalesce time.Duration
	// RetryBase and RetryMax bound the backoff of what is proposed again.
	RetryBase, RetryMax time.Duration
}

// The factories build the components of one leadership term.
type (
	DrainingNodeWatcherFactory   func(Env, NodeTracker) DrainingNodeWatcher
	DrainingJobWatcherFactory    func(Env) DrainingJobWatcher
	DrainDeadlineNotifierFactory func(Env) DrainDeadlineNotifier
)
