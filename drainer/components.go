package drainer

import (
	"log/slog"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Reading is the input of one step of a component: a node watcher, a job watcher or a deadline notifier. A
// component that steps another passes on the reading that it received.
//
// A component decides in its Step, which does not block, sleep, start goroutines or read a clock. Step
// returns the latest time for the next step; zero is never. It may be called sooner, and without a
// reason.
type Reading struct {
	// Now is the time of the step.
	Now time.Time
	// View is the newest state, the same for all components of a step.
	View rules.View
	// Changes names where it differs from the view of the previous step. The first step of a term
	// reads everything.
	Changes Changes

	// Deferred means that earlier steps had some of the changes but could not read the state
	// then. So the states between the two views are unknown.
	Deferred bool
	// planner is shared by the built-in components of a step. It is nil in a reading that was
	// not created in this package.
	planner *rules.Planner
}

// rules returns the planner of the step.
func (r Reading) rules(p rules.Policy) *rules.Planner {
	if r.planner != nil {
		return r.planner
	}
	return rules.NewPlanner(r.View, r.Now, p)
}

// DrainingNodeWatcher finds nodes whose drain began, changed or ended, and updates its tracker.
type DrainingNodeWatcher interface {
	Step(Reading) (wakeAt time.Time)
}

// NodeTracker keeps the draining nodes. Update and Remove take effect in the tracker's next step.
type NodeTracker interface {
	// TrackedNodes returns the tracked nodes, by id. The slice is the caller's.
	TrackedNodes() []cluster.NodeID
	// Tracked returns the revision at which a node was last updated, and whether
	// it is tracked.
	Tracked(cluster.NodeID) (cluster.Revision, bool)
	// Update passes a draining node with a strategy that the tracker does not have.
	Update(*cluster.Node)
	// Remove names a node that no longer drains or no longer exists.
	Remove(cluster.NodeID)
}

// DrainingJobWatcher applies each group's migrate limit to the jobs that it watches.
type DrainingJobWatcher interface {
	Step(Reading) (wakeAt time.Time)
	// RegisterJobs adds groups that have allocations on draining nodes, from the next step on. A
	// group that is already watched is planned again. The watcher drops a group without allocations
	// on draining nodes.
	RegisterJobs([]cluster.GroupKey)
	// Drain offers all writes that the watcher requests. A newer request replaces an unread
	// older one. A request is used for one round of writes. After a Reply that something was not
	// applied, the watcher plans again and offers a new request. Every answer causes a step. The
	// capacity is one.
	Drain() <-chan *DrainRequest
	// Migrated names nodes that allocations have left since the last plan of their groups. Unread
	// names are merged into the next send. The capacity is one.
	Migrated() <-chan []cluster.NodeID
}

// DrainRequest is all writes that a job watcher requests. A request of an operator is a
// [cluster.DrainUpdate].
type DrainRequest struct {
	// Marks are in (namespace, job, group, allocation) order. Marks of the classes stage,
	// deadline and forced are left out: the drainer plans them with their node.
	Marks []rules.Mark
	// Reevaluate are groups, in order, with marked allocations that still run and no open
	// evaluation that would stop them.
	Reevaluate []cluster.GroupKey
	// Reply receives the result of every write of the request's marks and evaluations. Items
	// without room are rejected. It is never nil. It may be called during a step and must not
	// block.
	Reply func(DrainReply)
}

// DrainReply is the result of one write of a request's marks and evaluations.
type DrainReply struct {
	Answer
	// At is when the drainer received the answer. Retries are spaced from this time.
	At          time.Time
	Marks       []rules.Mark
	Reevaluated []cluster.GroupKey
}

// DrainDeadlineNotifier wakes the drainer when deadlines pass. It is only a hint: decisions read
// the node's strategy and the time.
type DrainDeadlineNotifier interface {
	Step(Reading) (wakeAt time.Time)
	// Watch sets the node's deadline and replaces an earlier one. A forced drain has none: the
	// drainer marks everything at once.
	Watch(cluster.NodeID, time.Time)
	// Remove forgets the node's deadline.
	Remove(cluster.NodeID)
	// NextBatch offers nodes whose deadline has passed, by id. An unread batch is
	// merged into the next. The capacity is one.
	NextBatch() <-chan []cluster.NodeID
}

// Env is what a factory may use to build a component.
type Env struct {
	Logger *slog.Logger
	State  StateReader
	// Feed is the term's feed, for Follow and Unfollow. Only the term calls Take.
	Feed Feed
	// Wake requests a step. It never blocks. A component with goroutines of its own calls it when
	// they have results.
	Wake func()
	// Done is closed when the term ends. A component's own goroutines end then.
	Done   <-chan struct{}
	Policy rules.Policy
	// MarksAhead is the most marks that a round of writes takes. A request need not name more: it
	// names the first in order, and the next request names the next ones. Zero is no bound.
	MarksAhead int
	// DeadlineCoalesce is how late a deadline may be to share a batch.
	DeadlineCoalesce time.Duration
	// Retry spaces retries.
	Retry Backoff
}

// Factories build the components of one leadership term.
type (
	// DrainingNodeWatcherFactory builds a [DrainingNodeWatcher].
	DrainingNodeWatcherFactory func(Env, NodeTracker) DrainingNodeWatcher
	// DrainingJobWatcherFactory builds a [DrainingJobWatcher].
	DrainingJobWatcherFactory func(Env) DrainingJobWatcher
	// DrainDeadlineNotifierFactory builds a [DrainDeadlineNotifier].
	DrainDeadlineNotifierFactory func(Env) DrainDeadlineNotifier
)

// put puts a value into a channel of capacity one, merged with an unread one. Only the caller
// sends to the channel.
func put[T any](ch chan T, value T, merge func(unread, value T) T) {
	select {
	case unread := <-ch:
		value = merge(unread, value)
	default:
	}
	select {
	case ch <- value:
	default: // cannot happen: the channel is empty
	}
}
