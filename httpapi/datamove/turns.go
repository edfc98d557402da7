package datamove

import (
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Turns decide which copies run: in the order in which they were requested, one for each node that sends, one for
// each node that receives, and at most so many together. A request for a busy node does not hold up those behind it.
// It is not safe for concurrent use.
type Turns struct {
	most int
	// running counts the copies that have a turn. senders and receivers are their nodes.
	running            int
	senders, receivers map[cluster.NodeID]bool
	// waiting are the requests without a turn, the first first.
	waiting []*Turn
}

// Turn is a requested turn of a copy.
type Turn struct {
	from, to cluster.NodeID
	granted  func()
}

// NewTurns returns turns for at most so many copies at a time.
func NewTurns(most int) *Turns {
	return &Turns{most: most, senders: map[cluster.NodeID]bool{}, receivers: map[cluster.NodeID]bool{}}
}

// Request requests a turn for a copy between two nodes. Request, or a later call of Leave, calls granted when the copy
// has its turn. granted calls no method.
func (t *Turns) Request(from, to cluster.NodeID, granted func()) *Turn {
	turn := &Turn{from: from, to: to, granted: granted}
	t.waiting = append(t.waiting, turn)
	t.grant()
	return turn
}

// Leave gives a turn back, or withdraws its request.
func (t *Turns) Leave(turn *Turn) {
	if i := slices.Index(t.waiting, turn); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
		return
	}
	t.running--
	delete(t.senders, turn.from)
	delete(t.receivers, turn.to)
	t.grant()
}

// grant gives turns to the first requests whose nodes are free.
func (t *Turns) grant() {
	t.waiting = slices.DeleteFunc(t.waiting, func(turn *Turn) bool {
		if t.running >= t.most || t.senders[turn.from] || t.receivers[turn.to] {
			return false
		}
		t.running++
		t.senders[turn.from], t.receivers[turn.to] = true, true
		turn.granted()
		return true
	})
}

// Counts returns how many copies have a turn, and how many wait for one.
func (t *Turns) Counts() (running, waiting int) { return t.running, len(t.waiting) }
