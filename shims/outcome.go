package shims

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Errors that a proposer itself answers with.
var (
	// ErrClosed: the proposer was closed before the write was answered. Try another
	// server.
	ErrClosed = errors.New("proposer is closed")
	// ErrTooLarge: the entry of a request would be larger than [MaxRequestEntry]. Split
	// the request or make it smaller.
	ErrTooLarge = errors.New("too large for a raft entry")
	// ErrNoAnswer: raft did not answer the write within [Options].Timeout.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrNilResponse: raft reports an applied entry without a response. The FSM has
	// stopped (see [FSM.Stopped]) or panicked.
	ErrNilResponse = errors.New("the FSM has not answered")
)

// OutcomeOf returns the outcome of an Apply or Barrier future of hashicorp/raft v1.8.0 that
// ended with the error; nil is Applied. Rejected means that no server will ever apply the
// entry. So an error is Rejected only if raft returns it before it appends the entry to any
// log:
//
//	ErrNotLeader                    Rejected  raft.go:182, 395: the follower's and the candidate's loop
//	                                          answer what they take from applyCh; raft.go:929: the leader
//	                                          that is removing itself, instead of dispatchLogs
//	ErrEnqueueTimeout               Rejected  api.go:894, 920: the timer won over the send to applyCh
//	ErrLeadershipTransferInProgress Rejected  raft.go:910: the leader's loop, instead of dispatchLogs
//	ErrLeadershipLost               Unknown   raft.go:520: in the leader's log and perhaps in others, whose
//	                                          next leader keeps it
//	ErrAbortedByRestore             Unknown   raft.go:1130: likewise in logs by then, see below
//	ErrRaftShutdown                 Unknown   api.go:896, 922: before the entry was taken; raft.go:1310: after
//	                                          it was committed. The error is the same
//	any other                       Unknown   raft.go:1273: the log store's own error when it appends the
//	                                          entry, which may be on disk in spite of it
//
// api.go:865 says that a write that ended with ErrAbortedByRestore "effectively
// failed". That is so only if the restore then succeeds, and reaches a quorum
// before this leader is lost. The futures are answered first: when the snapshot
// cannot be created or read afterwards (raft.go:1150 to 1163), the leader leads
// on with the entry in its log and applies it with the next that is committed.
//
// Raft never answers some futures: those of entries that were committed and
// waited for the FSM's goroutine when raft was shut down (fsm.go:260, its loop
// may take shutdownCh before fsmMutateCh). No error of raft's says so, which is
// why a [Proposer] has a deadline of its own.
func OutcomeOf(err error) raftwrite.Outcome {
	switch {
	case err == nil:
		return raftwrite.Applied
	case errors.Is(err, raft.ErrNotLeader),
		errors.Is(err, raft.ErrEnqueueTimeout),
		errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return raftwrite.Rejected
	}
	return raftwrite.Unknown
}

// Answer is the result of one proposed message or barrier. Its response is the FSM's response
// to an applied message, and nil for a barrier.
type Answer = raftwrite.Answer[Response]

func rejected(err error) Answer { return Answer{Outcome: raftwrite.Rejected, Err: err} }
func unknown(err error) Answer  { return Answer{Outcome: raftwrite.Unknown, Err: err} }

// answerOf returns the answer of a message's future that has ended.
func answerOf(f raft.ApplyFuture) Answer {
	if err := f.Error(); err != nil {
		return failed(err)
	}
	switch response := f.Response().(type) {
	case nil:
		return unknown(ErrNilResponse)
	case Response:
		return Answer{Outcome: raftwrite.Applied, Index: f.Index(), Response: response}
	default:
		return unknown(fmt.Errorf("the FSM answered a %T, which is no response of this package", response))
	}
}

// failed is the answer to a future that ended with an error.
func failed(err error) Answer {
	return Answer{Outcome: OutcomeOf(err), Err: fmt.Errorf("raft: %w", err)}
}
