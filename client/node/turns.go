package node

import (
	"context"
	"sync"

	"github.com/seed-f9cf0b39/nodedrain/client/internal/turns"
	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// sharedTurns bounds the effects of one kind that run at the same time. Jobs take turns, so a job
// with many waiting effects does not delay the others. It is safe for concurrent use.
type sharedTurns struct {
	mu   sync.Mutex
	free int // guarded by mu
	// waiting are channels that are closed when their effect's turn has come; guarded by mu.
	waiting turns.Queue[cluster.JobKey, chan struct{}]
}

func newSharedTurns(most int) *sharedTurns { return &sharedTurns{free: most} }

// take waits for a turn of the job. If it returns nil, the caller must call leave.
func (s *sharedTurns) take(ctx context.Context, job cluster.JobKey) error {
	turn := make(chan struct{})
	s.mu.Lock()
	if s.free > 0 {
		s.free--
		close(turn)
	} else {
		s.waiting.Push(job, turn)
	}
	s.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	waits := s.waiting.Remove(job, turn)
	s.mu.Unlock()
	if !waits {
		s.leave() // the turn has come
	}
	return context.Cause(ctx)
}

// leave ends a turn, and the next one begins.
func (s *sharedTurns) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next, found := s.waiting.Pop(turns.Any); found {
		close(next)
	} else {
		s.free++
	}
}
