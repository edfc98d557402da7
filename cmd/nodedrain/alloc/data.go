package alloc

import (
	"cmp"
	"fmt"
	"time"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// replacement returns the replacement of an allocation if it decides what happens to the data, or nil.
func replacement(c *cli.Call, a *wire.Allocation) *wire.Allocation {
	g := GroupOf(a)
	switch {
	case a.NextAllocation == "", Alive(a), a.DataOut != nil && a.DataOut.State != string(cluster.DataKept):
		return nil
	case a.DataOut == nil && (g == nil || g.EphemeralDisk == nil || g.EphemeralDisk.Migrate == nil || !*g.EphemeralDisk.Migrate):
		return nil
	}
	next, _, err := c.API.Allocation(c.Ctx, a.NextAllocation, client.Query{})
	if err != nil {
		return nil // it was deleted meanwhile
	}
	return next
}

// dataTable lists the moves of the data of an ephemeral disk to the allocation and from it, which may be none. The
// replacement may be nil.
func dataTable(a, replacement *wire.Allocation, verbose bool, now time.Time) *cli.Table {
	t := cli.NewTable("Move", "Allocation", "State", "Bytes", "Average", "Skipped Files", "Started", "Ended", "Why")
	for _, one := range []struct {
		name string
		move *wire.DataMove
	}{{"from", moveIn(a)}, {"to", moveOut(a, replacement)}} {
		if m := one.move; m != nil {
			t.Row(one.name, cmp.Or(cli.ShortID(m.Peer, verbose), "-"), m.State, cli.BytesText(uint64(max(0, m.Bytes))), speedOf(m, now),
				fmt.Sprint(m.Skipped), cli.TimeCell(m.StartedAt), cli.TimeCell(m.EndedAt), cmp.Or(m.Why, "-"))
		}
	}
	return t
}

// unfinished is the state of a move into an allocation that has ended before it had the data.
const unfinished = "unfinished"

// moveIn returns the move into an allocation, or nil. An allocation that has ended no longer takes data.
func moveIn(a *wire.Allocation) *wire.DataMove {
	if a.DataIn == nil || !pending(a.DataIn) || Alive(a) || a.ClientStatus == string(cluster.ClientUnknown) {
		return a.DataIn
	}
	m := *a.DataIn
	m.State, m.Why = unfinished, "the allocation ended before it had the data"
	return &m
}

// moveOut returns the move out of an allocation, or nil. Until the data has moved, the replacement has the reason; and if
// the allocation is lost, only the replacement has the move.
func moveOut(a, replacement *wire.Allocation) *wire.DataMove {
	if replacement == nil || replacement.DataIn == nil {
		if a.DataOut == nil || a.DataOut.State != string(cluster.DataKept) {
			return a.DataOut
		}
		m := *a.DataOut
		m.Why = cmp.Or(m.Why, "no replacement takes it yet")
		return &m
	}
	m := *moveIn(replacement)
	switch {
	case a.DataOut == nil && (m.State != string(cluster.DataGivenUp) || m.Peer != a.ID):
		return nil // the allocation has not ended, or had no data
	case m.State == unfinished:
		m.Why = "its replacement ended before it had the data"
	case m.State == string(cluster.DataWaiting):
		m.Why = "its replacement waits" + prefixed(": ", m.Why)
	case m.State == string(cluster.DataCopying):
		m.Why = "its replacement copies it" + prefixed(": ", m.Why)
	}
	m.Peer = replacement.ID
	if a.DataOut != nil {
		m.State = a.DataOut.State
	}
	return &m
}

// prefixed returns the text after a prefix, or nothing.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func pending(m *wire.DataMove) bool {
	return m.State == string(cluster.DataWaiting) || m.State == string(cluster.DataCopying)
}

// speedOf returns the average speed of a copy until its end or until now.
func speedOf(m *wire.DataMove, now time.Time) string {
	if !m.EndedAt.IsZero() {
		now = m.EndedAt.Time
	}
	took := now.Sub(m.StartedAt.Time)
	if m.State == unfinished || m.StartedAt.IsZero() || m.Bytes <= 0 || took <= 0 { // clocks may differ
		return "-"
	}
	return cli.BytesText(uint64(float64(m.Bytes)/max(1, took.Seconds()))) + "/s"
}
