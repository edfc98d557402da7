package rules

import (
	"time"

	"github.com/seed-f9cf0b39/nodedrain/drainer/knob"
)

// Policy configures what a drain may do: which allocation may leave, and when a drain may end. A raft
// entry holds the policy of its plan, so that every server checks the plan by the same policy.
//
// A new knob belongs here if the check of an entry has to use the same value as its plan. It is then
// part of every entry, so it needs a version of the cluster's log. A knob that only changes when or how
// the leader plans and writes belongs to drainer.NodeDrainerConfig: no other server reads it.
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
	// BelowBudgetProceed marks its allocations one at a time, also the last healthy one.
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
	// CompletionStopped means that all allocations that had to leave are client-terminal, and that
	// before the deadline no data on the node can still move to a replacement.
	CompletionStopped CompletionPolicy = iota
	// CompletionReplaced means CompletionStopped, and that each service allocation that the
	// drain marked has a replacement, or a blocked evaluation of its job waits for capacity, or
	// the job no longer needs one.
	CompletionReplaced
	// CompletionMigrated means CompletionReplaced, and that the ephemeral data of each allocation
	// that the drain marked has moved or cannot move.
	CompletionMigrated
	// CompletionMarked means that all allocations that have to leave are marked, each in its
	// turn.
	CompletionMarked
)

// String returns the policy's name as scenarios and flags write it.
func (c CompletionPolicy) String() string { return completion(&c).String() }

func completion(at *CompletionPolicy) knob.Value {
	return knob.Choice(at, "stopped", "replaced", "migrated", "marked")
}

// Knobs declares the fields of the policy.
func (p *Policy) Knobs() knob.List {
	return knob.List{
		{
			Name: "health-grace", Field: "Policy.HealthGrace", Value: knob.Duration(&p.HealthGrace, DefaultHealthGrace),
			Text: "Time after the healthy deadline of a group until an allocation without a verdict is overdue.",
		},
		{
			Name: "stop-margin", Field: "Policy.StopMargin", Value: knob.Duration(&p.StopMargin, DefaultStopMargin),
			Text: "Time that a drain waits after its deadline for an allocation beyond its stop time.",
		},
		{
			Name: "below-budget", Field: "Policy.BelowBudget", Value: knob.Choice(&p.BelowBudget, "hold", "proceed"), Operator: true,
			Text: "What happens to a group that has fewer healthy allocations than its budget requires: wait until it recovers, or move one allocation at a time, also the last healthy one.",
		},
		{
			Name: "plugins", Field: "Policy.PluginsAfterDeadline", Value: knob.Choice(&p.PluginsAfterDeadline, "after-wait", "after-stop"), Operator: true,
			Text: "When storage plugins stop after the deadline: after the wait for their users, or only after their users have stopped.",
		},
		{
			Name: "completion", Field: "Policy.Completion", Value: completion(&p.Completion), Operator: true,
			Text: "What must be true of the allocations that leave when a drain ends before its deadline.",
		},
	}
}

// WithDefaults returns p with its zero values filled in.
func (p Policy) WithDefaults() Policy {
	p.Knobs().SetDefaults()
	return p
}

// Validate names the first field that is not within its bounds, or returns nil.
func (p Policy) Validate() error { return p.Knobs().Validate() }
