package agent

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// leaders reports that raft knows another leader, or none. It is safe for concurrent use.
type leaders struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; guarded by mu
}

func newLeaders() *leaders { return &leaders{next: make(chan struct{})} }

// changed is closed at the next change. A caller that takes it before it reads the leader misses no
// change.
func (l *leaders) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// follow follows raft until the context ends.
func (l *leaders) follow(ctx context.Context, r *raft.Raft) {
	seen := make(chan raft.Observation, 1) // a pending one stands for those after it
	observer := raft.NewObserver(seen, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	for {
		l.mu.Lock()
		close(l.next) // also for a change before raft was observed
		l.next = make(chan struct{})
		l.mu.Unlock()
		select {
		case <-seen:
		case <-ctx.Done():
			return
		}
	}
}
