package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster/raftwrite"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
	"github.com/seed-f9cf0b39/nodedrain/sim/world"
)

func leaderCases() []faultCase {
	loses := func(delay time.Duration, ends time.Duration) faultCase {
		return faultCase{
			fault: scenario.Fault{Name: scenario.LeaderLoseMidBatch, Delay: exactly(delay)},
			keeps: ending,
			check: func(t *testing.T, plain, struck *fixture) {
				marked := first[marks](struck)
				must.Eq(t, 2, struck.Term())
				must.Eq(t, marked.at+ends, struck.ended[1])
				must.Eq(t, struck.ended[1], marked.answeredAt)
				must.Eq(t, raftwrite.Unknown, marked.answer.Outcome)
				must.Eq(t, struck.logged(marked), nth[marks](struck, 1) == nil)
			},
		}
	}
	elect := func(t *testing.T, w *fixture) { // with the marks in flight
		w.at(drains+commits+commits/2, func() { must.NoError(t, w.Servers.Elect(false)) })
	}
	return []faultCase{
		loses(0, 0),
		loses(3*time.Millisecond, 3*time.Millisecond),
		loses(time.Minute, commits), // the term ends before the answer, not after a minute
		{
			fault:   scenario.Fault{Name: scenario.LeaderFlap, For: 3 * time.Second, Delay: exactly(time.Second)},
			strikes: 3,
			keeps:   sequence | ending,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Eq(t, []time.Duration{armed + time.Second, armed + 2*time.Second, armed + 3*time.Second}, struck.elected)
				must.Eq(t, when[marks](plain), when[marks](struck))
			},
		}, {
			fault: scenario.Fault{Name: scenario.LeaderTwo, Delay: exactly(3 * time.Second)},
			setup: elect,
			keeps: terms | sequence | ending,
			check: func(t *testing.T, plain, struck *fixture) {
				must.Eq(t, plain.elected, struck.elected)
				must.Eq(t, plain.ended[1]+3*time.Second, struck.ended[1])
				must.Eq(t, when[marks](plain), when[marks](struck))
				marked := first[marks](struck)
				must.Eq(t, struck.ended[1], marked.answeredAt)
				must.False(t, struck.logged(marked))
			},
		}, {
			// The first step marks, the second learns the answer.
			fault:   scenario.Fault{Name: scenario.LeaderPaused, Count: 2, Delay: exactly(20 * time.Second)},
			strikes: 2,
			keeps:   late,
			check: func(t *testing.T, plain, struck *fixture) {
				marked := first[marks](struck)
				must.Eq(t, first[marks](plain).at, marked.at)
				must.Eq(t, marked.at, marked.Message.(marks).At.Sub(world.Epoch))
				must.Eq(t, marked.at+40*time.Second, when[marks](struck)) // two pauses
				for i := range struck.strikes {
					from := struck.strikes[i].At
					must.Eq(t, 0, struck.stepped(from, from+20*time.Second))
				}
			},
		},
	}
}

// A single server that is elected again knows that its older term has ended.
func TestFaults_singleServer(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{})
	w.at(armed, func() {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.LeaderTwo, Delay: exactly(time.Minute)}))
		must.NoError(t, w.Servers.Elect(true))
	})
	w.run(t, lasts)
	must.SliceEmpty(t, w.strikes)
	must.Eq(t, armed, w.ended[1])
}

// The time moves on even if leader/flap has no delay.
func TestFaults_flapWithoutDelay(t *testing.T) {
	t.Parallel()
	w := newFixture(t, world.Options{Servers: 3, Views: true})
	w.drain()
	w.at(armed, func() {
		must.NoError(t, w.Faults.Arm(scenario.Fault{Name: scenario.LeaderFlap, For: time.Second}))
	})
	w.run(t, lasts)
	must.Between(t, 10, len(w.elected), 1000)
	must.Positive(t, when[completions](w))
}
