package setting

import (
	"fmt"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// Drainer returns the configuration of a scenario's drainers, without the log and the state.
func Drainer(d scenario.Drainer) (drainer.NodeDrainerConfig, error) {
	c := drainer.NodeDrainerConfig{
		MaxIDsPerEntry: d.MaxIDs, MaxBytesPerEntry: d.MaxBytes, MaxInFlight: d.InFlight,
		StateQueriesPerSecond: d.QueriesPerSecond, MinWriteInterval: d.MinInterval, DeadlineCoalesce: d.Coalesce,
		Retry:  drainer.Backoff{Base: d.RetryBase, Max: d.RetryMax},
		Policy: rules.Policy{HealthGrace: d.HealthGrace, StopMargin: d.StopMargin},
	}
	switch d.BelowBudget {
	case "", "hold":
	case "proceed":
		c.Policy.BelowBudget = rules.BelowBudgetProceed
	default:
		return c, fmt.Errorf("below-budget=%s: there is no such policy", d.BelowBudget)
	}
	switch d.Plugins {
	case "", "after-wait":
	case "after-stop":
		c.Policy.PluginsAfterDeadline = rules.PluginsAfterStop
	default:
		return c, fmt.Errorf("plugins=%s: there is no such order", d.Plugins)
	}
	for _, contract := range []rules.CompletionPolicy{rules.CompletionStopped, rules.CompletionReplaced, rules.CompletionMigrated, rules.CompletionMarked} {
		if d.Completion == "" || d.Completion == contract.String() {
			c.Policy.Completion = contract
			return c, nil
		}
	}
	return c, fmt.Errorf("completion=%s: there is no such contract", d.Completion)
}

// Spec returns the specification of a drain request.
func Spec(d *scenario.Drain) cluster.DrainSpec {
	return cluster.DrainSpec{Deadline: d.Deadline, IgnoreSystemJobs: d.IgnoreSystem}
}
