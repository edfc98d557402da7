package drainer

import (
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// Answer is the result of one of the drainer's raft writes. Its response holds the items of
// an applied entry that the FSM refused.
type Answer = raftwrite.Answer[[]rules.Refusal]

// Reply receives the answer to one of the drainer's raft writes, once. It never blocks.
type Reply = raftwrite.Reply[[]rules.Refusal]

// RaftApplier begins raft writes. Each method returns without waiting. It returns true if the write
// was queued, and then calls reply exactly once, from any goroutine, before or after it returns. It
// returns false if there is no room, and then never calls reply. The content of a queued write
// belongs to the applier. The drainer does not change it after that.
//
// A method must not call the [NodeDrainer], not even Explain or SetEnabled(false). The drainer
// calls the method while it holds a lock that these methods need, so both would wait forever. A
// method must not wait for a goroutine that calls the drainer either. It may start a goroutine that
// calls the drainer.
//
// A queued write that is never answered stops the drainer until the end of its term. So an applier
// has a time limit and answers Unknown when it ends.
//
// An applier that answers Rejected for a write that may still be applied breaks G2 and G6. When
// in doubt, answer Unknown.
//
// The index of an answer is that of the write's own entry, and for a barrier that of the newest
// entry in the state: not the log's last or applied index, which may count entries that never reach
// the state. The drainer plans from no older view. If the index is too high, the drainer waits
// until entries of other proposers reach it. After ten seconds it logs this, and
// rules.Status.Stalled shows it. drainertest.TestApplier tests an applier.
type RaftApplier interface {
	// AllocUpdateDesiredTransition marks allocations and adds evaluations.
	AllocUpdateDesiredTransition(*rules.Marks, Reply) (queued bool)
	// NodesDrainComplete ends drains.
	NodesDrainComplete(*rules.Completions, Reply) (queued bool)
	// Barrier is answered when every entry before it has been applied.
	Barrier(Reply) (queued bool)
}
