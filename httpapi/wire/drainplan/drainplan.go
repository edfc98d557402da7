// Package drainplan has the JSON types of PUT /v1/drains/plan: what drains would do. Times are durations in
// nanoseconds from the time of the request, because nothing has happened yet.
package drainplan

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// MaxPlays is the largest number of plays of one answer.
const MaxPlays = 199

// MaxTime is the longest time of an answer, with its wait for other plans.
const MaxTime = 2 * time.Minute

// Request is the body of PUT /v1/drains/plan.
type Request struct {
	// Nodes are ids of nodes. Filter selects more nodes, in the language of the lists. One of the two is required.
	Nodes  []string
	Filter string
	// DrainSpec is the strategy of each drain; required.
	DrainSpec *wire.DrainSpec
	// OneByOne begins the drain of a node when the one before it has ended. Otherwise all begin at once.
	OneByOne bool
	// Plays is the number of plays, at most MaxPlays. Zero lets the server choose: more give a better range.
	Plays int
}

// Answer is what the drains would do.
type Answer struct {
	// Sentence is the answer in one line.
	Sentence string
	// Index is the raft index of the state that the plays copied.
	Index uint64
	// Plays is how often the drains were played.
	Plays int
	// Took is the time until the last drain has ended, the median of the plays. It is zero if a drain does not
	// end: then its node has no Outcome.
	Took time.Duration
	// Least and Most are the shortest and the longest time of the plays. Both are zero if there is no range:
	// with fewer than 19 plays, or without observed times.
	Least, Most time.Duration
	// Allocs counts the allocations that leave. Taken counts those of them that the deadline or the force takes.
	Allocs, Taken int
	// Observed means that the times of all groups were observed. Otherwise the plays used the times that jobs
	// declare, for the groups that have no observed times.
	Observed bool
	// EnoughDeadline is a deadline that takes nothing. Zero if the requested one does, or if none would.
	EnoughDeadline time.Duration
	// MovedTwice counts the allocations that would move again, if the nodes were drained one after the other:
	// they would be placed on a node that is drained later.
	MovedTwice int
	// Nodes has each node, in the order of the request; then those of the filter, by id.
	Nodes []Node
	// Groups has each group with an allocation that leaves: first the one that the drains wait for longest.
	Groups []Group
	// Unplaced has each group with allocations that find no place.
	Unplaced []Unplaced
	// Limits are the things that the plan does not contain and that may change its answer.
	Limits []string
}

// Node is what the drain of one node would do.
type Node struct {
	ID, Name string
	// Began is when the drain begins, Took the time from then to its end. Zero if it does not end.
	Began, Took time.Duration
	// Outcome is how the drain ends, or empty if it does not end.
	Outcome string
	// Allocs counts the allocations that leave. Taken counts those of them that the deadline or the force takes.
	Allocs, Taken int
	// StillStopping counts the allocations that have not ended when the drain ends.
	StillStopping int
	// Waits are the allocations that keep the drain from ending, as in the report of a running drain.
	Waits []wire.DrainAlloc
}

// Group is what the drains would do to one group.
type Group struct {
	Namespace, JobID, Group string
	// Type is the type of the job, Count the count of the group.
	Type  string
	Count int
	// Moves counts the allocations that leave, Rounds the times at which the drains mark some of them.
	Moves, Rounds int
	// Healthy counts the healthy allocations now. Lowest is the least during the drains, in all plays, and
	// Needed is how many the budget of the group requires then.
	Healthy, Lowest, Needed int
	// LowestAt is when the group is lowest, and LowestFor for how long.
	LowestAt, LowestFor time.Duration
	// Down is how long no allocation of the group is healthy, if one is healthy now.
	Down time.Duration
	// Left is when the last allocation has left.
	Left time.Duration
	// Longest means that the drains wait for this group longest.
	Longest bool
	// NoRoom means that the budget of the group has no room now: other drains, updates or unhealthy allocations
	// use it.
	NoRoom bool
	// Recovered means that as many allocations are healthy in the end as now.
	Recovered bool
	// Observed means that the times of the group were observed. Otherwise they are those that its job declares.
	Observed bool
	// StopsFirst is why the allocations of the group stop before their replacements start although the request has a
	// MaxSurge, or empty.
	StopsFirst string `json:",omitempty"`
}

// Unplaced is a group with allocations that find no place.
type Unplaced struct {
	Namespace, JobID, Group string
	Allocs                  int
	// Why is the reason in one line: what the nodes lack, and which constraints exclude them.
	Why string
}
