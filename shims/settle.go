package shims

import (
	"context"
	"fmt"
)

// Settle waits until raft has answered every proposed entry, or the context ends. Call it after
// [Proposer.Close] and before you shut raft down: after its shutdown raft never answers some
// entries (see [OutcomeOf]), and the goroutines that wait for the answers never end. Settle takes
// as long as raft needs to commit the entries or, without a quorum, to step down.
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
