package world

import (
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Source says who proposed a write.
type Source uint8

// The sources of writes.
const (
	FromDrainer Source = iota
	FromScheduler
	FromClients
	FromOperator

	sourceCount
)

// String returns the source as scenarios name it.
func (s Source) String() string {
	names := [sourceCount]string{"drainer", "scheduler", "clients", "operator"}
	if s >= sourceCount {
		return "unknown source"
	}
	return names[s]
}

// Write is one proposed write, before its fate is known.
type Write struct {
	Source Source
	// N counts the writes of the source from zero, barriers included.
	N int
	// Message is what is proposed, or nil for a barrier.
	Message shims.Message
}

// Words are what scenarios call a write: by its source, or by its kind.
func (w Write) Words() []string {
	kind := string(EntryKindOf(w.Message))
	if w.Message == nil {
		kind = "barrier"
	}
	return []string{w.Source.String(), kind}
}

// EntryKindOf is the kind of a message in the words of scenarios, or empty.
func EntryKindOf(m shims.Message) scenario.EntryKind {
	switch m.(type) {
	case *shims.AllocUpdateDesiredTransition:
		return scenario.Marks
	case *shims.NodesDrainComplete:
		return scenario.Completions
	case *shims.ApplyPlan:
		return scenario.Plan
	case *shims.AllocClientUpdate:
		return scenario.Report
	}
	return ""
}

// Fate is what becomes of a proposed write.
type Fate uint8

// The fates of writes. The log keeps its order whatever they are: a write that is
// late holds up those after it.
const (
	// Apply applies the write and says so.
	Apply Fate = iota
	// Slow does so after [Options].Late.
	Slow
	// Reject never applies the write and says so.
	Reject
	// UnknownApplied applies the write and says that it is not known.
	UnknownApplied
	// UnknownLate says at once that it is not known, and applies the write after
	// [Options].Late.
	UnknownLate
	// UnknownLost never applies the write and says that it is not known.
	UnknownLost
	// NoRoom does not take the write.
	NoRoom
)

// Late reports whether a write of that fate is applied late.
func (f Fate) Late() bool { return f == Slow || f == UnknownLate }

// String returns the fate in the words of test names.
func (f Fate) String() string {
	switch f {
	case Apply:
		return "applied"
	case Slow:
		return "slow"
	case Reject:
		return "rejected"
	case UnknownApplied:
		return "unknown-applied"
	case UnknownLate:
		return "unknown-late"
	case UnknownLost:
		return "unknown-lost"
	case NoRoom:
		return "no-room"
	}
	return "unknown fate"
}

// Proposal is a write that a drainer proposes.
type Proposal struct {
	Write
	// Term is the drainer's term.
	Term int
	// Bytes is the size of the entry, zero for a barrier.
	Bytes int
	// Taken says that the log took it.
	Taken bool
}
