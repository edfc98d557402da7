package picture_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/drain/picture"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
	"github.com/seed-f9cf0b39/nodedrain/sim/timeline/drawing"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests see into testdata; read the diff and see the pictures before you commit it")

// golden compares a picture with a file in testdata.
func golden(t *testing.T, name string, draw func(*bytes.Buffer) error) {
	t.Helper()
	var got bytes.Buffer
	must.NoError(t, draw(&got))
	path := filepath.Join("testdata", name)
	if *rewrite {
		must.NoError(t, os.MkdirAll("testdata", 0o755))
		must.NoError(t, os.WriteFile(path, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(path)
	must.NoError(t, err)
	must.Eq(t, string(want), got.String())
}

func at(seconds int) wire.Time {
	return wire.Time{Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local).Add(time.Duration(seconds) * time.Second)}
}

// ended is a drain that ended at its deadline. An operator confirmed it two days later.
func ended() wire.DrainStory {
	return wire.DrainStory{
		Drain: &wire.Drain{
			ID: "5e1f0c9a-8f3b-4c61-9d5e-2a7b1c3d4e5f", NodeName: "worker-7", Outcome: "deadline reached", EndedAt: at(640), Unconfirmed: 0,
			Strategy: &wire.DrainStrategy{Deadline: 10 * time.Minute, StartedAt: at(0), ForceDeadline: at(600)},
		},
		Journal: &wire.Journal{
			Events: []wire.JournalEvent{
				{Kind: "requested", Time: at(0), Text: "ann started the drain: deadline 1h0m0s"},
				{Kind: "stage began", Time: at(2), Text: "stage consumers began to leave", Stage: "consumers"},
				{Kind: "changed", Time: at(60), Text: "bob changed the drain: deadline 10m0s"},
				{Kind: "refused", Time: at(130), Until: at(250), Text: "the servers refused 3 writes: below budget", Allocs: 3, Why: "below budget"},
				{Kind: "deadline took", Time: at(600), Text: "2 allocations had to leave because of the deadline", Allocs: 2},
				{Kind: "stage ended", Time: at(615), Text: "stage consumers has left", Stage: "consumers"},
				{Kind: "stage began", Time: at(616), Text: "stage system began to leave", Stage: "system"},
				{Kind: "ended", Time: at(640), Text: "ended: deadline reached, 1 allocation still stopping", Why: "deadline reached", Allocs: 1},
				{Kind: "confirmed", Time: at(2 * 24 * 3600), Text: "ann confirmed the drain", By: "ann"},
			},
			EventsFirst: 9,
			Groups: []wire.JournalGroup{
				{Namespace: "default", JobID: "web", Group: "api", Marked: 4, Lowest: 1, Needed: 3, LowestAt: at(600), LowestFor: 40 * time.Second},
				{Namespace: "blue", JobID: "queue", Group: "workers", Marked: 12, Lowest: 38, Needed: 38, LowestAt: at(90), LowestFor: 5 * time.Minute},
				{Namespace: "default", JobID: "cache", Group: "g", Marked: 1, Lowest: 4, Needed: 2, LowestAt: at(3), LowestFor: 45 * time.Second},
				{Namespace: "default", JobID: "logs", Group: "agent", Marked: 1, Lowest: 0, Needed: -1, LowestAt: at(616), LowestFor: 24 * time.Second},
			},
			GroupsOmitted: 3,
		},
	}
}

// running is a drain that still runs. Its journal omits events, and the clock of a leader was behind.
func running() wire.DrainStory {
	return wire.DrainStory{
		Drain: &wire.Drain{ID: "0a", NodeID: "n1", Strategy: &wire.DrainStrategy{StartedAt: at(0)}},
		Journal: &wire.Journal{
			Events: []wire.JournalEvent{
				{Kind: "requested", Time: at(-1), Text: "an operator started the drain: no deadline"},
				{Kind: "stage ended", Time: at(70), Text: "stage consumers has left", Stage: "consumers"},
				{Kind: "stage began", Time: at(71), Text: "stage storage plugins began to leave", Stage: "storage plugins"},
				{Kind: "paused", Time: at(30), Text: "bob paused the drain", By: "bob"},
				{Kind: "resumed", Time: at(60), Text: "an operator resumed the drain"},
				{Kind: "refused", Time: at(80), Until: at(80), Text: "the servers refused 1 write: the node is <gone> & lost", Allocs: 1},
				{Kind: "refused", Time: at(80), Until: at(80), Text: "the servers refused 1 write: below budget", Allocs: 1},
			},
			EventsFirst: 1, EventsOmitted: 71,
			Groups: []wire.JournalGroup{
				{Namespace: "default", JobID: "a-job-with-a-very-long-name-that-needs-the-whole-lane", Group: "one", Marked: 1, Lowest: 0, Needed: 1, LowestAt: at(75), LowestSince: at(75)},
				{Namespace: "default", JobID: "a-job-with-a-very-long-name-that-needs-the-whole-lane", Group: "two", Marked: 1, Lowest: 19, Needed: 2, LowestAt: at(40), LowestFor: 10 * time.Second, LowestSince: at(85)},
			},
		},
	}
}

// The pictures name everything that the journal has, in both forms.
func TestPicture(t *testing.T) {
	t.Parallel()
	e, r := picture.New(ended(), at(0).Time), picture.New(running(), at(90).Time)
	golden(t, "ended.txt", func(b *bytes.Buffer) error { return e.Text(b, 0, false) })
	golden(t, "ended-ascii.txt", func(b *bytes.Buffer) error { return e.Text(b, drawing.MinColumns, true) })
	golden(t, "ended.svg", func(b *bytes.Buffer) error { return e.SVG(b) })
	golden(t, "running.txt", func(b *bytes.Buffer) error { return r.Text(b, 80, false) })
	golden(t, "running.svg", func(b *bytes.Buffer) error { return r.SVG(b) })
}
