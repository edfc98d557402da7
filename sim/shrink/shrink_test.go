package shrink_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
)

// failing plays nothing: a scenario fails the check if it has what is asked for.
func failing(check string, has func(*scenario.Scenario) bool) shrink.Play {
	return func(s *scenario.Scenario) (o shrink.Outcome) {
		if has(s) {
			o.Failures = []shrink.Failure{{Check: check, Text: "it has what is asked for"}}
		}
		return o
	}
}

// busy is a scenario of n events on ten nodes with ten jobs of ten. Each event fails
// an allocation of its own, at a time of its own.
func busy(n int) *scenario.Scenario {
	s := &scenario.Scenario{Name: "busy", Prose: []string{"What there is too much of."}, Seed: 12345}
	for i := range 10 {
		s.Nodes = append(s.Nodes, scenario.Node{IDs: []cluster.NodeID{nodeID(i)}})
	}
	for i := range 10 {
		job := group(i)
		s.Jobs = append(s.Jobs, scenario.Job{Key: job.Job, Groups: []scenario.Group{{Name: job.Name, Count: 10, Kill: 7 * time.Second}}})
		a := scenario.Alloc{Group: job}
		for k := range 10 {
			a.On = append(a.On, nodeID(k))
		}
		s.Allocs = append(s.Allocs, a)
	}
	for i := range n {
		s.Events = append(s.Events, scenario.Event{At: time.Duration(i) * 1234 * time.Millisecond, Op: fails(i)})
	}
	return s
}

func nodeID(i int) cluster.NodeID { return cluster.NodeID(fmt.Sprintf("n%d", i)) }

func group(i int) cluster.GroupKey {
	id := fmt.Sprintf("job%d", i)
	return cluster.GroupKey{Job: cluster.JobKey{Namespace: "default", ID: cluster.JobID(id)}, Name: id}
}

// fails is the failure of the i-th allocation.
func fails(i int) *scenario.Exit {
	return &scenario.Exit{Alloc: scenario.AllocName{Group: group(i % 10), Index: i / 10}, Failed: true}
}

// has reports whether all of those allocations come to an end in the scenario.
func has(s *scenario.Scenario, needles ...int) bool {
	for _, i := range needles {
		if !slices.ContainsFunc(s.Events, func(e scenario.Event) bool {
			x, is := e.Op.(*scenario.Exit)
			return is && x.Alloc == fails(i).Alloc
		}) {
			return false
		}
	}
	return true
}

func text(t testing.TB, s *scenario.Scenario) string {
	t.Helper()
	var b bytes.Buffer
	must.NoError(t, scenario.Print(&b, s))
	return b.String()
}

func parse(t testing.TB, text string) *scenario.Scenario {
	t.Helper()
	s, _, err := scenario.Parse("case.drain", strings.NewReader(text))
	must.NoError(t, err)
	return s
}

// Of two hundred events four are needed: those are left, with the jobs that they are
// about, at simple times, and it takes few plays.
func TestShrink_needles(t *testing.T) {
	t.Parallel()
	small, report, err := shrink.Shrink(t.Context(), busy(200), failing("G1/below-limit", func(s *scenario.Scenario) bool {
		return has(s, 3, 77, 130, 131)
	}), shrink.Options{})
	must.NoError(t, err)
	must.Eq(t, `# G1/below-limit: it has what is asked for
#
# Shrunk from busy: 4 events, 0 nodes, 4 jobs and 0 allocations of 200 events, 10 nodes, 10 jobs
# and 100 allocations. To play it: nodedrain sim run FILE
#
# What that one said of itself:
#
# What there is too much of.

job job0..job1 count=0
job job3 count=0
job job7 count=0

at 0s finish job3[0]
at 0s finish job7[7]
at 0s finish job0[13]
at 0s finish job1[13]
`, text(t, small))
	must.True(t, report.Complete)
	must.Eq(t, shrink.Size{Events: 200, Nodes: 10, Jobs: 10, Allocs: 100}, report.Before)
	must.Eq(t, shrink.Size{Events: 4, Jobs: 4}, report.After)
	must.Less(t, 150, report.Plays)
}

// A scenario that fails another check is not what is looked for, however small.
func TestShrink_sameCheck(t *testing.T) {
	t.Parallel()
	play := func(s *scenario.Scenario) (o shrink.Outcome) {
		if has(s, 5, 6) {
			o.Failures = append(o.Failures, shrink.Failure{Check: "G2/no-cause"}, shrink.Failure{Check: "G6/lost"})
		} else if has(s, 5) {
			o.Failures = append(o.Failures, shrink.Failure{Check: "run/error"})
		}
		return o
	}
	small, report, err := shrink.Shrink(t.Context(), busy(20), play, shrink.Options{})
	must.NoError(t, err)
	must.SliceLen(t, 2, small.Events)
	must.Eq(t, "G2/no-cause", report.Failure.Check)

	_, report, err = shrink.Shrink(t.Context(), busy(20), play, shrink.Options{Check: "G6/lost"})
	must.NoError(t, err)
	must.Eq(t, "G6/lost", report.Failure.Check)

	_, _, err = shrink.Shrink(t.Context(), busy(20), play, shrink.Options{Check: "run/error"})
	must.ErrorIs(t, err, shrink.ErrPasses)
	_, _, err = shrink.Shrink(t.Context(), busy(5), play, shrink.Options{})
	must.ErrorIs(t, err, shrink.ErrPasses)
}

