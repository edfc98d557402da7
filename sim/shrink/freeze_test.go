package shrink_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/shrink"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

const random = `# Random faults.

seed 12345
cluster commit=1ms..20ms

node n1..n3

job web count=2
job blue/shop count=1

alloc web on=n1,n2
alloc blue/shop on=n3

client * stop=2s..5s

at 0s drain n1
at 1s fault apply/slow p=0.3 count=10 for=1m delay=2s..4s
at 1s fault client/never-stop p=0.1 for=1m
at 1s fault sched/fail-eval count=3
at 2s fault node/crash p=0.5 delay=5s..10s
at 5s fault apply/reject on=marks
`

// strikes returns strikes of the faults of that scenario.
func strikes() []world.Strike {
	return []world.Strike{
		{Name: scenario.ApplySlow, Target: "drainer", At: 1500 * time.Millisecond, For: 3 * time.Second},
		{Name: scenario.ClientNeverStop, Target: "web.web[0]@n1", At: 1600 * time.Millisecond},
		{Name: scenario.NodeCrash, Target: "n2", At: 2 * time.Second, For: 7 * time.Second},
		{Name: scenario.SchedFailEval, Target: "default/web.", At: 3 * time.Second},
		{Name: scenario.ApplyReject, Target: "marks", At: 6 * time.Second},
		{Name: scenario.ApplySlow, Target: "clients", At: 9 * time.Second, For: 2500 * time.Millisecond},
		{Name: scenario.SchedFailEval, Target: "blue/shop.", At: 20 * time.Second},
	}
}

// striking is failing with these strikes.
func striking(has func(*scenario.Scenario) bool) shrink.Play {
	play := failing("G6/lost", has)
	return func(s *scenario.Scenario) shrink.Outcome {
		o := play(s)
		o.Strikes = strikes()
		return o
	}
}

// In a frozen scenario each strike is a fault, armed just before the strike, and each range is a
// single time.
func TestFreeze(t *testing.T) {
	t.Parallel()
	always := striking(func(*scenario.Scenario) bool { return true })
	frozen, report, err := shrink.Freeze(t.Context(), parse(t, random), always, shrink.Options{})
	must.NoError(t, err)
	must.True(t, report.Complete)
	must.Eq(t, `# G6/lost: it has the needed events
#
# Frozen from case: 8 events, 3 nodes, 2 jobs and 3 allocations instead of 6 events, 3 nodes, 2
# jobs and 3 allocations. To play it: nodedrain sim run FILE
#
# The prose of the original:
#
# Random faults.

cluster commit=1ms

node n1..n3

job web count=2
job blue/shop count=1

alloc web on=n1,n2
alloc blue/shop on=n3

client * stop=2s

at 0s drain n1
at 1.499999999s fault apply/slow on=drainer delay=3s
at 1.599999999s fault client/never-stop on=web.web[0]@n1
at 1.999999999s fault node/crash on=n2 delay=7s
at 2.999999999s fault sched/fail-eval on=web
at 5s fault apply/reject on=marks
at 8.999999999s fault apply/slow on=clients delay=2.5s
at 19.999999999s fault sched/fail-eval on=blue/shop
`, text(t, frozen))
}

// Freeze keeps a random part that the failure needs.
func TestFreeze_keepsNeededChance(t *testing.T) {
	t.Parallel()
	frozen, _, err := shrink.Freeze(t.Context(), parse(t, random), striking(func(s *scenario.Scenario) bool {
		for _, e := range s.Events {
			if f, is := e.Op.(*scenario.Fault); is && f.Name == scenario.ApplySlow && f.Probability > 0 {
				return s.Cluster.Commit.Max == 20*time.Millisecond
			}
		}
		return false
	}), shrink.Options{})
	must.NoError(t, err)
	printed := text(t, frozen)
	must.StrContains(t, printed, "commit=1ms..20ms")
	must.StrContains(t, printed, "stop=2s\n")
	must.StrContains(t, printed, "at 1s fault apply/slow p=0.3 count=10 for=1m delay=2s")
	must.StrContains(t, printed, "at 1.999999999s fault node/crash on=n2 delay=7s")
}

// A random fault shrinks to one strike if one is enough. It stays if the failure needs several,
// because several faults are longer.
func TestShrink_strikes(t *testing.T) {
	t.Parallel()
	strikes := func(s *scenario.Scenario) (repeated, single int) {
		for _, e := range s.Events {
			switch f, is := e.Op.(*scenario.Fault); {
			case !is || f.Name != scenario.ApplySlow:
			case f.For > 0 && f.Probability > 0:
				repeated++
			case f.On == "clients" && f.Delay.Min > 2*time.Second:
				single++
			}
		}
		return repeated, single
	}
	small, _, err := shrink.Shrink(t.Context(), parse(t, random), striking(func(s *scenario.Scenario) bool {
		repeated, single := strikes(s)
		return repeated+single > 0
	}), shrink.Options{})
	must.NoError(t, err)
	small.Prose = nil
	must.Eq(t, "at 0s fault apply/slow on=clients delay=3s\n", text(t, small))

	small, _, err = shrink.Shrink(t.Context(), parse(t, random), striking(func(s *scenario.Scenario) bool {
		repeated, single := strikes(s)
		return repeated > 0 || single > 1
	}), shrink.Options{})
	must.NoError(t, err)
	small.Prose = nil
	must.Eq(t, "at 0s fault apply/slow p=0.3 for=1m\n", text(t, small))
}
