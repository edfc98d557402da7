package world

import (
	"github.com/seed-f9cf0b39/nodedrain/shims"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Source is the kind of component that proposes a write.
type Source uint8

// The sources of writes.
const (
	FromDrainer Source = iota
	FromScheduler
	FromClients
	FromOperator
	FromCollector
	FromVolumes

	sourceCount
)

// String returns the source's name in scenarios.
func (s Source) String() string {
	names := [sourceCount]string{"drainer", "scheduler", "clients", "operator", "collector", "volumes"}
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
	// Message is nil for a barrier.
	Message shims.Message
}

// Words returns the names of a write in scenarios: its source and its kind.
func (w Write) Words() []string {
	kind := string(EntryKindOf(w.Message))
	if w.Message == nil {
		kind = "barrier"
	}
	return []string{w.Source.String(), kind}
}

// EntryKindOf returns the name of a message's kind in scenarios. It is empty for other messages.
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
	case *shims.Collect:
		return scenario.Collection
	}
	return ""
}

// Fate says whether a proposed write is applied, and which answer its writer gets.
type Fate uint8

// The fates of writes. The log keeps its order, so a late write delays the writes after it.
const (
	// Apply applies the write and answers "applied".
	Apply Fate = iota
	// Slow is Apply after a delay; see [Options].Late.
	Slow
	// Reject never applies the write and answers "rejected".
	Reject
	// UnknownApplied applies the write and answers that its outcome is unknown.
	UnknownApplied
	// UnknownLate answers at once that the outcome is unknown, and applies the write after
	// a delay; see [Options].Late.
	UnknownLate
	// UnknownLost never applies the write and answers that its outcome is unknown.
	UnknownLost
	// NoRoom does not accept the write. There is no answer.
	NoRoom
)

// Late reports whether the fate delays the apply of a write.
func (f Fate) Late() bool { return f == Slow || f == UnknownLate }

// String returns the fate's name.
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
	// Taken says that the log accepted the write.
	Taken bool
}
