package drainer

import (
	"math"
	"reflect"
	"slices"
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
			"NodeDrainerConfig.MaxIDsPerEntry must be >= 2"},
		"ids below zero":       {func(c *NodeDrainerConfig) { c.MaxIDsPerEntry = -5 }, "NodeDrainerConfig.MaxIDsPerEntry must be >= 2"},
		"too few bytes":        {func(c *NodeDrainerConfig) { c.MaxBytesPerEntry = 4095 }, "NodeDrainerConfig.MaxBytesPerEntry must be >= 4096"},
		"nothing in flight":    {func(c *NodeDrainerConfig) { c.MaxInFlight = -1 }, "NodeDrainerConfig.MaxInFlight must be >= 1"},
		"interval below zero":  {func(c *NodeDrainerConfig) { c.MinWriteInterval = -1 }, "NodeDrainerConfig.MinWriteInterval must be >= 0"},
		"retry below zero":     {func(c *NodeDrainerConfig) { c.Retry.Base = -1 }, "NodeDrainerConfig.Retry.Base must be >= 0"},
		"retry max below base": {func(c *NodeDrainerConfig) { c.Retry.Base, c.Retry.Max = 2, 1 }, "NodeDrainerConfig.Retry.Max must be >= Retry.Base (2ns)"},
		"retry max below zero": {func(c *NodeDrainerConfig) { c.Retry.Max = -1 }, "NodeDrainerConfig.Retry.Max must be >= 0"},
		"policy":               {func(c *NodeDrainerConfig) { c.Policy.HealthGrace = -1 }, "NodeDrainerConfig.Policy.HealthGrace must be >= 0"},
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

// Each field of the configuration that is a number, a time or a choice has a knob, and only those.
func TestConfig_KnobsCoverTheFields(t *testing.T) {
	t.Parallel()
	c := &NodeDrainerConfig{}
	var fields []string
	var add func(prefix string, v reflect.Value)
	add = func(prefix string, v reflect.Value) {
		for field, value := range v.Fields() {
			switch value.Kind() {
			case reflect.Struct:
				add(prefix+field.Name+".", value)
			case reflect.Pointer, reflect.Interface, reflect.Func:
			default:
				fields = append(fields, prefix+field.Name)
			}
		}
	}
	add("", reflect.ValueOf(c).Elem())
	var knobs []string
	names := map[string]bool{}
	for _, k := range c.Knobs() {
		knobs = append(knobs, k.Field)
		must.False(t, names[k.Name], must.Sprint("two knobs have the name ", k.Name))
		names[k.Name] = true
		must.StrHasSuffix(t, ".", k.Text)
	}
	slices.Sort(fields)
	must.Eq(t, fields, slices.Sorted(slices.Values(knobs)))
}

// Each knob changes its own field: a text that it prints is read again, and no other field changes.
func TestConfig_KnobsSetTheirField(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"queries": "7.5", "max-ids": "20", "max-bytes": "5000", "in-flight": "2", "min-interval": "1m30s", "coalesce": "none", "retry": "1s", "retry-max": "2s",
		"health-grace": "3s", "stop-margin": "1h", "below-budget": "proceed", "plugins": "after-stop", "completion": "replaced",
	}
	c := &NodeDrainerConfig{}
	must.MapLen(t, len(c.Knobs()), values)
	for i, k := range c.Knobs() {
		must.NoError(t, k.Value.Set(values[k.Name]))
		must.EqOp(t, values[k.Name], k.Value.String())
		for j, other := range c.Knobs() {
			must.EqOp(t, j > i, other.Value.IsZero(), must.Sprint(k.Name, " and ", other.Name))
		}
		must.Error(t, k.Value.Set("nonsense"), must.Sprint(k.Name))
		must.EqOp(t, values[k.Name], k.Value.String(), must.Sprint("a refused text changes nothing"))
	}
	must.Eq(t, NodeDrainerConfig{
		StateQueriesPerSecond: 7.5, MaxIDsPerEntry: 20, MaxBytesPerEntry: 5000, MaxInFlight: 2, MinWriteInterval: 90 * time.Second, DeadlineCoalesce: -1,
		Retry:  Backoff{Base: time.Second, Max: 2 * time.Second},
		Policy: rules.Policy{HealthGrace: 3 * time.Second, StopMargin: time.Hour, BelowBudget: rules.BelowBudgetProceed, PluginsAfterDeadline: rules.PluginsAfterStop, Completion: rules.CompletionReplaced},
	}, *c)
}
