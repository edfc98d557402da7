package world_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// faultCase is a run in which n1 is drained and one fault strikes.
type faultCase struct {
	// fault is armed before the drain.
	fault scenario.Fault
	// strikes is the number of its strikes; zero is one.
	strikes int
	// setup adds events to the run, or is nil.
	setup func(*testing.T, *fixture)
	// keeps are the properties of a run that the fault does not change.
	keeps keeps
	// check checks the effect of the fault. plain is the same run without the fault.
	check func(t *testing.T, plain, struck *fixture)
}

// keeps are properties of a run.
type keeps uint

const (
	// terms: the fault causes no election. applied: the drainer gets the same answers.
	// sequence: the log has the same entries, in the same order. ending: the drain ends.
	terms keeps = 1 << iota
	applied
	sequence
	ending

	late = terms | applied | sequence | ending // only the times differ
)

// armed is the time at which the fault is armed. lasts is the length of a run.
const (
	armed = 5 * time.Second
	lasts = 10 * time.Minute
)

// Each fault has its documented effect, and no other.
func TestFaults(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(writeCases(), leaderCases(), wakeCases(), clientCases(), nodeAndSchedulerCases(), operatorCases(), realCases(), deviceCases(), volumeCases())
	for _, kind := range scenario.Faults() {
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			tested := 0
			for _, c := range cases {
				if c.fault.Name == kind.Name {
					tested++
					c.test(t)
				}
			}
			must.Positive(t, tested, must.Sprint("the fault has no case"))
		})
	}
}

func (c faultCase) test(t *testing.T) {
	t.Helper()
	plain, struck := c.play(t, false), c.play(t, true)
	must.Len(t, max(1, c.strikes), struck.strikes)
	for _, strike := range struck.strikes {
		must.Eq(t, c.fault.Name, strike.Name)
		must.True(t, c.fault.Delay.Min <= strike.For && strike.For <= c.fault.Delay.Max)
	}
	must.SliceEmpty(t, plain.strikes)
	must.Eq(t, plain.Term() == struck.Term(), c.keeps&terms != 0)
	if c.keeps&applied != 0 {
		must.Eq(t, plain.outcomes(), struck.outcomes())
	}
	if c.keeps&sequence != 0 {
		must.Eq(t, plain.sequence(), struck.sequence())
	}
	must.Eq(t, when[completions](struck) >= 0, c.keeps&ending != 0)
	c.check(t, plain, struck)
}

func (c faultCase) play(t *testing.T, strike bool) *fixture {
	t.Helper()
	kind := c.fault.Name.Kind()
	w := newFixtureOf(t, world.Options{Seed: 7, Servers: 3, Views: true, RealClients: kind.Real}, kind)
	if c.setup != nil {
		c.setup(t, w)
	}
	w.at(armed, func() {
		if strike {
			must.NoError(t, w.Faults.Arm(c.fault))
		}
	})
	w.drain()
	w.run(t, lasts)
	return w
}

// exactly is a range of one duration.
func exactly(d time.Duration) scenario.Range { return scenario.Range{Min: d, Max: d} }
