package heartbeat

import (
	"container/heap"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// timer is what is known of one node.
type timer struct {
	node  cluster.NodeID
	state state
	// until is when the node has to be heard again.
	until time.Time
	// at is when the timer is next looked at: until, or when it may be written.
	at time.Time
	// heard says, while writing, that the node was heard since.
	heard bool
	// position in the queue, or -1.
	position int
}

// state is how far a timer is.
type state uint8

const (
	// armed waits for the node, until at.
	armed state = iota
	// missed waits for its turn to be written down, from at on.
	missed
	// returned waits for its turn to be written ready, from at on.
	returned
	// writing waits for what becomes of the write.
	writing
)

// queue holds timers, the earliest first; of two at the same time, by node.
type queue []*timer

var _ heap.Interface = (*queue)(nil)

// Len is for container/heap.
func (q queue) Len() int { return len(q) }

// Less is for container/heap.
func (q queue) Less(i, j int) bool {
	if c := q[i].at.Compare(q[j].at); c != 0 {
		return c < 0
	}
	return q[i].node < q[j].node
}

// Swap is for container/heap.
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i, j
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	t := x.(*timer)
	t.position = len(*q)
	*q = append(*q, t)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	old := *q
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	t.position = -1
	return t
}

// set has the timer come up at a time.
func (q *queue) set(t *timer, at time.Time) {
	t.at = at
	if t.position < 0 {
		heap.Push(q, t)
		return
	}
	heap.Fix(q, t.position)
}

// remove has the timer not come up.
func (q *queue) remove(t *timer) {
	if t.position >= 0 {
		heap.Remove(q, t.position)
	}
}
