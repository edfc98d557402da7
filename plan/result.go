package plan

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Result is what came of one play.
type Result struct {
	// Took is the virtual time from the first request to the end of the last drain. It is zero if a drain has
	// not ended, because nothing would end it: then a node has no outcome. It is also zero if no drain was played.
	Took time.Duration
	// Cut means that the play reached a limit of [Settings].
	Cut bool
	// Nodes has each node of the question, in its order.
	Nodes []NodeResult
	// Groups has each group with an allocation that a drain of the question marked, by key.
	Groups []GroupResult
	// Unplaced has each group with allocations that the scheduler could not place, by key.
	Unplaced []Unplaced
	// MovedTwice counts the placements on a node of the question whose drain had not begun: such an allocation
	// moves again.
	MovedTwice int
	// Entries is the number of entries of the play.
	Entries int
}

// NodeResult is what came of the drain of one node.
type NodeResult struct {
	Node cluster.NodeID
	Name string
	// Began is when the drain began, from the begin of the play.
	Began time.Duration
	// Outcome is how the drain ended, or none. Took is the time from its begin to its end.
	Outcome cluster.Outcome
	Took    time.Duration
	// Marked counts the marks by class.
	Marked [cluster.MarkClassCount]int
	// StillStopping counts the allocations that had not ended when the drain ended.
	StillStopping int
	// Last is the group of the allocation that left last.
	Last cluster.GroupKey
	// Observed means that the times of all allocations that left were observed.
	Observed bool
	// Waits are the allocations that keep the drain from ending, if it has not ended: with the reasons of
	// node explain.
	Waits []rules.AllocExplanation
}

// Taken counts the allocations that left because the deadline had passed, or because the drain was forced.
func (n NodeResult) Taken() int {
	return n.Marked[cluster.MarkDeadline] + n.Marked[cluster.MarkForced]
}

// GroupResult is what the drains did to one group.
type GroupResult struct {
	Key cluster.GroupKey
	// Type is the type of the job, Count the count of the group.
	Type  cluster.JobType
	Count int
	// Moves counts the marks. Rounds counts the times at which the drains marked allocations of the group.
	Moves, Rounds int
	// Healthy counts the healthy allocations before the first drain. Lowest is the least after the first
	// mark, at LowestAt from the begin of the play and for LowestFor in all.
	Healthy, Lowest int
	LowestAt        time.Duration
	LowestFor       time.Duration
	// Needed is how many healthy allocations the budget of the group required when it was lowest.
	Needed int
	// Down is how long the group had no healthy allocation, if it had one before.
	Down time.Duration
	// Left is when the last allocation of the group left its drained node, from the begin of the play.
	Left time.Duration
	// NoRoom means that the budget of the group had no room before the first drain.
	NoRoom bool
	// Observed means that the times of the group were observed. Otherwise they are those that the job declares.
	Observed bool
	// Recovered means that the group had as many healthy allocations at the end as before.
	Recovered bool
}

// Below is by how much the group was below its budget, or zero. It does not count what was missing before
// the drains.
func (g GroupResult) Below() int { return max(0, min(g.Needed, g.Healthy)-g.Lowest) }

// Unplaced is a group with allocations that found no place.
type Unplaced struct {
	Key cluster.GroupKey
	// Allocs is the number of allocations.
	Allocs int
	// Why has the reasons of the scheduler: how many nodes lack what. It may be nil.
	Why *wire.AllocationMetric
}
