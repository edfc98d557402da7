package live_test

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// trouble is faults that go on for the first part of a scenario.
type trouble struct {
	name   string
	faults []scenario.Fault
}

// whileTrouble is how long trouble goes on.
const whileTrouble = 40 * time.Second

func troubles() []trouble {
	upTo := func(d time.Duration) scenario.Range { return scenario.Range{Max: d} }
	return []trouble{
		{"leader flaps", []scenario.Fault{{Name: scenario.LeaderFlap, Delay: upTo(8 * time.Second)}}},
		{"leader is lost mid-batch", []scenario.Fault{{Name: scenario.LeaderLoseMidBatch, Probability: 0.5}}},
		{"two leaders", []scenario.Fault{
			{Name: scenario.LeaderFlap, Delay: upTo(8 * time.Second)},
			{Name: scenario.LeaderTwo, Delay: upTo(3 * time.Second)},
		}},
		{"writes fail", []scenario.Fault{
			{Name: scenario.ApplyReject, Probability: 0.2}, {Name: scenario.ApplyFull, Probability: 0.2},
			{Name: scenario.ApplyAmbiguousApplied, Probability: 0.2}, {Name: scenario.ApplyAmbiguousLate, Probability: 0.2},
			{Name: scenario.ApplyAmbiguousLost, Probability: 0.2}, {Name: scenario.ApplySlow, Probability: 0.2},
		}},
		{"wake-ups and looks", []scenario.Fault{
			{Name: scenario.WatchCoalesce, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.WatchDelay, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.WatchSpurious, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.ViewStale, Probability: 0.3, Delay: upTo(time.Second / 2)},
			{Name: scenario.LeaderPaused, Probability: 0.1, Delay: upTo(time.Second / 2)},
			{Name: scenario.SchedSlow, Probability: 0.3, Delay: upTo(time.Second / 2)},
		}},
	}
}

// in returns the scenario with the trouble in it: three servers, and chance.
func (tr trouble) in(s *scenario.Scenario) *scenario.Scenario {
	c := s.Copy()
	c.Seed = uint64(len(s.Name) + len(tr.name)) // anything: it is never the order that is drawn
	c.Cluster.Servers = 3
	for _, f := range tr.faults {
		f.For = whileTrouble
		if strings.HasPrefix(string(f.Name), "apply/") {
			f.On = "drainer"
		}
		c.Events = append([]scenario.Event{{Op: &f}}, c.Events...)
	}
	return c
}

// most is how many allocations of a job there may be for a scenario to be played often.
const most = 50

// cannotTakeMore is why a scenario is not played with more in it than it has, or empty.
func cannotTakeMore(s *scenario.Scenario, e ending) string {
	if !e.rests {
		return "it ends while something goes on"
	}
	type request struct {
		node cluster.NodeID
		at   time.Duration
	}
	asked := map[request]cluster.DrainSpec{}
	for _, e := range s.Events {
		switch op := e.Op.(type) {
		case *scenario.Cancel:
			return "how far a drain has come when it is cancelled is a matter of time"
		case *scenario.Stop:
			if op.Purge {
				return "how much still runs of a job when it is purged is a matter of time"
			}
		case *scenario.Drain:
			for _, n := range op.Nodes {
				spec := cluster.DrainSpec{Deadline: op.Deadline, IgnoreSystemJobs: op.IgnoreSystem}
				if first, twice := asked[request{n, e.At}]; twice && first != spec && e.Before == "" {
					return "what comes of the first of two drains at one time is a matter of time"
				}
				asked[request{n, e.At}] = spec
			}
		}
	}
	for _, a := range s.Allocs {
		if a.Indexes.Count > most {
			return "it is large"
		}
	}
	return ""
}

// allocs counts the allocations that a scenario begins with.
func allocs(s *scenario.Scenario) (count int) {
	for _, a := range s.Allocs {
		count += a.Indexes.Count
	}
	return count
}

// Whatever goes wrong between them, goroutines come to the end to which steps come when
// nothing does.
func TestPlay_trouble(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	struck := map[scenario.FaultName]int{}
	t.Run("every", func(t *testing.T) {
		all := scenarios(t)
		for turn, name := range slices.Sorted(maps.Keys(all)) {
			s := all[name]
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if why := live.Unplayable(s, live.Options{}); why != nil {
					t.Skip(strings.Join(why, "; "))
				}
				want := step(t, s)
				switch why := cannotTakeMore(s, want); {
				case why != "" && allocs(s) > mostInCalm:
					t.Skip(why)
				case why != "":
					play(t, s, want, live.Options{})
					return
				}
				for kind, tr := range troubles() {
					if (turn+kind)%shareOfTroubles != 0 {
						continue
					}
					result := play(t, tr.in(s), want, live.Options{})
					mu.Lock()
					for fault, times := range result.Strikes {
						struck[fault] += times
					}
					mu.Unlock()
				}
			})
		}
	})
	for _, tr := range troubles() {
		for _, f := range tr.faults {
			must.Positive(t, struck[f.Name], must.Sprintf("%s never struck", f.Name))
		}
	}
	t.Log(struck)
}
