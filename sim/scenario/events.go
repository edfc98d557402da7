package scenario

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// Event is an operation at a time.
type Event struct {
	// Line is the line number in the file, or zero.
	Line int
	// At is the time since the beginning.
	At time.Duration
	// Before delays the event until just before the apply of the first entry of this kind from
	// At on. Empty means no delay. Events before one entry happen in their order.
	Before EntryKind
	// Maybe suppresses the warning of the run if the event has no effect.
	Maybe bool
	Op    Op // never nil
}

// BeforeOneEntry counts the leading events that come before the same entry as the first. It
// returns 1 if the first event waits for no entry. events may not be empty.
func BeforeOneEntry(events []Event) int {
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
	Collection  EntryKind = "collect"
)

// Force is the deadline of a drain by force.
const Force = -time.Second

// Op is an operation. The set is closed. Each type has one or two verbs of the language.
type Op interface {
	// verb is the verb of the operation.
	verb() string
}

// The operations on nodes, jobs and allocations.
type (
	// Drain drains nodes, or changes the strategy of their drains. Each node has a request.
	Drain struct {
		Nodes []cluster.NodeID // never empty
		// Deadline is as in [cluster.DrainSpec]: zero is none, [Force] forces, [Never] is the
		// longest.
		Deadline     time.Duration `drain:"deadline,deadline"`
		IgnoreSystem bool          `drain:"ignore-system"`
		// MaxSurge is that of the drain: for all groups that it moves and that have a lower one.
		MaxSurge int    `drain:"max-surge"`
		Key      string `drain:"key"`
		// Twice sends the request a second time.
		Twice bool `drain:"twice"`
	}
	// Cancel ends drains.
	Cancel struct {
		Nodes    []cluster.NodeID // never empty
		Eligible bool             `drain:"eligible"`
		Undo     bool             `drain:"undo"`
		Key      string           `drain:"key"`
	}
	// PauseDrains pauses the drains of nodes, or all drains. It is printed as "hold n1" or "hold all".
	PauseDrains struct {
		Nodes []cluster.NodeID // empty for all drains
		// For resumes the drains after this time. Zero does not.
		For time.Duration `drain:"for"`
	}
	// ResumeDrains ends pauses of the drains of nodes, or of all drains.
	ResumeDrains struct {
		Nodes []cluster.NodeID // empty for all drains
	}
	// Confirm confirms the newest ended drain of nodes: no task runs on them.
	Confirm struct {
		Nodes []cluster.NodeID // never empty
	}
	// Register registers a job as the file declares it.
	Register struct{ Job cluster.JobKey }
	// Edit changes groups of a job and registers it again. Nil leaves a value as it is. An
	// empty Group means all groups.
	Edit struct {
		Job         cluster.JobKey
		Group       string
		Count       *int `drain:"count"`
		MaxParallel *int `drain:"max-parallel"`
		MaxSurge    *int `drain:"max-surge"`
		// Version is the version of the tasks: another one replaces the allocations that run.
		Version *int `drain:"version"`
		// Service is the version of the service: another one changes its tag, and replaces no allocation.
		Service *int `drain:"service"`
		// Remove removes the group, Rename renames it. Both need a Group.
		Remove bool   `drain:"remove"`
		Rename string `drain:"rename"`
	}
	// Stop stops a job. Purge also deletes it.
	Stop struct {
		Job   cluster.JobKey
		Purge bool
	}
	// StopAlloc proposes a plan that stops one allocation for an evaluation that the servers do not
	// have. They refuse it. It is printed as "stop web[0]".
	StopAlloc struct{ Alloc AllocName }
	// Exit makes an allocation end by itself. It is printed as "finish web[0]" or "fail web[0]".
	Exit struct {
		Alloc  AllocName
		Failed bool
	}
	// Place places allocations without the scheduler. Its entry is like that of a scheduler
	// that has not read the drain.
	Place struct {
		Alloc Alloc
		// Count is the new count of the group in the same write, or nil for no change.
		Count *int `drain:"count"`
	}
	// NodeChange changes nodes.
	NodeChange struct {
		Nodes  []cluster.NodeID // never empty
		Change Change
		// Unnoticed leaves the evaluations out of the write. The state machine still makes
		// those that the change requires.
		Unnoticed bool `drain:"unnoticed"`
	}
)

// Change is a change of a node.
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

// The operations on servers, and faults.
type (
	// Elect ends the leader's term.
	Elect struct {
		// Server is the number of the next leader, from 1. Zero is the next server.
		Server int
		// Lost drops the old leader's entries in flight. Otherwise they survive.
		Lost bool `drain:"lost"`
		// Unaware is how long the old leader still acts as a leader.
		Unaware time.Duration `drain:"believes"`
	}
	// Pause stops a server's process for a while.
	Pause struct {
		Server int           // from 1; zero is the leader
		For    time.Duration `drain:"for,required"`
	}
	// Clock sets the clock of a server. Ahead is negative for a clock that is behind.
	Clock struct {
		Server int           // from 1; zero is all servers
		Ahead  time.Duration `drain:"ahead,ahead,required"`
	}
	// Restore makes the leader restore a snapshot of its state.
	Restore struct{}
	// Forget deletes the drainer's memory: its term starts again.
	Forget struct{}
	// Fault arms a fault.
	Fault struct {
		Name FaultName
		// On is the target, in the form of the fault's [Target]. Empty is any target.
		On string `drain:"on,target"`
		// Probability of a strike at each opportunity. Zero is 1.
		Probability float64 `drain:"p"`
		// Count is the most strikes. Zero is one strike if For is zero, and no limit
		// otherwise.
		Count int `drain:"count"`
		// For is how long the fault stays armed. Zero is until its last strike.
		For time.Duration `drain:"for"`
		// Delay is a delay, a duration or a clock difference, as the fault defines it.
		Delay Range `drain:"delay"`
	}
)
