package drain

import (
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// The monitor prints one line when a pause begins and one when it ends, with the new deadline. A pause by a second
// request is no change, and no group has a line of its own.
func TestFollower_paused(t *testing.T) {
	t.Parallel()
	f := Follower{Node: "n1"}
	node := drainingNode(time.Hour)
	must.SliceEmpty(t, f.updateNode(node, nil))
	read := func(since time.Time, by string, allocs ...wire.DrainAlloc) []event {
		r := report(allocs...)
		r.Drain = &wire.Drain{Strategy: node.DrainStrategy, PausedBy: by}
		if by != "" {
			r.Drain.PausedSince = wire.NewTime(since)
		}
		return f.updateReport(r)
	}
	must.SliceEmpty(t, read(began, ""))
	at := began.Add(time.Minute)
	events := read(at, wire.PausedByAll, leftAlloc("web", "paused", "all drains are paused"))
	must.Eq(t, []string{`Node "n1" drain paused, as all drains are: what is marked already stops all the same`}, texts(events))
	times(t, []time.Time{at}, events)
	must.True(t, f.Paused())
	must.SliceEmpty(t, read(at, wire.PausedByBoth))
	must.SliceEmpty(t, read(at, wire.PausedByDrain))

	node = drainingNode(time.Hour)
	node.DrainStrategy.ForceDeadline = wire.NewTime(began.Add(70 * time.Minute))
	node.Events = []wire.NodeEvent{{Message: cluster.EventDrainPaused}, {Message: cluster.EventDrainResumed}, {Message: "Node heartbeat missed"}}
	must.SliceEmpty(t, f.updateNode(node, nil), must.Sprint("the report has the line"))
	must.Eq(t, []string{`Node "n1" drain resumed: ` + cli.LocalTimes("2026-01-02T13:10:00Z") + " deadline"}, texts(read(at, "")))
	must.False(t, f.Paused())
	must.Eq(t, []string{`Node "n1" drain paused: what is marked already stops all the same`}, texts(read(at, wire.PausedByDrain)))
	changed := drainingNode(2 * time.Hour)
	changed.Events = append(node.Events, wire.NodeEvent{Message: cluster.EventDrainUpdated})
	must.SliceLen(t, 1, f.updateNode(changed, nil))
}

// The texts name the pauses.
func TestPausedText(t *testing.T) {
	t.Parallel()
	since := wire.NewTime(began)
	for by, want := range map[string]string{
		"":                 "",
		wire.PausedByDrain: "since " + cli.Clock(since),
		wire.PausedByAll:   "since " + cli.Clock(since) + ", by the pause of all drains",
		wire.PausedByBoth:  "since " + cli.Clock(since) + ", by its own pause and that of all drains",
	} {
		must.Eq(t, want, PausedText(&wire.Drain{PausedBy: by, PausedSince: since}))
	}
	must.Eq(t, "All drains are paused since "+cli.Clock(since)+" by ops", AllPausedText(&wire.DrainPause{At: since, By: "ops"}))
	for stopping, want := range map[int]string{
		0: "No allocation is stopping. Volumes are released all the same",
		1: "1 allocation that is marked already stops all the same. Volumes are released all the same",
		2: "2 allocations that are marked already stop all the same. Volumes are released all the same",
	} {
		must.Eq(t, want, StoppingText([]wire.PausedDrain{{}, {Stopping: stopping}}))
	}
}
