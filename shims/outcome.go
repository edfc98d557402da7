package shims

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
)

// Errors in answers of the proposer itself.
var (
	// ErrClosed: the proposer was closed before the write was answered. Use another server.
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
//	ErrNotLeader                    Rejected  raft.go:182, 395: the loops of follower and candidate return
//	                                          it for each entry from applyCh; raft.go:929: a leader that
//	                                          removes itself returns it instead of dispatchLogs
//	ErrEnqueueTimeout               Rejected  api.go:894, 920: the timer won over the send to applyCh
//	ErrLeadershipTransferInProgress Rejected  raft.go:910: the leader's loop, instead of dispatchLogs
//	ErrLeadershipLost               Unknown   raft.go:520: the entry is in the leader's log and perhaps in
//	                                          others, and the next leader may keep it
//	ErrAbortedByRestore             Unknown   raft.go:1130: the entry is in these logs too, see below
//	ErrRaftShutdown                 Unknown   api.go:896, 922: before raft took the entry; raft.go:1310: after
//	                                          it was committed. The error is the same
//	any other                       Unknown   raft.go:1273: an error of the log store when it appends the
//	                                          entry, which may be on disk anyway
//
// api.go:865 states that a write that ended with ErrAbortedByRestore "effectively failed". This is
// true only if the restore then succeeds, and reaches a quorum before this leader is lost. Raft
// answers the futures first. If it then cannot create or read the snapshot (raft.go:1150 to 1163),
// the leader stays leader with the entry in its log, and applies it with the next committed entry.
//
// Raft never answers some futures: those of committed entries that wait for the FSM's goroutine
// when raft is shut down (fsm.go:260, its loop may receive from shutdownCh before fsmMutateCh). No
// error reports this, so a [Proposer] has its own timeout.
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
