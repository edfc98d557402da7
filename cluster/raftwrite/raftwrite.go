package raftwrite

// Outcome is what happened to a raft write.
type Outcome uint8

const (
	// Unknown means that the entry may be applied, now or later. Do not send it again. Read the
	// state behind a barrier, then plan.
	Unknown Outcome = iota
	// Rejected means that the entry was not applied and never will be. Plan again.
	Rejected
	// Applied means that the entry was applied. The response lists what the FSM refused.
	Applied
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Rejected:
		return "rejected"
	}
	return "unknown"
}

// Answer is the result of one raft write. R is the type of the FSM's response.
type Answer[R any] struct {
	Outcome Outcome
	// Index is, for an applied entry, its raft index. For an applied barrier it is the
	// index of the newest entry in the state behind it. Otherwise it is zero.
	Index uint64
	// Response is the FSM's response to an applied entry. It is the zero value for a
	// barrier and for a write that was not applied.
	Response R
	// Err is why the write was rejected or its outcome is unknown, or nil.
	Err error
}

// Reply receives the answer to one raft write. The applier calls it exactly once, from
// any goroutine. It never blocks.
type Reply[R any] func(Answer[R])
