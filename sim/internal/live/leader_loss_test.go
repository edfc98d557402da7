package live_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// losses are the ways to lose a leader.
func losses() map[string]scenario.Op {
	return map[string]scenario.Op{
		"transfers leadership":     &scenario.Elect{},
		"transfers to the third":   &scenario.Elect{Server: 3},
		"crashes and returns":      &scenario.Elect{Lost: true},
		"is cut off":               &scenario.Elect{Believes: 5 * time.Second},
		"is cut off for long":      &scenario.Elect{Believes: 40 * time.Second},
		"is paused":                &scenario.Pause{For: 10 * time.Second},
		"restarts from a snapshot": &scenario.Restore{},
	}
}

// Three times during the drains, the leader is lost. The drains end as in the deterministic run
// without the loss.
func TestPlay_leaderIsLost(t *testing.T) {
	t.Parallel()
	all := scenarios(t)
	for _, name := range []string{
		"case-04-under-replicated-deadline", "case-07-plugin-and-system-after-consumers", "case-07-plugin-at-the-deadline",
		"case-27-several-groups", "case-30-ten-allocations-three-to-an-entry", "case-38-five-nodes-within-100ms",
	} {
		s := all[name]
		must.NotNil(t, s, must.Sprint(name))
		want := runSteps(t, s)
		must.True(t, want.rests)
		want.lasts += time.Minute
		for how, loss := range losses() {
			t.Run(strings.Join([]string{name, how}, " "), func(t *testing.T) {
				t.Parallel()
				struck := s.Copy()
				for _, at := range []time.Duration{0, 2 * time.Second, 12500 * time.Millisecond} {
					struck.Events = append(struck.Events, scenario.Event{At: at, Op: loss})
				}
				slices.SortStableFunc(struck.Events, func(a, b scenario.Event) int { return int(a.At - b.At) })
				play(t, struck, want)
			})
		}
	}
}
