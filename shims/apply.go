package shims

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Errors of [Apply]. They distinguish whether the message may have taken effect.
var (
	// ErrBusy: the proposer has no room, or is closed. The message was not proposed; retry later.
	ErrBusy = errors.New("no room for another raft write")
	// ErrRejected: the message was not applied and never will be. Retry, perhaps with the new
	// leader.
	ErrRejected = errors.New("raft write rejected")
	// ErrUnknown: the message may be applied, now or later. Read the state behind a barrier before
	// a retry.
	ErrUnknown = errors.New("raft write with unknown outcome")
)

// Apply proposes a message and waits for its response and the raft index of its
// entry. If the FSM refuses the message, Apply returns the error in [Refused] and the index.
// Any other error wraps ErrBusy, ErrRejected or ErrUnknown.
//
// When ctx ends, Apply returns at once with an error that wraps its cause and ErrUnknown: the
// message may still be applied.
func Apply[R Response](ctx context.Context, p Proposals, m Request[R]) (response R, index uint64, err error) {
	answers := make(chan Answer, 1)
	if !p.Propose(m, func(a Answer) { answers <- a }) {
		return response, 0, fmt.Errorf("proposing %s: %w", m.Type(), ErrBusy)
	}
	select {
	case a := <-answers:
		return responseOf(m, a)
	case <-ctx.Done():
		return response, 0, fmt.Errorf("proposing %s: %w: %w", m.Type(), ErrUnknown, context.Cause(ctx))
	}
}

// responseOf returns the typed response of an answer.
func responseOf[R Response](m Request[R], a Answer) (response R, index uint64, err error) {
	switch a.Outcome {
	case raftwrite.Applied:
	case raftwrite.Rejected:
		return response, 0, fmt.Errorf("proposing %s: %w: %w", m.Type(), ErrRejected, a.Err)
	default:
		return response, 0, fmt.Errorf("proposing %s: %w: %w", m.Type(), ErrUnknown, a.Err)
	}
	switch r := a.Response.(type) {
	case R:
		return r, a.Index, nil
	case Refused:
		return response, a.Index, fmt.Errorf("%s refused: %w", m.Type(), r.Err)
	default:
		return response, a.Index, fmt.Errorf("%s was answered with %T", m.Type(), r)
	}
}
