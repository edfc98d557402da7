package timeline

// Cause is the cause of a line of a trace. It names the step of an earlier line.
type Cause struct {
	// By is the kind of the cause; never empty.
	By By `json:"by"`
	// Step is the step of the cause. Zero is before the first step: for an operation it is
	// the scenario itself, otherwise the start of the first term.
	Step uint64 `json:"step"`
	// Index is the raft index of the causing entry, or zero.
	Index uint64 `json:"index,omitempty"`
}

// By is a kind of cause.
type By string

// The causes of steps.
const (
	// ByOperation: an event of the scenario.
	ByOperation By = "operation"
	// ByTimer: the actor's timer. The cause is the step that set the timer or the clock.
	ByTimer By = "timer"
	// ByEntry: an applied entry that woke the actor.
	ByEntry By = "entry"
	// ByAnswer: an answer to a write of the drainer.
	ByAnswer By = "answer"
	// ByElection: the start of a term.
	ByElection By = "election"
	// ByFault: a strike of a fault.
	ByFault By = "fault"
	// ByRace: an event between plan and apply of the entry of that step.
	ByRace By = "race"
	// ByStep: any other event of that step.
	ByStep By = "step"
)

// The causes of writes, and of their entries and answers: the proposers.
const (
	ByDrainer   By = "drainer"
	ByScheduler By = "scheduler"
	ByClients   By = "clients"
	ByOperator  By = "operator"
	ByCollector By = "collector"
	ByVolumes   By = "volumes"
)
