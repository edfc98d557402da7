package world_test

import (
	"slices"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

// faultStory is a small world in which n1 is drained and one fault strikes.
type faultStory struct {
	// fault is armed before that.
	fault scenario.Fault
	// strikes is how often it strikes; zero is once.
	strikes int
	// begin has happen what else does; nil is nothing.
	begin func(*testing.T, *town)
	// leaves is what the fault leaves as it is in a plain world.
	leaves leaves
	// check checks what it does. In the plain world nothing strikes, and all else
	// happens.
	check func(t *testing.T, plain, struck *town)
}

// leaves is what a fault leaves as it is.
type leaves uint

const (
	// terms: nobody else leads. applied: the drainer's writes are applied, and it knows.
	// sequence: the same entries are written, in the same order. ending: the drain ends.
	terms leaves = 1 << iota
	applied
	sequence
	ending

	late = terms | applied | sequence | ending // but it happens later
)

// armed is when the fault is armed, and lasts how long the world does.
const (
	armed = 5 * time.Second
	lasts = 10 * time.Minute
)

// Each fault does what its name promises, and nothing else.
func TestFaults(t *testing.T) {
	t.Parallel()
	stories := slices.Concat(storiesOfWrites(), storiesOfLeaders(), storiesOfWakes(), storiesOfClients(), storiesOfTheRest(), storiesOfOperators())
	for _, kind := range scenario.Faults() {
		t.Run(string(kind.Name), func(t *testing.T) {
			t.Parallel()
			told := 0
			for _, s := range stories {
				if s.fault.Name == kind.Name {
					told++
					s.tell(t)
				}
			}
			must.Positive(t, told, must.Sprint("the fault has no story"))
		})
	}
}

func (s faultStory) tell(t *testing.T) {
	t.Helper()
	plain, struck := s.play(t, false), s.play(t, true)
	must.Len(t, max(1, s.strikes), struck.strikes)
	for _, strike := range struck.strikes {
		must.Eq(t, s.fault.Name, strike.Name)
		must.True(t, s.fault.Delay.Min <= strike.For && strike.For <= s.fault.Delay.Max)
	}
	must.SliceEmpty(t, plain.strikes)
	must.Eq(t, plain.Term() == struck.Term(), s.leaves&terms != 0)
	if s.leaves&applied != 0 {
		must.Eq(t, plain.outcomes(), struck.outcomes())
	}
	if s.leaves&sequence != 0 {
		must.Eq(t, plain.sequence(), struck.sequence())
	}
	must.Eq(t, when[completions](struck) >= 0, s.leaves&ending != 0)
	s.check(t, plain, struck)
}

func (s faultStory) play(t *testing.T, strike bool) *town {
	t.Helper()
	w := newTown(t, world.Options{Seed: 7, Servers: 3, Views: true})
	if s.begin != nil {
		s.begin(t, w)
	}
	w.at(armed, func() {
		if strike {
			must.NoError(t, w.Arm(s.fault))
		}
	})
	w.drain()
	w.run(t, lasts)
	return w
}

// exactly is a time that is not drawn.
func exactly(d time.Duration) scenario.Range { return scenario.Range{Min: d, Max: d} }