// Where it is a matter of how many, as many are left and no more.
func TestShrink_counts(t *testing.T) {
	t.Parallel()
	s := busy(40)
	s.Events = append(s.Events, scenario.Event{At: time.Minute, Op: &scenario.Drain{
		Nodes: []cluster.NodeID{"n1", "n2", "n3", "n4"}, Deadline: 601500 * time.Millisecond, Twice: true,
	}})
	small, report, err := shrink.Shrink(t.Context(), s, failing("G1/below-limit", func(s *scenario.Scenario) bool {
		exits, drained := 0, 0
		for _, e := range s.Events {
			switch op := e.Op.(type) {
			case *scenario.Exit:
				exits++
			case *scenario.Drain:
				if op.Deadline > 0 {
					drained = len(op.Nodes)
				}
			}
		}
		return exits >= 3 && drained >= 2 && shrink.SizeOf(s).Allocs >= 7
	}), shrink.Options{})
	must.NoError(t, err)
	must.True(t, report.Complete)
	must.Eq(t, shrink.Size{Events: 4, Nodes: 3, Jobs: 3, Allocs: 7}, report.After, must.Sprint(text(t, small)))
	must.StrContains(t, text(t, small), "at 0s drain n2..n4 deadline=10m\n")
}

// Shrink can leave out or simplify every word of the language.
func TestShrink_everything(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../scenario/testdata/everything.drain")
	must.NoError(t, err)
	s := parse(t, string(file))

	small, report, err := shrink.Shrink(t.Context(), s, failing("G1/x", func(*scenario.Scenario) bool { return true }), shrink.Options{})
	must.NoError(t, err)
	small.Prose = nil
	must.Eq(t, "", text(t, small))
	must.Less(t, 60, report.Plays)

	events := len(s.Events)
	small, _, err = shrink.Shrink(t.Context(), s, failing("G1/x", func(s *scenario.Scenario) bool { return len(s.Events) == events }), shrink.Options{})
	must.NoError(t, err)
	small.Prose = nil
	golden(t, "testdata/everything.golden", text(t, small))
}

var rewrite = flag.Bool("rewrite", false, "write what the tests see into testdata; read the diff before you commit it")

// golden compares a text with a file's.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		must.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}

// The search ends when plays or time run out, with what it has by then.
func TestShrink_bounded(t *testing.T) {
	t.Parallel()
	needs := failing("G1/x", func(s *scenario.Scenario) bool { return has(s, 3, 77, 130, 131) })
	small, report, err := shrink.Shrink(t.Context(), busy(200), needs, shrink.Options{MaxPlays: 20})
	must.NoError(t, err)
	must.Eq(t, 20, report.Plays)
	must.False(t, report.Complete)
	must.True(t, has(small, 3, 77, 130, 131))
	must.Less(t, 200, len(small.Events))

	ctx, cancel := context.WithCancel(t.Context())
	small, report, err = shrink.Shrink(ctx, busy(200), needs, shrink.Options{Progress: func(r shrink.Report) {
		if r.Plays == 10 {
			cancel()
		}
	}})
	must.NoError(t, err)
	must.Eq(t, 10, report.Plays)
	must.True(t, has(small, 3, 77, 130, 131))
}

// With random causes of a failure: the small scenario fails for the same cause and needs each of
// its events. It is no larger than before, its text parses to the same scenario, and a second run
// finds the same.
func TestShrink_random(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := busy(1 + r.IntN(60))
		needs := drawnNeed(r, len(s.Events))
		if !needs(s) {
			continue
		}
		play := failing("G9/x", needs)
		small, report, err := shrink.Shrink(t.Context(), s, play, shrink.Options{})
		must.NoError(t, err)
		must.True(t, report.Complete)
		must.Eq(t, "G9/x", report.Failure.Check)
		must.True(t, needs(small), must.Sprintf("seed %d", seed))
		must.Eq(t, shrink.SizeOf(small), report.After)
		before, after := report.Before, report.After
		must.True(t, after.Events <= before.Events && after.Nodes <= before.Nodes && after.Jobs <= before.Jobs && after.Allocs <= before.Allocs)
		must.NoError(t, small.Check())
		must.Eq(t, text(t, small), text(t, parse(t, text(t, small))))
		for i := range small.Events {
			less := small.Copy()
			less.Events = slices.Delete(less.Events, i, i+1)
			must.False(t, needs(less), must.Sprintf("seed %d: event %d of\n%s", seed, i, text(t, small)))
		}
		again, second, err := shrink.Shrink(t.Context(), s, play, shrink.Options{})
		must.NoError(t, err)
		must.Eq(t, report, second)
		must.Eq(t, text(t, small), text(t, again))
	}
}

// drawnNeed draws what a scenario needs to fail: any of some sets of events, with
// others that must not be there alone, and enough time between the first and the last.
func drawnNeed(r *rand.Rand, events int) func(*scenario.Scenario) bool {
	some := func() []int { return r.Perm(events)[:min(events, r.IntN(5))] }
	either, or, unless := some(), some(), some()
	apart := time.Duration(r.IntN(3)) * time.Second
	return func(s *scenario.Scenario) bool {
		if !has(s, either...) && !has(s, or...) {
			return false
		}
		if has(s, unless...) && len(s.Events)%2 == 0 {
			return false // not monotone: more does not always fail too
		}
		return apart == 0 || len(s.Events) > 0 && s.Events[len(s.Events)-1].At-s.Events[0].At >= apart
	}
}
