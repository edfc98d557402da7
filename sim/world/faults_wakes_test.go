package world_test

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

func wakeCases() []faultCase {
	both := func(_ *testing.T, w *fixture) {
		w.at(drains+2*time.Second, func() { w.drainNode("n2", 0) })
	}
	return []faultCase{{
		fault: scenario.Fault{Name: scenario.WatchDelay, Delay: exactly(3 * time.Second)},
		keeps: late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[marks](plain)+3*time.Second, when[marks](struck))
			must.Eq(t, 0, struck.stepped(armed, drains+3*time.Second))
		},
	}, {
		fault: scenario.Fault{Name: scenario.WatchCoalesce, Delay: exactly(time.Minute)},
		setup: both,
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) { // the wake-up arrives with the next one
			must.Eq(t, 0, struck.stepped(armed, drains+2*time.Second))
			must.Eq(t, drains+2*time.Second+2*commits, when[marks](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.WatchCoalesce, Delay: exactly(time.Second)},
		setup: both,
		keeps: terms | ending,
		check: func(t *testing.T, plain, struck *fixture) { // the wake-up arrives after its delay, before the next one
			must.Eq(t, when[marks](plain)+time.Second, when[marks](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.WatchSpurious, Delay: exactly(500 * time.Millisecond)},
		keeps: late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Len(t, len(plain.steps)+1, struck.steps)
			at := drains + commits + 500*time.Millisecond
			for _, s := range struck.steps {
				if s.at == at {
					must.True(t, s.Woken)
					must.Eq(t, 0, s.Looks)
				}
			}
			must.Eq(t, 1, struck.stepped(at-time.Millisecond, at+time.Millisecond))
			must.Eq(t, when[completions](plain), when[completions](struck))
		},
	}, {
		fault:   scenario.Fault{Name: scenario.WatchSpurious, For: time.Minute}, // a spurious wake-up causes no other
		strikes: 6,
		keeps:   late,
		check: func(t *testing.T, plain, struck *fixture) {
			must.Eq(t, when[completions](plain), when[completions](struck))
		},
	}, {
		fault: scenario.Fault{Name: scenario.ViewStale, Delay: exactly(30 * time.Second)},
		keeps: terms | applied | ending,
		check: func(t *testing.T, plain, struck *fixture) {
			marked := first[marks](struck)
			must.Eq(t, when[marks](plain), when[marks](struck))
			stale := false
			for _, s := range struck.steps {
				if s.at < marked.at || s.at >= marked.at+30*time.Second || s.View == nil {
					continue
				}
				must.Eq(t, marked.at, drains+commits)
				stale = stale || s.at > when[report](struck)
				for _, e := range struck.entries {
					must.True(t, e.at <= marked.at || s.View.Index() < e.Index, must.Sprintf("at %s the drainer reads entry %d", s.at, e.Index))
				}
			}
			must.True(t, stale, must.Sprint("the drainer never reads a stale state"))
			must.GreaterEq(t, marked.at+30*time.Second, when[completions](struck))
		},
	}}
}
