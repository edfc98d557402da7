package agent

import (
	"context"
	"sync"

	"github.com/hashicorp/raft"
)

// leaders reports changes of the leader that raft has. It is safe for concurrent use.
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
	change := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.next)
		l.next = make(chan struct{})
	}
	observe(ctx, r, 1, func(data any) bool { // one pending observation is enough: the callers read the leader
		_, is := data.(raft.LeaderObservation)
		return is
	}, change, func(any) { change() })
}

// observe calls each with the selected observations of raft until the context ends. First it calls begin, which
// handles what has happened before. Observations above the number of pending ones are lost.
func observe(ctx context.Context, r *raft.Raft, pending int, selects func(data any) bool, begin func(), each func(data any)) {
	observations := make(chan raft.Observation, pending)
	observer := raft.NewObserver(observations, false, func(o *raft.Observation) bool { return selects(o.Data) })
	r.RegisterObserver(observer)
	defer r.DeregisterObserver(observer)
	for begin(); ; {
		select {
		case o := <-observations:
			each(o.Data)
		case <-ctx.Done():
			return
		}
	}
}
