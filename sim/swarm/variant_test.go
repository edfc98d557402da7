package swarm_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// Each variant is a valid scenario, and its run differs from the steady run. Equal scenarios have
// equal variants.
//
//race:skip one world after the other
func TestVariants_changeTheRun(t *testing.T) {
	t.Parallel()
	steady := swarm.Steady(swarm.Generate(1, swarm.Small))
	original, err := sim.Play(steady, sim.Options{})
	must.NoError(t, err)
	before := printed(t, steady)
	var names []string
	for _, v := range swarm.Variants() {
		variant := v.Apply(steady)
		must.Eq(t, printed(t, variant), printed(t, v.Apply(steady)))
		must.Eq(t, before, printed(t, steady), must.Sprint("the steady scenario does not change"))
		read, _, err := scenario.Parse(variant.Name+scenario.Extension, strings.NewReader(printed(t, variant)))
		must.NoError(t, err)
		result, err := sim.Play(read, sim.Options{})
		must.NoError(t, err)
		must.NotEq(t, original.Hash, result.Hash, must.Sprint(v.Name))
		must.SliceEmpty(t, result.Violations, must.Sprint(v.Name))
		names = append(names, v.Name)
	}
	slices.Sort(names)
	must.Len(t, len(swarm.Variants()), slices.Compact(names))
}

// The steady run and its variant end with equal facts.
//
//race:skip the same goroutines as TestPlay_otherFacts
func TestPlay_metamorphic(t *testing.T) {
	t.Parallel()
	for size, seeds := range map[swarm.Size]int{swarm.Small: 40, swarm.Medium: 1} {
		report, err := swarm.Play(context.Background(), swarm.Options{Seeds: seeds, Size: size, Twice: -1, Metamorphic: 1})
		must.NoError(t, err)
		must.Eq(t, seeds, report.Variants)
		for _, f := range report.Failures {
			must.Eq(t, "", f.Variant, must.Sprint(f.String()))
		}
	}
}

// Small seed 3000016483 ended a drain differently with writes at a slower pace: a verdict came
// before the mark of an allocation that was overdue from the beginning.
func TestSteady_verdictsAreNotOverdue(t *testing.T) {
	t.Parallel()
	s := &scenario.Scenario{Allocs: []scenario.Alloc{{Health: "none", Age: 2 * time.Minute}, {Health: "good", Age: time.Hour}}}
	steady := swarm.Steady(s)
	must.Eq(t, time.Second, steady.Allocs[0].Age)
	must.Eq(t, time.Hour, steady.Allocs[1].Age)
	must.Eq(t, 2*time.Minute, s.Allocs[0].Age) // the seed's own scenario is not changed
}

// Small seed 5000018250 ended a drain differently when the scheduler broke ties in another way: a
// replacement was placed on the node that drained next.
func TestSteady_nothingIsPlacedOnNodesThatDrain(t *testing.T) {
	t.Parallel()
	s := &scenario.Scenario{
		Nodes:  []scenario.Node{{IDs: []cluster.NodeID{"a", "b"}}},
		Events: []scenario.Event{{Op: &scenario.Drain{Nodes: []cluster.NodeID{"b"}}}},
	}
	ineligible := map[cluster.NodeID]bool{}
	for _, n := range swarm.Steady(s).Nodes {
		ineligible[n.IDs[0]] = n.Ineligible
	}
	must.Eq(t, map[cluster.NodeID]bool{"a": false, "b": true, "haven1": false}, ineligible)
}

// Small seed 5100005400 ended a drain differently when writes failed: the deadline of one drain
// made room for the allocations of the other, whose deadline was three seconds away.
func TestSteady_deadlinesAreEqual(t *testing.T) {
	t.Parallel()
	drain := func(node cluster.NodeID, deadline time.Duration) scenario.Event {
		return scenario.Event{Op: &scenario.Drain{Nodes: []cluster.NodeID{node}, Deadline: deadline}}
	}
	steady := swarm.Steady(&scenario.Scenario{Events: []scenario.Event{drain("a", time.Minute), drain("b", 2*time.Hour), drain("c", 0)}})
	must.SliceLen(t, 3, steady.Events)
	for _, e := range steady.Events {
		must.Eq(t, 30*time.Minute, e.Op.(*scenario.Drain).Deadline)
	}
}

