package cluster_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func forced() cluster.DrainStrategy {
	return cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{Deadline: -1}, StartedAt: noon}
}

func endless() cluster.DrainStrategy { return cluster.DrainStrategy{StartedAt: noon} }

func within(d time.Duration) cluster.DrainStrategy {
	return cluster.DrainStrategy{
		DrainSpec:     cluster.DrainSpec{Deadline: d},
		StartedAt:     noon,
		ForceDeadline: noon.Add(d),
	}
}

func TestDrainStrategy_Passed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		strategy       cluster.DrainStrategy
		now            time.Time
		passed, finite bool
	}{
		"forced, before it began":        {forced(), noon.Add(-time.Hour), true, true},
		"no deadline, a century on":      {endless(), noon.AddDate(100, 0, 0), false, false},
		"before the deadline":            {within(time.Hour), noon.Add(time.Hour - 1), false, true},
		"at the deadline":                {within(time.Hour), noon.Add(time.Hour), true, true},
		"after the deadline":             {within(time.Hour), noon.Add(time.Hour + 1), true, true},
		"a clock set back to before all": {within(time.Hour), noon.Add(-time.Hour), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			must.Eq(t, test.passed, test.strategy.Passed(test.now))
			must.Eq(t, test.finite, test.strategy.Finite())
		})
	}
}

func TestDrainStrategy_CompareUrgency(t *testing.T) {
	t.Parallel()
	order := []cluster.DrainStrategy{forced(), within(time.Minute), within(time.Hour), endless()}
	for i, a := range order {
		for j, b := range order {
			got := a.CompareUrgency(&b)
			switch {
			case i < j:
				must.Negative(t, got)
			case i > j:
				must.Positive(t, got)
			default:
				must.Zero(t, got)
			}
		}
	}
}

func TestDrain_Leaves(t *testing.T) {
	t.Parallel()
	all := &cluster.Drain{}
	withoutSystem := &cluster.Drain{Strategy: cluster.DrainStrategy{DrainSpec: cluster.DrainSpec{IgnoreSystemJobs: true}}}
	for _, stage := range cluster.Stages() {
		must.True(t, all.Leaves(stage))
		must.Eq(t, stage != cluster.StageSystem, withoutSystem.Leaves(stage), must.Sprint(stage))
	}
}

// A deadline is named in the outcome only if it marked something.
func TestDrain_CompletedOutcome(t *testing.T) {
	t.Parallel()
	marked := func(classes ...cluster.MarkClass) *cluster.Drain {
		d := &cluster.Drain{Strategy: within(time.Second)}
		for _, class := range classes {
			d.Marked[class]++
		}
		return d
	}
	must.Eq(t, cluster.OutcomeComplete, marked().CompletedOutcome())
	must.Eq(t, cluster.OutcomeComplete, marked(
		cluster.MarkPaced, cluster.MarkFree, cluster.MarkCanary, cluster.MarkGone, cluster.MarkStage, cluster.MarkProceed,
	).CompletedOutcome())
	must.Eq(t, cluster.OutcomeDeadlineReached, marked(cluster.MarkPaced, cluster.MarkDeadline).CompletedOutcome())
	must.Eq(t, cluster.OutcomeForced, marked(cluster.MarkDeadline, cluster.MarkForced).CompletedOutcome())
}

func TestDrain_HasKey(t *testing.T) {
	t.Parallel()
	d := &cluster.Drain{Keys: []string{"", "monday"}}
	must.True(t, d.HasKey("monday"))
	must.False(t, d.HasKey("tuesday"))
	must.False(t, d.HasKey(""), must.Sprint("the empty key is no key"))
}

func TestNode_AppendEvent(t *testing.T) {
	t.Parallel()
	node := &cluster.Node{}
	for index := range uint64(25) {
		before := node.Copy()
		shallow := *node
		node.AppendEvent(cluster.NodeEvent{Message: "something"}, index)

		must.Eq(t, before, &shallow, must.Sprint("an append does not change a shallow copy"))
		must.LessEq(t, cluster.MaxNodeEvents, len(node.Events))
		must.Eq(t, index, node.Events[len(node.Events)-1].CreateIndex)
	}
	indexes := slices.Collect(func(yield func(uint64) bool) {
		for _, event := range node.Events {
			if !yield(event.CreateIndex) {
				return
			}
		}
	})
	must.Eq(t, []uint64{15, 16, 17, 18, 19, 20, 21, 22, 23, 24}, indexes)
}

// Two copies of a node that each append must not write to the same array.
func TestNode_AppendEvent_sharedArray(t *testing.T) {
	t.Parallel()
	node := cluster.Node{Events: make([]cluster.NodeEvent, 1, 8)}
	first, second := node, node
	first.AppendEvent(cluster.NodeEvent{Message: "first"}, 1)
	second.AppendEvent(cluster.NodeEvent{Message: "second"}, 2)
	must.Eq(t, "first", first.Events[1].Message)
	must.Eq(t, "second", second.Events[1].Message)
}

func TestNode_states(t *testing.T) {
	t.Parallel()
	var missing *cluster.Node
	must.False(t, missing.Draining())
	must.False(t, missing.Ready())
	must.False(t, missing.Reachable())

	for _, test := range []struct {
		status           cluster.NodeStatus
		ready, reachable bool
	}{
		{cluster.NodeInitializing, false, true},
		{cluster.NodeReady, true, true},
		{cluster.NodeDown, false, false},
		{cluster.NodeDisconnected, false, false},
	} {
		must.True(t, test.status.Valid())
		node := &cluster.Node{Status: test.status, SchedulingEligibility: cluster.NodeEligible}
		must.Eq(t, test.ready, node.Ready(), must.Sprint(test.status))
		must.Eq(t, test.reachable, node.Reachable(), must.Sprint(test.status))

		ineligible := node.Copy()
		ineligible.SchedulingEligibility = cluster.NodeIneligible
		must.False(t, ineligible.Ready())

		draining := node.Copy()
		draining.Drain = &cluster.Drain{}
		must.False(t, draining.Ready())
		must.Eq(t, test.reachable, draining.Reachable(), must.Sprint("what a draining node runs still counts"))
	}
	must.False(t, cluster.NodeStatus("asleep").Valid())
	must.False(t, cluster.Eligibility("").Valid())
}

func TestNode_Canonicalize(t *testing.T) {
	t.Parallel()
	node := &cluster.Node{}
	node.Canonicalize()
	must.Eq(t, &cluster.Node{
		NodePool: "default", Status: cluster.NodeInitializing, SchedulingEligibility: cluster.NodeEligible,
	}, node)

	node.SchedulingEligibility = cluster.NodeIneligible
	node.Canonicalize()
	must.Eq(t, cluster.NodeIneligible, node.SchedulingEligibility)

	draining := &cluster.Node{Drain: &cluster.Drain{}, SchedulingEligibility: cluster.NodeEligible}
	draining.Canonicalize()
	must.Eq(t, cluster.NodeIneligible, draining.SchedulingEligibility)
}

func TestNode_Available(t *testing.T) {
	t.Parallel()
	node := &cluster.Node{
		Resources: cluster.Resources{CPU: 4000, MemoryMB: 8192, DiskMB: 10, GPU: 2000},
		Reserved:  cluster.Resources{CPU: 500, MemoryMB: 192},
	}
	must.Eq(t, cluster.Resources{CPU: 3500, MemoryMB: 8000, DiskMB: 10, GPU: 2000}, node.Available())
}
