package shrink_test

import (
	"testing"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
)

// faulty is a scenario with many random faults that keeps every guarantee.
const faulty = `# Three nodes drain while random writes fail and random clients are slow.

seed 7
cluster servers=3 commit=1ms..20ms establish=10ms..1s wake=1ms..5ms schedule=1ms..50ms

node n1..n6

job web count=6 max-parallel=2
job api count=4
job sum type=batch count=3

alloc web on=n1..n6
alloc api on=n1..n4
alloc sum on=n1..n3

client * start=50ms..2s stop=100ms..3s
client sum run=20s..2m

at 0s fault client/slow-stop p=0.3 for=4m
at 1.5s fault apply/reject on=drainer p=0.3 count=20 for=4m
at 2s drain n1 deadline=3m
at 2s fault watch/delay p=0.3 for=4m delay=100ms..5s
at 3.5s drain n2,n3
at 10s fault apply/slow p=0.1 for=2m delay=1s..10s
at 20s edit web count=5
at 20s cancel n6
at 31.5s node n5 down
at 32s fault sched/slow count=4 delay=1s..8s
at 50s node n5 ready
at 1m12.5s elect

run calm=5m for=1h
`

// passes reports whether a scenario keeps every guarantee.
func passes(s *scenario.Scenario) bool { return len(shrink.Judging(sim.Play)(s).Failures) == 0 }

// rejectedTwice adds a failure if two writes of the drainer are rejected after any write was slow.
// It simulates a bug that needs both.
func rejectedTwice(s *scenario.Scenario) shrink.Outcome {
	o := shrink.Judging(sim.Play)(s)
	slow, rejected := false, 0
	for _, strike := range o.Strikes {
		slow = slow || strike.Name == scenario.ApplySlow
		if slow && strike.Name == scenario.ApplyReject {
			rejected++
		}
	}
	if rejected >= 2 {
		o.Failures = append(o.Failures, shrink.Failure{Check: "G6 not retried", Text: "twice, and slowly"})
	}
	return o
}

// A scenario that fails because of random strikes is frozen to certain ones, and shrinks to a few
// events.
func TestJudged(t *testing.T) {
	t.Parallel()
	s := parse(t, faulty)
	must.True(t, passes(s))
	must.SliceNotEmpty(t, rejectedTwice(s).Failures)

	frozen, report, err := shrink.Freeze(t.Context(), s, rejectedTwice, shrink.Options{})
	must.NoError(t, err)
	must.True(t, report.Complete)
	must.SliceNotEmpty(t, rejectedTwice(frozen).Failures)
	must.Zero(t, frozen.Seed)
	must.SliceNotEmpty(t, rejectedTwice(s).NoEffect)
	must.SliceEmpty(t, rejectedTwice(frozen).NoEffect, must.Sprint("a frozen scenario has no warning of its own"))
	for _, e := range frozen.Events {
		if f, is := e.Op.(*scenario.Fault); is {
			must.True(t, f.Probability == 0 && f.For == 0 && f.Count == 0)
		}
	}

	for _, from := range []*scenario.Scenario{s, frozen} {
		small, report, err := shrink.Shrink(t.Context(), from, rejectedTwice, shrink.Options{})
		must.NoError(t, err)
		must.True(t, report.Complete)
		must.SliceNotEmpty(t, rejectedTwice(small).Failures)
		must.LessEq(t, 4, report.After.Events, must.Sprint(text(t, small)))
		must.LessEq(t, 400, report.Plays)
	}
}

// A scenario that cannot be played fails a check with the reason as its name, without numbers.
func TestJudged_unplayable(t *testing.T) {
	t.Parallel()
	check := func(text string) string {
		o := shrink.Judging(sim.Play)(parse(t, text))
		must.SliceLen(t, 1, o.Failures)
		must.StrHasPrefix(t, "unplayable: ", o.Failures[0].Check)
		return o.Failures[0].Check
	}
	must.Eq(t, check("drainer retry=10s retry-max=1s\n"), check("drainer retry=20s retry-max=3s\n"))
	must.NotEq(t, check("drainer retry=10s retry-max=1s\n"), check("cluster clients=real\nnode n1 devices=gpu:1\njob web count=2 devices=gpu:1\nalloc web on=n1,n1\n"))
}
