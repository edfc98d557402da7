package timeline

// Cause is what had something happen: with it, who reads a trace goes back from a line to
// the one before it in the story.
type Cause struct {
	// By says what it was; never empty.
	By By `json:"by"`
	// Step is the step in which that was; its lines say more. Zero is before the first: of
	// an operation the scenario as it was read, else the first leader.
	Step uint64 `json:"step"`
	// Index is the raft index of the entry, if it was one; or zero.
	Index uint64 `json:"index,omitempty"`
}

// By is a kind of cause.
type By string

// The causes of steps.
const (
	// ByOperation: the scenario says so.
	ByOperation By = "operation"
	// ByTimer: who is stepped has waited for this time, since a step of its own or since
	// a clock was set.
	ByTimer By = "timer"
	// ByEntry: an entry was applied, and whoever follows what it touched was woken.
	ByEntry By = "entry"
	// ByAnswer: the drainer was told what became of a write.
	ByAnswer By = "answer"
	// ByElection: a term began.
	ByElection By = "election"
	// ByFault: a fault struck.
	ByFault By = "fault"
	// ByRace: it was to come between plan and apply of the entry of that step.
	ByRace By = "race"
	// ByStep: something else in that step.
	ByStep By = "step"
)

// The causes of writes, of their entries and of the answers to them: who proposed them.
const (
	ByDrainer   By = "drainer"
	ByScheduler By = "scheduler"
	ByClients   By = "clients"
	ByOperator  By = "operator"
)
