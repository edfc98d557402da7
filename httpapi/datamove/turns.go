package datamove

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// turns lets requests for copies wait for their turn, in the order in which they came. A node sends one copy and
// receives one copy at a time. A request for a busy node does not hold up those behind it.
type turns struct {
	most int

	mu sync.Mutex
	// running counts the copies that have a turn. senders and receivers are their nodes. All are guarded by mu.
	running            int
	senders, receivers map[cluster.NodeID]bool
	// waiting are the requests without a turn, the first first; guarded by mu.
	waiting []*waiter
}

// waiter waits for a turn.
type waiter struct {
	from, to cluster.NodeID
	// granted is closed when the waiter has its turn.
	granted chan struct{}
}

func newTurns(most int) *turns {
	return &turns{most: most, senders: map[cluster.NodeID]bool{}, receivers: map[cluster.NodeID]bool{}}
}

// wait returns when a copy between the nodes has its turn. The caller gives it back with free, unless there is
// an error, which is the context's.
func (t *turns) wait(ctx context.Context, from, to cluster.NodeID) error {
	w := &waiter{from: from, to: to, granted: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, w)
	t.grant()
	t.mu.Unlock()
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // it got its turn meanwhile
		t.giveBack(from, to)
	}
	return context.Cause(ctx)
}

// free gives a turn back.
func (t *turns) free(from, to cluster.NodeID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.giveBack(from, to)
}

func (t *turns) giveBack(from, to cluster.NodeID) {
	t.running--
	delete(t.senders, from)
	delete(t.receivers, to)
	t.grant()
}

// grant gives turns to the first waiters whose nodes are free.
func (t *turns) grant() {
	t.waiting = slices.DeleteFunc(t.waiting, func(w *waiter) bool {
		if t.running >= t.most || t.senders[w.from] || t.receivers[w.to] {
			return false
		}
		t.running++
		t.senders[w.from], t.receivers[w.to] = true, true
		close(w.granted)
		return true
	})
}

// counts returns how many copies have a turn, and how many wait for one.
func (t *turns) counts() (running, waiting int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running, len(t.waiting)
}
