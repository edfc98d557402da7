package live_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/internal/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// faultMix is a set of faults for the first part of a scenario.
type faultMix struct {
	name   string
	faults []scenario.Fault
}

// faultTime is how long the faults last.
const faultTime = 40 * time.Second

func faultMixes() []faultMix {
	upTo := func(d time.Duration) scenario.Range { return scenario.Range{Max: d} }
	return []faultMix{
		{"leader flaps", []scenario.Fault{{Name: scenario.LeaderFlap, Delay: upTo(8 * time.Second)}}},
		{"leader is lost mid-batch", []scenario.Fault{{Name: scenario.LeaderLoseMidBatch, Probability: 0.5}}},
		{"two leaders", []scenario.Fault{
			{Name: scenario.LeaderFlap, Delay: upTo(8 * time.Second)},
			{Name: scenario.LeaderTwo, Delay: upTo(3 * time.Second)},
		}},
		{"wake-ups are late", []scenario.Fault{
			{Name: scenario.WatchCoalesce, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.WatchDelay, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.LeaderPaused, Probability: 0.1, Delay: upTo(time.Second / 2)},
		}},
	}
}

// in returns a copy of the scenario with the faults, and with a seed for their random numbers.
func (mix faultMix) in(s *scenario.Scenario) *scenario.Scenario {
	c := s.Copy()
	c.Seed = uint64(len(s.Name) + len(mix.name))
	for _, f := range mix.faults {
		f.For = faultTime
		c.Events = append([]scenario.Event{{Op: &f}}, c.Events...)
	}
	return c
}

// longest is the longest play with faults.
const longest = 5 * time.Minute

// whyTimeMatters returns the reason why the final facts of a scenario may change if a fault
// delays its events. It is empty if there is no such reason.
func whyTimeMatters(s *scenario.Scenario, e ending) string {
	if e.lasts > longest {
		return "elections take too long in a long play"
	}
	if !e.rests {
		return "the deterministic run ended with events left"
	}
	type request struct {
		node cluster.NodeID
		at   time.Duration
	}
	asked := map[request]cluster.DrainSpec{}
	for _, e := range s.Events {
		switch op := e.Op.(type) {
		case *scenario.Cancel:
			return "the progress of a drain at its cancellation depends on time"
		case *scenario.Stop:
			if op.Purge {
				return "the running allocations of a job at its purge depend on time"
			}
		case *scenario.Drain:
			for _, n := range op.Nodes {
				spec := cluster.DrainSpec{Deadline: op.Deadline, IgnoreSystemJobs: op.IgnoreSystem}
				if first, twice := asked[request{n, e.At}]; twice && first != spec && e.Before == "" {
					return "the effect of the first of two drains at one time depends on time"
				}
				asked[request{n, e.At}] = spec
			}
		}
	}
	return whyEndDiffers(s)
}

// allocs counts the allocations that a scenario begins with.
func allocs(s *scenario.Scenario) (count int) {
	for _, a := range s.Allocs {
		count += a.Indexes.Count
	}
	return count
}

// Each scenario is played with one of the fault mixes. It ends as the deterministic run does
// without these faults.
func TestPlay_withFaults(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	struck := map[scenario.FaultName]int{} // guarded by mu
	t.Run("every", func(t *testing.T) {
		all := scenarios(t)
		for turn, name := range slices.Sorted(maps.Keys(all)) {
			s := all[name]
			if turn%shareOfScenarios != 0 || live.Unplayable(s) != nil {
				continue
			}
			mix := faultMixes()[turn/shareOfScenarios%len(faultMixes())]
			t.Run(name+" "+mix.name, func(t *testing.T) {
				t.Parallel()
				want := runSteps(t, s)
				if why := whyTimeMatters(s, want); why != "" {
					t.Skip(why)
				}
				result := play(t, mix.in(s), want)
				mu.Lock()
				defer mu.Unlock()
				for fault, times := range result.Strikes {
					struck[fault] += times
				}
			})
		}
	})
	t.Log(struck)
	if shareOfScenarios > 1 {
		return // a share of the scenarios may give a fault no chance to strike
	}
	for _, mix := range faultMixes() {
		for _, f := range mix.faults {
			must.Positive(t, struck[f.Name], must.Sprintf("%s never struck", f.Name))
		}
	}
}
