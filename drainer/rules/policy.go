package rules

import (
	"cmp"
	"fmt"
	"time"
)

// Policy configures decisions. A raft entry holds the policy of its plan, so that every server
// checks the plan by the same policy.
type Policy struct {
	// HealthGrace is the time from the healthy deadline of its group until an allocation without a
	// verdict is overdue. Zero is [DefaultHealthGrace].
	HealthGrace time.Duration
	// StopMargin is how long a drain waits, after the deadline, for an allocation beyond its stop
	// time. It gives time for the evaluation and the client's report. With a short margin, drains
	// end while tasks still stop. Zero is [DefaultStopMargin].
	StopMargin time.Duration
	// BelowBudget is what happens to a group that has fewer healthy allocations than its budget
	// requires and nothing under way. Zero is [BelowBudgetHold].
	BelowBudget BelowBudget
	// PluginsAfterDeadline is when storage plugins are stopped after the deadline. Zero is
	// [PluginsAfterWait].
	PluginsAfterDeadline PluginOrder
	// Completion is the condition for the end of a drain before its deadline. Zero is
	// [CompletionStopped]. After the deadline, every policy except [CompletionMarked] acts as
	// [CompletionStopped].
	Completion CompletionPolicy
}

// Defaults of [Policy].
const (
	DefaultHealthGrace = 10 * time.Second
	DefaultStopMargin  = 15 * time.Second
)

// BelowBudget is what happens to a group below its budget.
type BelowBudget uint8

const (
	// BelowBudgetHold leaves the group alone until it recovers or the deadline comes.
	BelowBudgetHold BelowBudget = iota
	// BelowBudgetProceed marks its allocations one at a time.
	BelowBudgetProceed
)

// PluginOrder is when storage plugins are stopped after the deadline.
type PluginOrder uint8

const (
	// PluginsAfterWait stops plugins when the wait for the stages before them has ended.
	PluginsAfterWait PluginOrder = iota
	// PluginsAfterStop stops plugins only when the stages before them have stopped. If a task never
	// stops, the drain never ends, even with a deadline.
	PluginsAfterStop
)

// CompletionPolicy is the condition for the end of a drain.
type CompletionPolicy uint8

const (
	// CompletionStopped means that all allocations that had to leave are client-terminal.
	CompletionStopped CompletionPolicy = iota
	// CompletionReplaced means CompletionStopped, and that each service allocation that the
	// drain marked has a replacement, or a blocked evaluation of its job waits for capacity, or
	// the job no longer wants one.
	CompletionReplaced
	// CompletionMigrated means CompletionReplaced, and that the ephemeral data of each allocation
	// that the drain marked has moved or cannot move.
	CompletionMigrated
	// CompletionMarked means that all allocations that have to leave are marked, each in its
	// turn.
	CompletionMarked
)

// String returns the policy's name as scenarios and configurations write it.
func (c CompletionPolicy) String() string {
	names := [...]string{"stopped", "replaced", "migrated", "asked"}
	if int(c) >= len(names) {
		return "unknown completion policy"
	}
	return names[c]
}

// WithDefaults returns p with its zero values filled in.
func (p Policy) WithDefaults() Policy {
	p.HealthGrace = cmp.Or(p.HealthGrace, DefaultHealthGrace)
	p.StopMargin = cmp.Or(p.StopMargin, DefaultStopMargin)
	return p
}

// Validate names the first field that cannot work, or returns nil.
func (p Policy) Validate() error {
	switch {
	case p.HealthGrace < 0:
		return fmt.Errorf("Policy.HealthGrace is %s and must be >= 0", p.HealthGrace)
	case p.StopMargin < 0:
		return fmt.Errorf("Policy.StopMargin is %s and must be >= 0", p.StopMargin)
	case p.BelowBudget > BelowBudgetProceed:
		return fmt.Errorf("Policy.BelowBudget is %d, which is no policy", p.BelowBudget)
	case p.PluginsAfterDeadline > PluginsAfterStop:
		return fmt.Errorf("Policy.PluginsAfterDeadline is %d, which is no order", p.PluginsAfterDeadline)
	case p.Completion > CompletionMarked:
		return fmt.Errorf("Policy.Completion is %d, which is no completion policy", p.Completion)
	}
	return nil
}
