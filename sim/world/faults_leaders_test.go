package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

func storiesOfLeaders() []faultStory {
	loses := func(delay time.Duration, ends time.Duration) faultStory {
		return faultStory{
			fault:  scenario.Fault{Name: scenario.LeaderLoseMidBatch, Delay: exactly(delay)},
			leaves: ending,
			check: func(t *testing.T, plain, struck *town) {
				marked := first[marks](struck)
				must.Eq(t, 2, struck.Term())
				must.Eq(t, marked.at+ends, struck.ended[1])
				must.Eq(t, struck.ended[1], marked.told)
				must.Eq(t, raftwrite.Unknown, marked.answer.Outcome)
				must.Eq(t, struck.logged(marked), nth[marks](struck, 1) == nil)
			},
		}
	}
	elect := func(t *testing.T, w *town) { // with the marks in flight
		w.at(drains+commits+commits/2, func() { must.NoError(t, w.Elect(false)) })
	}
	return []faultStory{
		loses(0, 0),
		loses(3*time.Millisecond, 3*time.Millisecond),
		loses(time.Minute, commits), // but before its answer
		{
			fault:   scenario.Fault{Name: scenario.LeaderFlap, For: 3 * time.Second, Delay: exactly(time.Second)},
			strikes: 3,
			leaves:  sequence | ending,
			check: func(t *testing.T, plain, struck *town) {
				must.Eq(t, []time.Duration{armed + time.Second, armed + 2*time.Second, armed + 3*time.Second}, struck.began)
				must.Eq(t, when[marks](plain), when[marks](struck))
			},
		}, {
			fault:  scenario.Fault{Name: scenario.LeaderTwo, Delay: exactly(3 * time.Second)},
			begin:  elect,
			leaves: terms | sequence | ending,
			check: func(t *testing.T, plain, struck *town) {
				must.Eq(t, plain.began, struck.began)
				must.Eq(t, plain.ended[1]+3*time.Second, struck.ended[1])
				must.Eq(t, when[marks](plain), when[marks](struck))
				marked := first[marks](struck)
				must.Eq(t, struck.ended[1], marked.told)
				must.False(t, struck.logged(marked))
			},
		}, {
			// The first step marks, the second learns the answer.
			fault:   scenario.Fault{Name: scenario.LeaderPaused, Count: 2, Delay: exactly(20 * time.Second)},
			strikes: 2,
			leaves:  late,
			check: func(t *testing.T, plain, struck *town) {
				marked := first[marks](struck)
				must.Eq(t, first[marks](plain).at, marked.at)
				must.Eq(t, marked.at, marked.Message.(marks).At.Sub(world.Epoch))
				must.Eq(t, marked.at+40*time.Second, when[marks](struck)) // it is paused twice
				for i := range struck.strikes {
					from := struck.strikes[i].At
					must.Eq(t, 0, struck.stepped(from, from+20*time.Second))
				}
			},
		},
	}
}

// Nobody but a server that has a next one has a leader that does not know.
func TestFaults_aloneNobodyBelieves(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{})
	w.at(armed, func() {
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.LeaderTwo, Delay: exactly(time.Minute)}))
		must.NoError(t, w.Elect(true))
	})
	w.run(t, lasts)
	must.SliceEmpty(t, w.strikes)
	must.Eq(t, armed, w.ended[1])
}

// A leader that is to flap and to be gone at once is gone, and the world goes on.
func TestFaults_flapAtOnce(t *testing.T) {
	t.Parallel()
	w := newTown(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(armed, func() {
		must.NoError(t, w.Arm(scenario.Fault{Name: scenario.LeaderFlap, For: time.Second}))
	})
	w.run(t, lasts)
	must.Between(t, 10, len(w.began), 1000)
	must.Positive(t, when[completions](w))
}
