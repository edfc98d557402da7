package drainer

import (
	"fmt"
	"time"
)

// Policy is what a drainer decides by, besides the state. The values a plan used
// travel in its raft entry, so that every server judges the plan by the same.
type Policy struct {
	// HealthGrace is how long after its group's healthy deadline an allocation
	// without a verdict counts as overdue. Zero is [DefaultHealthGrace].
	HealthGrace time.Duration
	// StopMargin is how long past its stop time an allocation is waited for
	// after the deadline: the time for its evaluation and its client's report.
	// Too short ends drains while tasks still stop; zero is [DefaultStopMargin].
	StopMargin time.Duration
	// BelowBudget is what happens to a group that has fewer healthy allocations
	// than its budget demands and nothing under way. Zero is [Hold].
	BelowBudget BelowBudget
	// PluginsAfterDeadline is when storage plugins are stopped once the deadline
	// has passed. Zero is [AfterWait].
	PluginsAfterDeadline PluginOrder
	// Completion is what a drain that ends in its own time promises. Zero is
	// [Stopped]. From the deadline on every contract but [Asked] is [Stopped].
	Completion Contract
}

// Defaults of [Policy].
const (
	DefaultHealthGrace = 10 * time.Second
	DefaultStopMargin  = 15 * time.Second
)

// BelowBudget is what happens to a group below its budget.
type BelowBudget uint8

const (
	// Hold leaves the group alone until it recovers or the deadline comes.
	Hold BelowBudget = iota
	// Proceed marks its allocations one at a time.
	Proceed
)

// PluginOrder is when storage plugins are stopped after the deadline.
type PluginOrder uint8

const (
	// AfterWait stops plugins when the wait for those before them has run out.
	AfterWait PluginOrder = iota
	// AfterStop stops plugins only when nothing before them is left: with a
	// client that never stops, the drain never ends, whatever its deadline.
	AfterStop
)

// Contract is what the end of a drain promises.
type Contract uint8

const (
	// Stopped: all that had to leave is client-terminal.
	Stopped Contract = iota
	// Replaced: Stopped, and each service allocation the drain marked has a
	// replacement placed, or an evaluation of its job is blocked and says so, or
	// none is to come: the job no longer wants one.
	Replaced
	// Migrated: Replaced, and the ephemeral data of each allocation the drain
	// marked has moved or cannot.
	Migrated
	// Asked: all that has to leave has been marked, each in its turn.
	Asked
)

// String returns the contract's name.
func (c Contract) String() string {
	names := [...]string{"stopped", "replaced", "migrated", "asked"}
	if int(c) >= len(names) {
		return "unknown contract"
	}
	return names[c]
}

// withDefaults returns p with its zero values filled in.
func (p Policy) withDefaults() Policy {
	if p.HealthGrace == 0 {
		p.HealthGrace = DefaultHealthGrace
	}
	if p.StopMargin == 0 {
		p.StopMargin = DefaultStopMargin
	}
	return p
}

// validate names the first field that cannot work, or returns nil.
func (p Policy) validate() error {
	switch {
	case p.HealthGrace < 0:
		return fmt.Errorf("Policy.HealthGrace is %s and must be >= 0", p.HealthGrace)
	case p.StopMargin < 0:
		return fmt.Errorf("Policy.StopMargin is %s and must be >= 0", p.StopMargin)
	case p.BelowBudget > Proceed:
		return fmt.Errorf("Policy.BelowBudget is %d, which is no policy", p.BelowBudget)
	case p.PluginsAfterDeadline > AfterStop:
		return fmt.Errorf("Policy.PluginsAfterDeadline is %d, which is no order", p.PluginsAfterDeadline)
	case p.Completion > Asked:
		return fmt.Errorf("Policy.Completion is %d, which is no contract", p.Completion)
	}
	return nil
}
