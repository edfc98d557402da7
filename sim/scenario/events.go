package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Event is something that happens.
type Event struct {
	// Line is where the event stands in its file, or zero.
	Line int
	// At is when, from the beginning.
	At time.Duration
	// Before is the kind of entry just before which it happens, between plan and
	// apply: the first such entry from At on. Empty is at the time itself. Events
	// that come before one entry happen in their order, each at once.
	Before EntryKind
	// Maybe says that it is meant even if nothing comes of it; otherwise a run warns.
	Maybe bool
	Op    Op // never nil
}

// Together is how many of the events, from the first on, come before one entry. There is
// one at least.
func Together(events []Event) int {
	n := 1
	for events[0].Before != "" && n < len(events) && events[n].At == events[0].At && events[n].Before == events[0].Before {
		n++
	}
	return n
}

// EntryKind is a kind of raft entry.
type EntryKind string

// The kinds of entries that an event may come before.
const (
	Marks       EntryKind = "marks"
	Completions EntryKind = "completion"
	Plan        EntryKind = "plan"
	Report      EntryKind = "report"
)

// Force is the deadline of a drain by force.
const Force = -time.Second

// Op is what is done. The set is closed; each type is a verb of the language, or
// two.
type Op interface {
	// words are what the operation is written as, up to its parameters.
	words() []string
	// fields are its parameters. The parser is nil when nothing is read.
	fields(*scope) []field
	// clone returns a copy that shares nothing that either may write to.
	clone() Op
}

// The operations of operators, and of what they operate.
type (
	// Drain drains nodes or changes their drains' strategy, with a request for each.
	Drain struct {
		Nodes []cluster.NodeID // never empty
		// Deadline is as in [cluster.DrainSpec]: zero none, [Force] force, [Never]
		// the longest there is.
		Deadline     time.Duration
		IgnoreSystem bool
		Key          string
		// Twice has the request sent again although it worked.
		Twice bool
	}
	// Cancel ends drains.
	Cancel struct {
		Nodes    []cluster.NodeID // never empty
		Eligible bool
		Key      string
	}
	// Register registers a job as the file declares it.
	Register struct{ Job cluster.JobKey }
	// Edit changes groups of a job, and registers it again. Nil is left as it is;
	// Group empty is all.
	Edit struct {
		Job         cluster.JobKey
		Group       string
		Count       *int
		MaxParallel *int
		// Remove removes the group, Rename gives it another name; only of one group.
		Remove bool
		Rename string
	}
	// Stop stops a job; Purge also forgets it.
	Stop struct {
		Job   cluster.JobKey
		Purge bool
	}
	// StopAlloc has the servers stop one allocation: written "stop web[0]".
	StopAlloc struct{ Alloc AllocName }
	// Exit has an allocation end by itself: written "finish web[0]", or "fail web[0]".
	Exit struct {
		Alloc  AllocName
		Failed bool
	}
	// Place has allocations land on nodes, past the scheduler, as an entry of one that
	// did not look would.
	Place struct {
		Alloc Alloc
		// Count is the group's count from the same write on, or nil if it stays.
		Count *int
	}
	// NodeChange is what becomes of nodes.
	NodeChange struct {
		Nodes  []cluster.NodeID // never empty
		Change Change
		// Unnoticed has no evaluation go with it but those that are made when it is
		// applied.
		Unnoticed bool
	}
)

// Change is what becomes of a node.
type Change string

// The changes of nodes.
const (
	NodeDown         Change = "down"
	NodeDisconnected Change = "disconnected"
	NodeReady        Change = "ready"
	NodeRegister     Change = "register" // as the file declares it
	NodeDelete       Change = "delete"
	NodeEligible     Change = "eligible"
	NodeIneligible   Change = "ineligible"
)

// The operations on servers and on what lies between them.
type (
	// Elect ends the leader's term.
	Elect struct {
		// Server is the next leader, from 1; zero is the next server.
		Server int
		// Lost says that what the old leader had in flight is lost; otherwise it
		// survives.
		Lost bool
		// Believes is how long the old leader goes on believing that it leads.
		Believes time.Duration
	}
	// Pause stops a server's process for a while.
	Pause struct {
		Server int // from 1; zero is the leader
		For    time.Duration
	}
	// Clock sets a server's clock: how far it is ahead, negative for behind.
	Clock struct {
		Server int // from 1; zero is all of them
		Ahead  time.Duration
	}
	// Restore has the leader restore a snapshot of its state.
	Restore struct{}
	// Forget makes the drainer lose its memory: its term starts again.
	Forget struct{}
	// Fault arms a fault.
	Fault struct {
		Name FaultName
		// On is what is hit, in the words that the fault's kind has: see [Faults].
		// Empty is anything.
		On string
		// Probability that an opportunity is taken. Zero is 1.
		Probability float64
		// Count is how many times at most. Zero is once if there is no window, and
		// without bound otherwise.
		Count int
		// For is how long it stays armed. Zero is until Count is used up.
		For time.Duration
		// Delay is how late, how long or how far, as the fault has it.
		Delay Range
	}
)
