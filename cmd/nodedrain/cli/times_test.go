package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"github.com/shoenig/test/must"

	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// A time of today has no date. The times in a text of a server become local ones.
func TestSoon(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	must.Eq(t, "12:30:05", Soon(now.Add(30*time.Minute+5*time.Second), now))
	must.Eq(t, "2026-01-03T12:00:00", Soon(now.AddDate(0, 0, 1), now))
	must.Eq(t, "2027-01-02T12:00:00", Soon(now.AddDate(1, 0, 0), now))

	due := now.Add(time.Hour).UTC().Format(time.RFC3339)
	must.Eq(t, "until the deadline at 2026-01-02T13:00:00, or 2026-01-02T13:00:00", LocalTimes("until the deadline at "+due+", or "+due))
	must.Eq(t, "2 of 3 healthy,  no time ", LocalTimes("2 of 3 healthy,  no time "))
}

// Ids in a text of a server become short ones, and other words stay.
func TestShortIDs(t *testing.T) {
	t.Parallel()
	must.Eq(t, "alloc 3f2a9b01, on node-7: is  unhealthy", ShortIDs("alloc 3f2a9b01-aaaa-bbbb-cccc-000000000000, on node-7: is  unhealthy"))
	must.Eq(t, "rack-with-a-name-of-thirty-six-chars", ShortIDs("rack-with-a-name-of-thirty-six-chars"))
}

// Wide characters take two columns of the terminal.
func TestTable_wideCharacters(t *testing.T) {
	t.Parallel()
	table := NewTable("Name", "Status", "Note")
	table.Row("\u8282\u70b9-1", "ready", "a")
	table.Row("node-2", "", "b")
	var out bytes.Buffer
	table.Write(&out)
	for line := range strings.Lines(out.String()) {
		last := strings.LastIndex(line, " ") + 1
		must.Eq(t, len("node-2  <none>  "), runewidth.StringWidth(line[:last]), must.Sprint(line))
	}
	var named Facts
	named.Add("Name", "x")
	named.Add("\u72b6\u6001", "y")
	out.Reset()
	named.Write(&out)
	must.Eq(t, "Name = x\n\u72b6\u6001 = y\n", out.String())
}

// A drain without a deadline shows no time.
func TestLimitText(t *testing.T) {
	t.Parallel()
	due := wire.NewTime(time.Date(2026, 1, 2, 13, 0, 0, 0, time.Local))
	for _, c := range []struct {
		want string
		s    wire.DrainStrategy
	}{
		{"2026-01-02T13:00:00 deadline", wire.DrainStrategy{Deadline: time.Hour, ForceDeadline: due}},
		{"2026-01-02T13:00:00 deadline; ignoring system jobs", wire.DrainStrategy{Deadline: time.Hour, ForceDeadline: due, IgnoreSystemJobs: true}},
		{"force drain", wire.DrainStrategy{Deadline: -1}},
		{"no deadline; ignoring system jobs", wire.DrainStrategy{IgnoreSystemJobs: true}},
	} {
		must.Eq(t, c.want, LimitText(&c.s))
	}
}
