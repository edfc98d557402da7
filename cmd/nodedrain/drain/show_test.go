package drain

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The tables name the place of omitted events, the last of equal refusals, and a group that is below its budget now.
func TestShow_tables(t *testing.T) {
	t.Parallel()
	at := func(s int) wire.Time { return wire.NewTime(time.Date(2026, 1, 2, 3, 4, s, 0, time.Local)) }
	j := &wire.Journal{
		Events: []wire.JournalEvent{
			{Time: at(1), Text: "ann started the drain"}, {Time: at(3), Text: "the servers refused 2 writes: below budget", Allocs: 2, Until: at(4)}, {Time: at(9), Text: "ended: complete"},
		},
		EventsFirst: 1, EventsOmitted: 7,
		Groups: []wire.JournalGroup{
			{Namespace: "default", JobID: "web", Group: "api", Marked: 2, Lowest: 1, Needed: 2, LowestAt: at(2), LowestFor: 3 * time.Second, LowestSince: at(5)},
			{Namespace: "blue", JobID: "logs", Group: "g", Marked: 1, Lowest: 0, Needed: -1, LowestAt: at(6), LowestFor: time.Second},
		},
	}
	must.Eq(t, `Time                 Event
2026-01-02T03:04:01  ann started the drain
...                  7 events not kept
2026-01-02T03:04:03  the servers refused 2 writes: below budget, the last one at 2026-01-02T03:04:04
2026-01-02T03:04:09  ended: complete`, eventTable(j).String())
	must.Eq(t, `Group        Moved  Lowest Healthy  Needed         First At             For
web.api      2      1               2 (1 too few)  2026-01-02T03:04:02  5s
blue/logs.g  1      0               0              2026-01-02T03:04:06  1s`, groupTable(j, at(7).Time).String())
}

// What a plan foretold is beside what happened.
func TestShow_foretold(t *testing.T) {
	t.Parallel()
	at := func(m int) wire.Time { return wire.NewTime(time.Date(2026, 1, 2, 3, m, 0, 0, time.Local)) }
	d := &wire.Drain{UpdatedAt: at(1), Marked: map[string]int{"paced": 2, "stage": 1}}
	p := &wire.DrainPlan{Sentence: "3 allocations leave in 12m", Least: 10 * time.Minute, Most: 14 * time.Minute}
	must.Eq(t, "Foretold                    Happened\n3 allocations leave in 12m  the drain runs\n10m0s to 14m0s              <none>", foretoldTable(d, p).String())
	d.EndedAt = at(14)
	must.StrContains(t, foretoldTable(d, p).String(), "3 allocations left in 13m0s")
	must.Eq(t, "Foretold  Happened", foretoldTable(d, nil).String())
}
