package swarm_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/invariant"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/swarm"
)

// plays is a simulator that plays nothing. Its result depends only on the scenario's seed.
func plays(s *scenario.Scenario, _ sim.Options) (*sim.Result, error) {
	return &sim.Result{Hash: s.Seed * 31, Steps: 3, Entries: 2, Busy: time.Hour}, nil
}

// broken returns a violation.
func broken() []invariant.Violation {
	return []invariant.Violation{{Guarantee: "G1", Check: "below limit", Text: "one too few"}}
}

func TestPlay_inTheOrderOfSeeds(t *testing.T) {
	t.Parallel()
	reports := map[int]*swarm.Report{}
	for _, workers := range []int{1, 4} {
		var seeds []uint64
		report, err := swarm.Play(context.Background(), swarm.Options{
			First: 100, Seeds: 50, Workers: workers, Play: plays,
			Each: func(r swarm.Run) { seeds = append(seeds, r.Seed) },
		})
		must.NoError(t, err)
		must.Eq(t, 50, report.Seeds)
		must.SliceLen(t, 50, seeds)
		for i, seed := range seeds {
			must.Eq(t, uint64(100+i), seed)
		}
		must.Eq(t, 150, report.Steps)
		must.Eq(t, 100, report.Entries)
		must.Eq(t, 50*time.Hour, report.Busy)
		must.Positive(t, report.SeedsPerMinute())
		must.Positive(t, report.BusyHoursPerSecond())
		must.Eq(t, 0, report.Failed)
		reports[workers] = report
	}
	must.Eq(t, reports[1].Hash, reports[4].Hash)
}

// A swarm without rare events fails.
func TestPlay_noEvents(t *testing.T) {
	t.Parallel()
	report, err := swarm.Play(context.Background(), swarm.Options{Seeds: 500, Play: plays})
	must.NoError(t, err)
	must.Eq(t, 0, report.Failed)
	must.False(t, report.OK())
	must.SliceNotEmpty(t, report.Short)
	must.StrContains(t, report.Short[0].String(), "in 0 runs, expected in ")
}

func TestPlay_keepsTheFirstFailures(t *testing.T) {
	t.Parallel()
	report, err := swarm.Play(context.Background(), swarm.Options{
		Seeds: 40, Workers: 3, Keep: 3, Twice: -1,
		Play: func(s *scenario.Scenario, o sim.Options) (*sim.Result, error) {
			switch s.Seed {
			case 7:
				result, _ := plays(s, o)
				result.Violations = broken()
				return result, nil
			case 9:
				return nil, errors.New("too many steps")
			case 20:
				panic("a bug")
			case 30:
				return nil, errors.New("one more")
			}
			return plays(s, o)
		},
	})
	must.NoError(t, err)
	must.False(t, report.OK())
	must.Eq(t, 4, report.Failed)
	must.SliceLen(t, 3, report.Failures)
	violated, unplayable, panicked := report.Failures[0], report.Failures[1], report.Failures[2]
	must.Eq(t, swarm.Violated, violated.Kind)
	must.SliceLen(t, 1, violated.Violations)
	must.Eq(t, "seed 7: violation: G1 below limit: one too few\n\tnodedrain sim swarm --size small --seed 7 --seeds 1", violated.String())
	must.Eq(t, swarm.Unplayable, unplayable.Kind)
	must.Eq(t, 9, unplayable.Seed)
	must.Eq(t, swarm.Panicked, panicked.Kind)
	must.StrContains(t, panicked.Text, "a bug\n")
	must.StrContains(t, panicked.Text, "run_test.go")
}

// A seed fails if its second run differs.
func TestPlay_twice(t *testing.T) {
	t.Parallel()
	var plays atomic.Uint64
	report, err := swarm.Play(context.Background(), swarm.Options{
		Seeds: 300, Workers: 2, Keep: 300, Twice: 0.1,
		Play: func(*scenario.Scenario, sim.Options) (*sim.Result, error) {
			return &sim.Result{Hash: plays.Add(1)}, nil
		},
	})
	must.NoError(t, err)
	must.Between(t, 10, report.Twice, 60)
	must.Eq(t, report.Twice, report.Failed)
	for _, f := range report.Failures {
		must.Eq(t, swarm.Nondeterminism, f.Kind)
		must.StrContains(t, f.Text, "the second run has the hash")
		must.StrContains(t, f.Text, "two more runs are equal")
	}
}

func TestPlay_contextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	report, err := swarm.Play(ctx, swarm.Options{
		Seeds: 1000, Workers: 4, Play: plays,
		Each: func(r swarm.Run) {
			if r.Seed == 20 {
				cancel(enough)
			}
		},
	})
	must.ErrorIs(t, err, enough)
	must.Between(t, 20, report.Seeds, 999)
}

// A seed that runs when the context ends is aborted and not reported.
func TestPlay_abortsRuns(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(context.Background())
	enough := errors.New("enough")
	report, err := swarm.Play(ctx, swarm.Options{
		Seeds: 3, Workers: 1,
		Play: func(_ *scenario.Scenario, o sim.Options) (*sim.Result, error) {
			must.NoError(t, o.Stop())
			end(enough)
			return nil, o.Stop()
		},
	})
	must.ErrorIs(t, err, enough)
	must.Zero(t, report.Seeds)
	must.SliceEmpty(t, report.Failures)
}

// Seeds after the last possible one are an error. The numbers do not wrap.
func TestPlay_noSuchSeeds(t *testing.T) {
	t.Parallel()
	const last = math.MaxUint64
	for _, o := range []swarm.Options{{First: last, Seeds: 2}, {First: last - 8, Seeds: 10}, {Seeds: -1}} {
		o.Play = plays
		report, err := swarm.Play(context.Background(), o)
		must.Error(t, err)
		must.Eq(t, 0, report.Seeds)
	}
	report, err := swarm.Play(context.Background(), swarm.Options{First: last - 1, Seeds: 2, Play: plays, Twice: -1})
	must.NoError(t, err)
	must.Eq(t, 2, report.Seeds)
}

func TestSize_UnmarshalText(t *testing.T) {
	t.Parallel()
	for _, size := range swarm.Sizes() {
		var got swarm.Size
		must.NoError(t, got.UnmarshalText([]byte(size.String())))
		must.Eq(t, size, got)
	}
	must.ErrorContains(t, new(swarm.Size).UnmarshalText([]byte("huge")), "the sizes are small, medium and large")
	must.True(t, strings.HasPrefix(swarm.Size(9).String(), "unknown"))
}
