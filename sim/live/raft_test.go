package live_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/sim/live"
	"github.com/seed-f9cf0b39/nodedrain/sim/scenario"
)

// longest is how long a scenario may last that is played over raft, whose heartbeats
// cost something.
const longest = 5 * time.Minute

// Three real servers come to the same end as steps do, and all three to one state.
func TestPlay_raft(t *testing.T) {
	t.Parallel()
	playable := 0
	t.Run("every", func(t *testing.T) {
		all := scenarios(t)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			s := all[name]
			if live.Unplayable(s, live.Options{Raft: true}) != nil {
				continue
			}
			want := step(t, s)
			if cannotTakeMore(s, want) != "" || want.lasts-afterRest > longest {
				continue
			}
			want.lasts -= afterRest - time.Minute
			if playable++; playable%shareOfRafts != 0 {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, s, want, live.Options{Raft: true})
			})
		}
	})
	must.GreaterEq(t, 30, playable)
}

// blows are ways in which a leader is lost with raft.
func blows() map[string]scenario.Op {
	return map[string]scenario.Op{
		"hands over":                   &scenario.Elect{},
		"hands over to the third":      &scenario.Elect{Server: 3},
		"crashes and returns":          &scenario.Elect{Lost: true},
		"is cut off":                   &scenario.Elect{Believes: 5 * time.Second},
		"is cut off for long":          &scenario.Elect{Believes: 40 * time.Second},
		"begins again from a snapshot": &scenario.Restore{},
	}
}

// However the leader of three real servers is lost in the middle of a drain, and then
// the next, the drains come to the end to which steps come when it is not.
func TestPlay_raftLosesItsLeader(t *testing.T) {
	t.Parallel()
	kept := scenarios(t)
	for _, name := range []string{
		"case-04-under-replicated-deadline", "case-07-plugin-and-system-after-consumers", "case-07-plugin-at-the-deadline",
		"case-27-several-groups", "case-30-ten-allocations-three-to-an-entry", "case-38-five-nodes-within-100ms",
	} {
		s := kept[name]
		must.NotNil(t, s, must.Sprint(name))
		want := step(t, s)
		must.True(t, want.rests)
		want.lasts -= afterRest - 2*time.Minute
		for how, blow := range blows() {
			t.Run(strings.Join([]string{name, how}, " "), func(t *testing.T) {
				t.Parallel()
				struck := s.Copy()
				for _, at := range []time.Duration{0, 2 * time.Second, 12500 * time.Millisecond} {
					struck.Events = append(struck.Events, scenario.Event{At: at, Op: blow})
				}
				slices.SortStableFunc(struck.Events, func(a, b scenario.Event) int { return int(a.At - b.At) })
				play(t, struck, want, live.Options{Raft: true})
			})
		}
	}
}
