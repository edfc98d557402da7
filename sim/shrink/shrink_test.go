//race:skip one goroutine
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

// failing returns a Play that runs nothing: a scenario fails the check if has returns true.
func failing(check string, has func(*scenario.Scenario) bool) shrink.Play {
	return func(s *scenario.Scenario) (o shrink.Outcome) {
		if has(s) {
			o.Failures = []shrink.Failure{{Check: check, Text: "it has the needed events"}}
		}
		return o
	}
}

// busy returns a scenario of n events, with ten nodes and ten jobs of ten allocations. Each event
// fails another allocation at another time.
func busy(n int) *scenario.Scenario {
	s := &scenario.Scenario{Name: "busy", Prose: []string{"A scenario with too many events."}, Seed: 12345}
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

// fails returns the failure of the i-th allocation.
func fails(i int) *scenario.Exit {
	return &scenario.Exit{Alloc: scenario.AllocName{Group: group(i % 10), Index: i / 10}, Failed: true}
}

// has reports whether the scenario ends all of these allocations.
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

// If the failure needs four of two hundred events, only these are left, with their jobs and with
// simple times. This takes few plays.
func TestShrink_needles(t *testing.T) {
	t.Parallel()
	small, report, err := shrink.Shrink(t.Context(), busy(200), failing("G1/below-limit", func(s *scenario.Scenario) bool {
		return has(s, 3, 77, 130, 131)
	}), shrink.Options{})
	must.NoError(t, err)
	must.Eq(t, `# G1/below-limit: it has the needed events
#
# Shrunk from busy: 4 events, 0 nodes, 4 jobs and 0 allocations instead of 200 events, 10 nodes,
# 10 jobs and 100 allocations. To play it: nodedrain sim run FILE
#
# The prose of the original:
#
# A scenario with too many events.

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

// A candidate that fails another check is rejected.
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

// If the failure needs a number of parts, exactly this number is left.
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

// Every word of the language can be removed or simplified.
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

var rewrite = flag.Bool("rewrite", false, "write the results into testdata; read the diff before you commit it")

// golden compares a text with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		must.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	must.NoError(t, err)
	must.Eq(t, string(want), got)
}

// The search ends at the limit of plays or with the context. It returns the smallest scenario so
// far.
func TestShrink_endsEarly(t *testing.T) {
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

// For a random need of events, the shrunk scenario fails, needs each of its events, is not larger,
// is valid, and is the same every time.
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

// drawnNeed draws the need of a failure: one of two sets of events, sometimes not together with a
// third set, and a least time between the first and the last event.
func drawnNeed(r *rand.Rand, events int) func(*scenario.Scenario) bool {
	some := func() []int { return r.Perm(events)[:min(events, r.IntN(5))] }
	either, or, unless := some(), some(), some()
	apart := time.Duration(r.IntN(3)) * time.Second
	return func(s *scenario.Scenario) bool {
		if !has(s, either...) && !has(s, or...) {
			return false
		}
		if has(s, unless...) && len(s.Events)%2 == 0 {
			return false // not monotone: more events may pass
		}
		return apart == 0 || len(s.Events) > 0 && s.Events[len(s.Events)-1].At-s.Events[0].At >= apart
	}
}
