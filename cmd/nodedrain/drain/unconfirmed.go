package drain

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-f9cf0b39/nodedrain/cluster"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/alloc"
	"github.com/seed-f9cf0b39/nodedrain/cmd/nodedrain/cli"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/client"
	"github.com/seed-f9cf0b39/nodedrain/httpapi/wire"
)

// Unconfirmed are the allocations that had to leave a node and whose end nothing confirms: their tasks may
// still run there.
type Unconfirmed struct {
	// record is the record that counts allocations, or nil.
	record *wire.Drain
	// later are those that no record counts, by id: they are lost, or did not stop in time, or the servers have no
	// contact with their node and may give them up later. A record counts all of its drain, except below cluster version 8.
	later []*wire.Allocation
	// allocs are the allocations of the node by id, as far as they were read.
	allocs map[string]*wire.Allocation
	// Status is the status of a node that is ready or initializing, otherwise empty. The client may be frozen or
	// dead since its last heartbeat.
	Status string
}

// UnconfirmedIn returns those that the record of an ended drain counts.
func UnconfirmedIn(record *wire.Drain) Unconfirmed { return Unconfirmed{record: record} }

// unconfirmed returns those of the drain.
func (f *Follower) unconfirmed() Unconfirmed {
	u := Unconfirmed{record: f.record, allocs: f.allocs}
	gone := f.record != nil && f.record.Outcome == string(cluster.OutcomeNodeGone)
	if !gone && (f.status == string(cluster.NodeReady) || f.status == string(cluster.NodeInitializing)) {
		u.Status = f.status
	}
	if !f.counted() {
		u.later = f.givenUp()
	}
	return u
}

// counted reports whether the record of the ended drain has counted unconfirmed allocations.
func (f *Follower) counted() bool {
	return f.record != nil && (f.record.Unconfirmed > 0 || !f.record.ConfirmedAt.IsZero())
}

// givenUp returns the allocations on the node that the servers or the monitor have given up, or that the servers
// may give up later, by id, and whose end nothing confirms. A cancelled drain moves no allocations, so only its record counts.
func (f *Follower) givenUp() (rows []*wire.Allocation) {
	if !f.DrainEnded || f.cancelled {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(f.allocs)) {
		a := f.allocs[id]
		confirmed := f.record != nil && !f.counted() && a.AllocModifyIndex <= f.record.EndIndex // at the end of the drain
		lost := a.ClientStatus == string(cluster.ClientLost) && a.ConfirmedAt.IsZero() && !confirmed
		if (lost || a.ClientStatus == string(cluster.ClientUnknown) || f.GaveUp && alloc.Alive(a)) && !f.Stays(a) {
			rows = append(rows, a)
		}
	}
	return rows
}

// countNow counts the unconfirmed allocations when no other is left on the node. The record is as old as the
// end of the drain, and some that it counts may have stopped since.
func (f *Follower) countNow() int {
	rows := len(f.givenUp())
	if !f.counted() {
		return rows
	}
	u := f.unconfirmed()
	if unlisted := u.unlisted(); unlisted != nil {
		rows += unlisted.Count
	}
	return min(f.record.Unconfirmed, rows+u.purged())
}

// Unconfirmed returns the allocations whose end nothing confirms now. It works after [Monitor.Run].
func (m *Monitor) Unconfirmed(ctx context.Context) (Unconfirmed, error) {
	u := m.Follow.unconfirmed()
	if recorded(u.record) == 0 {
		return u, nil
	}
	// The count may have fallen since the drain ended.
	report, _, err := cli.Retry(ctx, &m.Contact, func() (*wire.NodeDrain, client.Answer, error) {
		return m.API.NodeDrain(ctx, m.Follow.Node, client.Query{})
	})
	if err != nil {
		return u, err
	}
	for _, d := range append(report.Recent, report.Drain) {
		if d != nil && d.ID == u.record.ID && d.Outcome != string(cluster.OutcomeNone) {
			u.record = d
		}
	}
	return u, nil
}

func recorded(d *wire.Drain) int {
	if d == nil {
		return 0
	}
	return d.Unconfirmed
}

// count returns the number of the allocations.
func (u Unconfirmed) count() int { return recorded(u.record) + len(u.later) }

// Any reports whether there is an allocation.
func (u Unconfirmed) Any() bool { return u.count() > 0 }

// Drain returns the id of the drain that an operator can confirm, or empty.
func (u Unconfirmed) Drain() string {
	if recorded(u.record) == 0 {
		return ""
	}
	return u.record.ID
}

// Reported returns the number of those whose ends the client reports when it returns. The servers have
// deleted the rows of the others.
func (u Unconfirmed) Reported() int { return u.count() - u.purged() }

// purged returns the number of those whose rows were deleted while they ran.
func (u Unconfirmed) purged() int {
	if recorded(u.record) == 0 {
		return 0
	}
	return min(u.record.PurgedRunning, u.record.Unconfirmed)
}

// unlisted returns those of which the servers have no row, or nil.
func (u Unconfirmed) unlisted() *wire.UnlistedAllocs {
	if recorded(u.record) == 0 {
		return nil
	}
	return u.record.Unlisted
}

// Lines names the allocations, and counts those without a name.
func (u Unconfirmed) Lines() (lines []string) {
	more := u.Reported()
	if unlisted := u.unlisted(); unlisted != nil {
		for _, id := range unlisted.Allocs {
			lines = append(lines, cli.SingleLine("Unconfirmed: allocation "+id+", which the client may run and the servers do not list"))
		}
		if unnamed := unlisted.Count - len(unlisted.Allocs); unnamed > 0 {
			lines = append(lines, fmt.Sprintf("Unconfirmed: %s that the servers do not list", cli.Count(unnamed, "more allocation")))
		}
		more -= unlisted.Count
	}
	name := func(id string) {
		text := "Unconfirmed: allocation " + id
		if a := u.allocs[id]; a != nil {
			text += fmt.Sprintf(" of %s.%s", cli.JobName(a.Namespace, a.JobID), a.TaskGroup)
		}
		lines, more = append(lines, cli.SingleLine(text)), more-1
	}
	if u.record != nil {
		for _, id := range u.record.UnconfirmedAllocs {
			name(id)
		}
	}
	for i := 0; i < len(u.later) && i < cluster.MaxUnconfirmedNames; i++ {
		name(u.later[i].ID)
	}
	if more > 0 {
		lines = append(lines, "Unconfirmed: "+cli.Count(more, "more allocation"))
	}
	if n := u.purged(); n > 0 {
		lines = append(lines, fmt.Sprintf("Unconfirmed: %s of purged jobs", cli.Count(n, "allocation")))
	}
	return lines
}
