package drainer

import (
	"math"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

// A config that cannot work is refused by everything that is built from one, and
// the field is named.
func TestConfig_Refused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*NodeDrainerConfig)
		want string
	}{
		"no raft":              {func(c *NodeDrainerConfig) { c.Raft = nil }, "NodeDrainerConfig.Raft is required"},
		"queries below zero":   {func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = -1 }, "NodeDrainerConfig.StateQueriesPerSecond is -1 and must be > 0"},
		"queries not a number": {func(c *NodeDrainerConfig) { c.StateQueriesPerSecond = math.NaN() }, "NodeDrainerConfig.StateQueriesPerSecond is NaN and must be > 0"},
		"no room for a mark": {func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = 1 },
			"NodeDrainerConfig.MaxIDsPerEntry is 1 and must be >= 2: a mark travels with its evaluation"},
		"ids below zero":       {func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = -5 }, "NodeDrainerConfig.MaxIDsPerEntry is -5 and must be >= 2: a mark travels with its evaluation"},
		"bytes for nothing":    {func(c *NodeDrainerConfig) { c.MaxBytesPerEntry = 4095 }, "NodeDrainerConfig.MaxBytesPerEntry is 4095 and must be >= 4096"},
		"nothing in flight":    {func(c *NodeDrainerConfig) { c.MaxInFlight = -1 }, "NodeDrainerConfig.MaxInFlight is -1 and must be >= 1"},
		"interval below zero":  {func(c *NodeDrainerConfig) { c.MinWriteInterval = -1 }, "NodeDrainerConfig.MinWriteInterval is -1ns and must be >= 0"},
		"retry below zero":     {func(c *NodeDrainerConfig) { c.RetryBase = -1 }, "NodeDrainerConfig.RetryBase is -1ns and must be >= 0"},
		"retry max below base": {func(c *NodeDrainerConfig) { c.RetryBase, c.RetryMax = 2, 1 }, "NodeDrainerConfig.RetryMax is 1ns and must be >= RetryBase (2ns)"},
		"retry max below zero": {func(c *NodeDrainerConfig) { c.RetryMax = -1 }, "NodeDrainerConfig.RetryMax is -1ns and must be >= RetryBase (50ms)"},
		"grace below zero":     {func(c *NodeDrainerConfig) { c.Policy.HealthGrace = -1 }, "NodeDrainerConfig.Policy.HealthGrace is -1ns and must be >= 0"},
		"margin below zero":    {func(c *NodeDrainerConfig) { c.Policy.StopMargin = -1 }, "NodeDrainerConfig.Policy.StopMargin is -1ns and must be >= 0"},
		"no such policy":       {func(c *NodeDrainerConfig) { c.Policy.BelowBudget = Proceed + 1 }, "NodeDrainerConfig.Policy.BelowBudget is 2, which is no policy"},
		"no such order":        {func(c *NodeDrainerConfig) { c.Policy.PluginsAfterDeadline = AfterStop + 1 }, "NodeDrainerConfig.Policy.PluginsAfterDeadline is 2, which is no order"},
		"no such contract":     {func(c *NodeDrainerConfig) { c.Policy.Completion = Asked + 1 }, "NodeDrainerConfig.Policy.Completion is 4, which is no contract"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NodeDrainerConfig{Raft: &fakeRaft{}}
			test.edit(&c)
			d, err := NewNodeDrainer(c)
			must.EqError(t, err, test.want)
			must.Nil(t, d)
			term, err := NewTerm(c, newMemory(newTown(1, 0)), nil)
			must.EqError(t, err, test.want)
			must.Nil(t, term)
		})
	}
}

// Zero values are the documented defaults, and what is set is left alone.
func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	c := NodeDrainerConfig{}.withDefaults()
	must.Eq(t, 500.0, c.StateQueriesPerSecond)
	must.Eq(t, 500, c.MaxIDsPerEntry)
	must.Eq(t, 512<<10, c.MaxBytesPerEntry)
	must.Eq(t, 4, c.MaxInFlight)
	must.Eq(t, 0, c.MinWriteInterval)
	must.Eq(t, 250*time.Millisecond, c.DeadlineCoalesce)
	must.Eq(t, 50*time.Millisecond, c.RetryBase)
	must.Eq(t, 15*time.Second, c.RetryMax)
	must.Eq(t, Policy{HealthGrace: 10 * time.Second, StopMargin: 15 * time.Second, BelowBudget: Hold, PluginsAfterDeadline: AfterWait, Completion: Stopped}, c.Policy)
	must.NotNil(t, c.Logger)
	must.NotNil(t, c.NodeWatcher)
	must.NotNil(t, c.JobWatcher)
	must.NotNil(t, c.DeadlineNotifier)
	must.NotEq(t, c.NewEvalID(), c.NewEvalID())

	c.Raft = &fakeRaft{}
	must.NoError(t, c.validate())
	chosen := NodeDrainerConfig{
		StateQueriesPerSecond: 1, MaxIDsPerEntry: 2, MaxBytesPerEntry: 4096, MaxInFlight: 5, MinWriteInterval: 6, DeadlineCoalesce: -1,
		RetryBase: time.Minute, Policy: Policy{HealthGrace: 7, StopMargin: 8, BelowBudget: Proceed, PluginsAfterDeadline: AfterStop, Completion: Asked},
		NewEvalID: func() cluster.EvalID { return "mine" },
	}
	got := chosen.withDefaults()
	must.Eq(t, cluster.EvalID("mine"), got.NewEvalID())
	must.Eq(t, time.Minute, got.RetryMax, must.Sprint("a base above the default maximum is its own maximum"))
	chosen.RetryMax = time.Minute
	got.Logger, got.NodeWatcher, got.JobWatcher, got.DeadlineNotifier, got.NewEvalID = nil, nil, nil, nil, nil
	chosen.NewEvalID = nil
	must.Eq(t, chosen, got)
}

func TestNames(t *testing.T) {
	t.Parallel()
	must.Eq(t, []string{"stopped", "replaced", "migrated", "asked", "unknown contract"},
		[]string{Stopped.String(), Replaced.String(), Migrated.String(), Asked.String(), Contract(9).String()})
	must.Eq(t, []string{"unknown", "rejected", "applied", "unknown"},
		[]string{Unknown.String(), Rejected.String(), Applied.String(), Outcome(9).String()})
}