// Small seed 2200004083 ended a drain differently when nodes reported their status again: two jobs
// competed for the last devices of the nodes that did not drain.
func TestSteady_devicesForAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		groups []int // of one allocation each: how many devices it requests
		want   []int // devices of the nodes that are added
	}{
		{nil, []int{0}},
		{[]int{0}, []int{0}},
		{[]int{1, 2}, []int{3}},
		{[]int{64}, []int{64}},
		{[]int{64, 64, 2}, []int{64, 64, 2}},
	} {
		s := &scenario.Scenario{Nodes: []scenario.Node{{IDs: []cluster.NodeID{"a"}}}}
		for _, devices := range c.groups {
			g := scenario.Group{Count: 1}
			if devices > 0 {
				g.Devices = []scenario.DeviceRequest{{Name: "gpu", Count: devices}}
			}
			s.Jobs = append(s.Jobs, scenario.Job{Groups: []scenario.Group{g}})
		}
		var got []int
		for _, n := range swarm.Steady(s).Nodes[1:] {
			got = append(got, 0)
			for _, d := range n.Devices {
				got[len(got)-1] += d.Count
			}
		}
		must.Eq(t, c.want, got)
	}
}

// lossy is a simulator with a bug: an event that must not matter makes it lose all drains.
func lossy(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
	broken := s.Copy()
	if slices.ContainsFunc(broken.Events, harmless) {
		broken.Events = slices.DeleteFunc(broken.Events, func(e scenario.Event) bool {
			_, is := e.Op.(*scenario.Drain)
			return is
		})
	}
	return sim.Play(broken, o)
}

// harmless reports whether the event deletes the drainer's memory or lets its writes fail.
func harmless(e scenario.Event) bool {
	if f, is := e.Op.(*scenario.Fault); is {
		return f.On == "drainer"
	}
	_, is := e.Op.(*scenario.Forget)
	return is
}

// A variant with other facts fails. The failure names the variant and the command to replay it.
func TestPlay_otherFacts(t *testing.T) {
	t.Parallel()
	const seeds = 24
	report, err := swarm.Play(context.Background(), swarm.Options{
		Seeds: seeds, Keep: seeds, Twice: -1, Metamorphic: 1,
		Play: func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
			if !strings.Contains(s.Name, "steady") {
				return sim.Play(&scenario.Scenario{Name: s.Name, Nodes: s.Nodes}, o) // this test needs no drains in the first run
			}
			return lossy(s, o)
		},
	})
	must.NoError(t, err)
	must.Positive(t, report.Failed)
	for _, f := range report.Failures {
		must.Eq(t, swarm.Metamorphic, f.Kind, must.Sprint(f.Text))
		must.SliceContains(t, []string{"terms", "writes"}, f.Variant)
		must.SliceLen(t, 1, f.Violations)
		must.Eq(t, "facts differ", f.Violations[0].Check)
		must.StrContains(t, f.Text, "steady run and variant "+f.Variant+" (")
		must.StrHasSuffix(t, " --metamorphic 1", f.String())
		var names []string
		for _, s := range f.Scenarios() {
			names = append(names, s.Name)
			var text bytes.Buffer
			must.NoError(t, scenario.Print(&text, s))
		}
		must.StrHasSuffix(t, "-steady "+names[0]+"-"+f.Variant, strings.Join(names, " "))
	}
}

// A seed fails if its steady run breaks a guarantee.
func TestPlay_steadyRunBreaksAGuarantee(t *testing.T) {
	t.Parallel()
	report, err := swarm.Play(context.Background(), swarm.Options{
		Seeds: 1, Twice: -1, Metamorphic: 1,
		Play: func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
			result, err := plays(s, o)
			if strings.HasSuffix(s.Name, "-steady") {
				result.Violations = broken()
			}
			return result, err
		},
	})
	must.NoError(t, err)
	must.SliceLen(t, 1, report.Failures)
	must.Eq(t, swarm.Violated, report.Failures[0].Kind)
	must.NotEq(t, "", report.Failures[0].Variant)
}
