package shims

import (
	"context"
	"fmt"
)

// Settle waits until raft has answered every entry that the proposer handed it,
// or the context ends. Call it after [Proposer.Close] and before shutting raft
// down: a raft that is shut down never answers some of them (see [OutcomeOf]),
// and the goroutines that wait for those never end. It takes as long as raft
// needs to commit them or, without a quorum, to step down.
func (p *Proposer) Settle(ctx context.Context) error {
	for held := range cap(p.inFlight) {
		select {
		case p.inFlight <- struct{}{}:
		case <-ctx.Done():
			for range held {
				<-p.inFlight
			}
			return fmt.Errorf("waiting for raft's answers: %w", context.Cause(ctx))
		}
	}
	for range cap(p.inFlight) {
		<-p.inFlight
	}
	return nil
}
