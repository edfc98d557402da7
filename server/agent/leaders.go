package agent

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// leaders reports changes of the leader that raft knows. It is safe for concurrent use.
type leaders struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next change; guarded by mu
}

func newLeaders() *leaders { return &leaders{next: make(chan struct{})} }

// changed returns a channel that is closed at the next change. Call it before you read the leader:
// then you miss no change.
func (l *leaders) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

// follow observes raft until the context ends.
func (l *leaders) follow(ctx context.Context, r *raft.Raft) {
	observations := make(chan raft.Observation, 1) // one pending observation is enough: the callers read the leader
	observer := raft.NewObserver(observations, false, func(o *raft.Observation) bool {
		_, ok := o.Data.(raft.LeaderObservation)
		return ok
	})
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	for {
		l.mu.Lock()
		close(l.next) // also for a change before RegisterObserver
		l.next = make(chan struct{})
		l.mu.Unlock()
		select {
		case <-observations:
		case <-ctx.Done():
			return
		}
	}
}
