package plan

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/shims"
)

// log is the raft log of a play. It applies each message to the copy, in the order in which they were
// proposed, and keeps none.
type log struct {
	fsm *shims.FSM
	// index is that of the newest entry, entries their number in the play.
	index   uint64
	entries int
	queue   []proposed
	// answered is called after each answer.
	answered func()
}

// proposed is a message, or nil for a barrier, with its reply.
type proposed struct {
	message shims.Message
	reply   func(shims.Answer)
}

var _ shims.Proposals = (*log)(nil)

// Propose queues a message.
func (l *log) Propose(m shims.Message, reply func(shims.Answer)) (queued bool) {
	l.queue = append(l.queue, proposed{m, reply})
	return true
}

// Barrier queues a barrier.
func (l *log) Barrier(reply func(shims.Answer)) (queued bool) {
	return l.Propose(nil, reply)
}

// apply applies the first message of the queue, and reports whether there was one.
func (l *log) apply() bool {
	if len(l.queue) == 0 {
		return false
	}
	first := l.queue[0]
	l.queue[0] = proposed{}
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		l.queue = nil
	}
	answer := shims.Answer{Outcome: raftwrite.Applied, Index: l.index}
	if first.message != nil {
		l.index++
		l.entries++
		answer.Index = l.index
		var err error
		if answer.Response, err = l.fsm.ApplyMessage(l.index, first.message); err != nil {
			answer = shims.Answer{Outcome: raftwrite.Rejected, Err: err}
			l.index--
		}
	}
	first.reply(answer)
	l.answered()
	return true
}

// names makes ids that no state has, and that sort in the order of their creation. A command shows the first
// eight characters of an id.
type names struct{ made int }

func (n *names) next() string {
	n.made++
	return fmt.Sprintf("new%05d", n.made)
}

func (n *names) alloc() cluster.AllocID { return cluster.AllocID(n.next()) }
func (n *names) eval() cluster.EvalID   { return cluster.EvalID(n.next()) }
