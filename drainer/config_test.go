package drainer

import (
	"math"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/drainer/internal/fixture"
	"github.com/seed-f9cf0b39/nodedrain/drainer/rules"
)

// For a config that cannot work, NewNodeDrainer and NewTerm return an error that names the field.
func TestConfig_Refused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*NodeDrainerConfig)
		want string
	}{
		"no raft":                      {func(c *NodeDrainerConfig) { c.Raft = nil }, "NodeDrainerConfig.Raft is required: it is nil, or a nil pointer"},
		"a raft that is a nil pointer": {func(c *NodeDrainerConfig) { c.Raft = (*fakeRaft)(nil) }, "NodeDrainerConfig.Raft is required: it is nil, or a nil pointer"},
		"queries below zero":           {func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = -1 }, "NodeDrainerConfig.StateQueriesPerSecond must be > 0"},
		"queries not a number":         {func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = math.NaN() }, "NodeDrainerConfig.StateQueriesPerSecond must be > 0"},
		"no room for a mark": {func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 1 },
			"NodeDrainerConfig.MaxIDsPerEntry must be >= 2: a mark and its evaluation are in one entry"},
		"ids below zero":       {func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = -5 }, "NodeDrainerConfig.MaxIDsPerEntry must be >= 2: a mark and its evaluation are in one entry"},
		"too few bytes":        {func(c *NodeDrainerConfig) { c.MaxBytesPerEntry = 4095 }, "NodeDrainerConfig.MaxBytesPerEntry must be >= 4096"},
		"nothing in flight":    {func(c *NodeDrainerConfig) { c.MaxInFlight = -1 }, "NodeDrainerConfig.MaxInFlight must be >= 1"},
		"interval below zero":  {func(c *NodeDrainerConfig) { c.MinWriteInterval = -1 }, "NodeDrainerConfig.MinWriteInterval must be >= 0"},
		"retry below zero":     {func(c *NodeDrainerConfig) { c.Retry.Base = -1 }, "NodeDrainerConfig.Retry.Base must be >= 0"},
		"retry max below base": {func(c *NodeDrainerConfig) { c.Retry.Base, c.Retry.Max = 2, 1 }, "NodeDrainerConfig.Retry.Max must be >= Retry.Base (2ns)"},
		"retry max below zero": {func(c *NodeDrainerConfig) { c.Retry.Max = -1 }, "NodeDrainerConfig.Retry.Max must be >= Retry.Base (50ms)"},
		"policy":               {func(c *NodeDrainerConfig) { c.Policy.HealthGrace = -1 }, "NodeDrainerConfig.Policy.HealthGrace is -1ns and must be >= 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NodeDrainerConfig{Raft: &fakeRaft{}}
			test.edit(&c)
			d, err := NewNodeDrainer(c)
			must.EqError(t, err, test.want)
			must.Nil(t, d)
			term, err := NewTerm(c, newMemory(fixture.NewCluster(1, 0)), nil)
			must.EqError(t, err, test.want)
			must.Nil(t, term)
		})
	}
}

// Zero values become the documented defaults. Other values stay.
func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	c := NodeDrainerConfig{}.withDefaults()
	must.Eq(t, 500.0, c.StateQueriesPerSecond)
	must.Eq(t, 500, c.MaxIDsPerEntry)
	must.Eq(t, 512<<10, c.MaxBytesPerEntry)
	must.Eq(t, 4, c.MaxInFlight)
	must.Eq(t, 0, c.MinWriteInterval)
	must.Eq(t, 250*time.Millisecond, c.DeadlineCoalesce)
	must.Eq(t, 50*time.Millisecond, c.Retry.Base)
	must.Eq(t, 15*time.Second, c.Retry.Max)
	must.Eq(t, rules.Policy{HealthGrace: 10 * time.Second, StopMargin: 15 * time.Second, BelowBudget: rules.BelowBudgetHold, PluginsAfterDeadline: rules.PluginsAfterWait, Completion: rules.CompletionStopped}, c.Policy)
	must.NotNil(t, c.Logger)
	must.NotNil(t, c.NodeWatcher)
	must.NotNil(t, c.JobWatcher)
	must.NotNil(t, c.DeadlineNotifier)
	must.NotEq(t, c.NewEvalID(), c.NewEvalID())

	c.Raft = &fakeRaft{}
	must.NoError(t, c.validate())
	chosen := NodeDrainerConfig{
		StateQueriesPerSecond: 1, MaxIDsPerEntry: 2, MaxBytesPerEntry: 4096, MaxInFlight: 5, MinWriteInterval: 6, DeadlineCoalesce: -1,
		Retry: Backoff{Base: time.Minute}, Policy: rules.Policy{HealthGrace: 7, StopMargin: 8, BelowBudget: rules.BelowBudgetProceed, PluginsAfterDeadline: rules.PluginsAfterStop, Completion: rules.CompletionMarked},
		NewEvalID: func() cluster.EvalID { return "mine" },
	}
	got := chosen.withDefaults()
	must.Eq(t, cluster.EvalID("mine"), got.NewEvalID())
	must.Eq(t, time.Minute, got.Retry.Max, must.Sprint("a base above the default maximum is its own maximum"))
	chosen.Retry.Max = time.Minute
	got.Logger, got.NodeWatcher, got.JobWatcher, got.DeadlineNotifier, got.NewEvalID = nil, nil, nil, nil, nil
	chosen.NewEvalID = nil
	must.Eq(t, chosen, got)
}
